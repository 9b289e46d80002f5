"""The checks of `quotaflow doctor`: this machine, the tables, the cluster."""
