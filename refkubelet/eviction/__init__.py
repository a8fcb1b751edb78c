"""Ending pods to keep the node alive: under pressure of memory, disk or pids (EVIC), and to make
room for a critical pod (PREE). Read `manager.py` first, then `cycle.py`, which decides; the
preemption is apart from both. Upstream: pkg/kubelet/eviction, pkg/kubelet/preemption.
"""
