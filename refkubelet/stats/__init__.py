"""Statistics of pods and the node, for the summary API and for eviction. Read `provider` first.

Upstream: pkg/kubelet/server/stats, pkg/kubelet/stats.
"""
