"""Whether a fault can act on its method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from fakecri.cri.services import METHODS
from fakecri.fake import FakeCRI
from fakecri.proxy import RecordingProxy
from kubelet_conformance.scenarios.shape.answers import mistakes_in
from kubelet_conformance.scenarios.shape.faults import FAKE_ONLY, Fault
from kubeobjects.strict.errors import ScriptError


def cannot_act(rule: Any) -> Iterator[ScriptError]:
    """Why a rule cannot act: nothing where it can, or is about containers."""
    if not isinstance(rule, Fault):
        return
    target: Any = FakeCRI()
    if rule.action not in FAKE_ONLY:
        target = RecordingProxy(target)
    try:
        rule.programmed(target)
    except (ValueError, TypeError) as error:
        yield rule.error(str(error))
    if rule.changes is not UNSET:
        answer = METHODS[rule.on].response_type()
        for mistake in mistakes_in(answer, rule.changes.set):
            yield rule.error(f"changes: {mistake}")
