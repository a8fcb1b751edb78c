"""The pod workers. Each pod has a worker that syncs it, terminates it and cleans up after it, one
step at a time.

Read `transitions.py` first: the life of a worker as a table. `updates.py` says what an update does
to a worker, `workers.py` runs the tasks, `steps.py` has the four steps, `sync_status.py` the
updates and the record of a worker. Upstream: pkg/kubelet/pod_workers.go; kubelet.go: SyncPod.
"""
