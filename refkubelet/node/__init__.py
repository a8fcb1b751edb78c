"""This node at the API server: its registration, status and images, its graceful shutdown, and
out-of-memory kills of the whole machine. Read `register.py` and `status.py` first; the shutdown is
`shutdown_manager.py`, which uses `shutdown.py` (decides), `shutdown_state.py` and `logind.py`.
Upstream: pkg/kubelet/nodestatus, nodeshutdown, oom.
"""
