"""The sync loop: operations on pods come from the sources, the PLEG, the probes and timers; each is
answered by an update to a pod's worker. Housekeeping compares, every 2 s, what is wanted with what
runs.

Read `loop.py` first, then `pod_handlers.py` and `housekeeping.py`. Upstream:
pkg/kubelet/kubelet.go: syncLoop, HandlePod*; kubelet_pods.go: HandlePodCleanups.
"""
