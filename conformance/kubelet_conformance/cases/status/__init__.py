"""What the kubelet writes into a pod's status, and what it leaves alone (STAT-, LIFE-160..205)."""
