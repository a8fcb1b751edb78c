"""Whether a fault can act on its method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.scenarios.steps import FAKE_ONLY, Fault
from fakecri.fake import FakeCRI
from fakecri.proxy import RecordingProxy
from fakecri.scripts.yaml_reader import ScriptError


def cannot_act(rule: Any) -> Iterator[ScriptError]:
    """Why a rule cannot act: nothing where it can, or is about containers."""
    if not isinstance(rule, Fault):
        return
    target: Any = FakeCRI()
    if rule.action not in FAKE_ONLY:
        target = RecordingProxy(target)
    try:
        on = target.on(rule.on, **rule.selectors)
        getattr(on, rule.action)(**rule.arguments)
    except (ValueError, TypeError) as error:
        yield rule.error(str(error))
