"""Ending pods to keep the node alive: under pressure of memory, disk or pids (EVIC), and to make
room for a critical pod (PREE). Upstream: pkg/kubelet/eviction, preemption.
"""
