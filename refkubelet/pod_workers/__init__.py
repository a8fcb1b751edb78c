"""A worker for each pod: syncs it, ends it, cleans up after it, one step at a time, never two at
once for one UID.

Read `transitions.py` first: the life of a worker as a table. `updates.py` says what an update does
to a worker, `workers.py` runs the tasks, `steps.py` has what the four steps do; `sync_status.py`
has what a worker is told and remembers. Upstream: pkg/kubelet/pod_workers.go; kubelet.go: SyncPod.
"""
