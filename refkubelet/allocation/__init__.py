"""What pods were given of the node, and changing it while they run: in-place resize.

    spec  ->  allocated (manager, state)  ->  actuated (kuberuntime/actuated)  ->  status

A resize is queued, asked about by the admission handlers, allocated, and carried out by the pod's
worker. `resources`, `order`, `messages`, `checkpoint` and `feasibility` decide; `manager` (read it
first), `conditions`, `triggers` and `state` do. Rules: CG-060..067, LIFE-186. Upstream:
pkg/kubelet/allocation.
"""
