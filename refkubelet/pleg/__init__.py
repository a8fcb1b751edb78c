"""The pod lifecycle event generator: lists the runtime, keeps the pod cache, tells what changed.

Read `compute.py` first (what is an event), then `generic.py`; `evented.py` is behind a gate.
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
