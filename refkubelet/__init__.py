"""A reference kubelet: the node agent's behaviour in readable Python, one rule ID per behaviour.

Read the pure decisions first: what to do with a pod now (`kuberuntime/decisions/actions.py`), the
state of its worker (`pod_workers/transitions.py`), what changed in the runtime (`pleg/compute.py`),
what a probe's outcome means (`probes/decide.py`), the pod's phase (`status/phase.py`), who has to
go when something runs short (`eviction/ranking.py`). The rest feeds them and carries their answers
out: `sync_loop/loop.py` takes one event at a time, `kubelet.py` makes, runs and stops the parts.

`kubelet-conformance explain RULE` leads from a rule to its functions, `explain liveness` from
words to both.
"""
