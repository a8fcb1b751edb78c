"""The resources allocated to pods, and in-place resize, which changes them while the pods run.

    spec  ->  allocated (manager, state)  ->  actuated (kuberuntime/actuated)  ->  status

A resize is queued, decided by the admission handlers, allocated, and carried out by the pod's
worker. Read `manager` first; with `conditions`, `triggers` and `state` it keeps the state.
`resources`, `order`, `messages`, `checkpoint` and `feasibility` decide. Rules: CG-060..067,
LIFE-186. Upstream: pkg/kubelet/allocation.
"""
