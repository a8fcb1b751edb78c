"""The status of a pod: generated at every sync from the runtime's status and the probe results, and
sent to the API server.

Read `generate.py` first: it names the parts in their order (`container_statuses.py`, `phase.py`,
`readiness.py`, `conditions.py`, `normalize.py`). `manager.py` keeps the statuses, and `writer.py`
sends them, with `merge.py` and `patch.py`. Upstream: pkg/kubelet/kubelet_pods.go,
pkg/kubelet/status.
"""
