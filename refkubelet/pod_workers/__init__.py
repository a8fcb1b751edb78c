"""A worker for each pod: syncs it, ends it, cleans up after it, one step at a time, never two at
once for one UID. Upstream: pkg/kubelet/pod_workers.go.
"""
