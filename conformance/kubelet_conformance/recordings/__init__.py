"""Recordings of a kubelet's calls (`fakecri proxy --record`), held against the laws:
`kubelet-conformance check-trace`.

`read_recording` reads one, `breaches_of` asks the laws that can be asked of it, `left_out` names
the others and what they want.
"""

from kubelet_conformance.recordings.asking import breaches_of, left_out
from kubelet_conformance.recordings.history import Recording
from kubelet_conformance.recordings.reading import read_recording

__all__ = ["Recording", "breaches_of", "left_out", "read_recording"]
