"""The CRI methods over the core.

What must never happen here: state that the core does not have; a call that changes its request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from fakecri.calls.metric_kinds import LABELS as LABELS
    from fakecri.calls.metric_kinds import METRICS as METRICS
    from fakecri.calls.metric_kinds import MetricKind as MetricKind
    from fakecri.calls.metric_kinds import View as View
else:
    __getattr__, __dir__ = face(__name__, {"metric_kinds": "LABELS METRICS MetricKind View"})
