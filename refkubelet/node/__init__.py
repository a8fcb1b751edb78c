"""This node at the API server: its registration, status and images, its graceful shutdown, and
out-of-memory kills of the whole machine. Upstream: pkg/kubelet/nodestatus, nodeshutdown, oom.
"""
