"""In-place resize: what is set for a pod's cgroup and its running containers."""
