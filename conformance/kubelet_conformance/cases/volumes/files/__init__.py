"""Volumes that the kubelet fills: ConfigMaps, Secrets, what a pod is told, tokens, trust."""
