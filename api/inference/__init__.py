"""The Open Inference Protocol: the second face of predictions."""
