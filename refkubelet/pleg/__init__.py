"""The pod lifecycle event generator (PLEG): lists the runtime's pods, keeps the pod cache and sends
an event for each change.

Read `compute.py` first (which changes are events), then `generic.py`; `evented.py` is behind a
gate.
"""

from refkubelet.pleg.cache import PodCache
from refkubelet.pleg.compute import PodLifecycleEvent, PodLifecycleEventType, compute_events
from refkubelet.pleg.generic import GenericPLEG
from refkubelet.pleg.relist_options import PlegOptions

__all__ = [
    "GenericPLEG",
    "PlegOptions",
    "PodCache",
    "PodLifecycleEvent",
    "PodLifecycleEventType",
    "compute_events",
]
