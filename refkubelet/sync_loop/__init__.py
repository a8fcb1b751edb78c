"""The sync loop takes events from the pod sources, the PLEG, the probes and timers, and hands each
to the worker of its pod. Every 2 s housekeeping compares desired pods with running ones.

Read `loop.py` first, then `pod_handlers.py` and `housekeeping.py`. Upstream:
pkg/kubelet/kubelet.go: syncLoop, HandlePod*; kubelet_pods.go: HandlePodCleanups.
"""
