"""The wires of the kubelet: which part gets which. `Kubelet` calls the build functions in order.

How to read it. A module makes one group of parts and answers with a small frozen record of them,
which the groups below it take; `base` is what every group takes. In the order of building:

    base        configuration, what came from outside, events, the client of the runtime
    sources     which pods there should be: sources, pod manager, mirror pods, the node's informer
    resources   devices, exclusive CPUs and memory; what pods were allocated
    runtime     runtime manager, pod cache, PLEG, the state of the runtime
    work        status and probe managers, cgroups, the steps of the pod workers and the workers
    stats       what pods, the node and volumes use
    upkeep      garbage collection, log rotation, eviction
    node        the Node object, its shutdown, kills by the kernel
    admission   the handlers that may refuse a pod
    loop        what operations on pods do, housekeeping, the sync loop
    metrics_page  the page at /metrics, which reads the parts

A part that asks one of a later group does so through `base.later`. Read `kubelet.py` first, then
`base`. What must never happen here: a rule of the kubelet; a part that is made twice; an import of
this package by a part.
"""
