"""What pods and the node use: the summary API and what evictions look at. Read `provider` first.

Upstream: pkg/kubelet/server/stats, pkg/kubelet/stats.
"""
