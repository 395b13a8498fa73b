"""The training problem that all sites share: loss, ball, support, lift or network, noise, tuning."""
