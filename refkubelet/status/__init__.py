"""The status of a pod, made anew at every sync from what the runtime and the probes say, and its
way to the API server.

Read `generate.py` first: it names the parts in their order (`container_statuses.py`, `phase.py`,
`readiness.py`, `conditions.py`, `normalize.py`). `manager.py` keeps the statuses and sends them,
with `merge.py` and `patch.py`. Upstream: pkg/kubelet/kubelet_pods.go, pkg/kubelet/status.
"""
