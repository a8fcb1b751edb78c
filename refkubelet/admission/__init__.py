"""Whether a pod may run on this node (LIFE-221..229): handlers are asked in order, and the first
refusal counts. Read `admit_handler.py` first, then `predicates.py`. Upstream:
pkg/kubelet/lifecycle, pkg/kubelet/sysctl.
"""
