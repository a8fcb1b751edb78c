"""What a kubelet asks of a container runtime, and what it makes of the answers."""
