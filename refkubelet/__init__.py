"""A reference kubelet: the node agent's behaviour in readable Python, one rule ID per behaviour.

Read the pure decisions first (`kuberuntime/actions.py`, `pod_workers/transitions.py`,
`pleg/compute.py`, `status/phase.py`, `eviction/ranking.py`); the rest feeds them and carries
their answers out.
"""
