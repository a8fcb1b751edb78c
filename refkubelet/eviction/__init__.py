"""Eviction of pods when memory, disk or pids run short (EVIC), and preemption of pods to make room
for a critical one (PREE). For eviction read `manager.py` first, then `cycle.py`, which decides;
preemption is separate. Upstream: pkg/kubelet/eviction, pkg/kubelet/preemption.
"""
