"""The Node object (registration, status, images), the node's graceful shutdown, and events about
out-of-memory kills of the whole machine. Read `register.py` and `status.py` first. The shutdown is
`shutdown_manager.py`, which uses `shutdown.py` (decides), `shutdown_state.py` and `logind.py`.
Upstream: pkg/kubelet/nodestatus, nodeshutdown, oom.
"""
