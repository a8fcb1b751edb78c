"""The Container Storage Interface, v1: what a kubelet calls of a storage driver (NODE-216)."""
