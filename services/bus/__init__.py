"""The embedded NATS server and the configuration of servers and sites."""
