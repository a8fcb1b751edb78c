"""Reads what a scenario gives its kubelet of KubeletConfiguration, as a kubelet would."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubelet_conformance.scenarios.shape.steps import Kubelet
from kubeobjects.strict.errors import ScriptError, did_you_mean

_PLACE: Final = re.compile(r"^kubelet(:\d+)*: ")


def not_in_configuration(scenario: Scenario) -> Iterator[ScriptError]:
    """Fields that a configuration does not have, and values that it cannot have. What a kubelet
    shall refuse may have any value."""
    fields = {} if scenario.kubelet is UNSET else scenario.kubelet
    known = list(_mistakes(fields, values=True))
    for text in known:
        yield scenario.error_at("kubelet", text)
    for step in _changes(scenario):
        refused = step.refused is not UNSET
        new = {**fields, **given} if (given := step.set) is not UNSET else fields
        for text in _mistakes(new, values=not refused):
            if text not in known:
                yield step.error(f"set: {text}")
        fields = fields if refused else new


def without_effect(scenario: Scenario) -> list[str]:
    """The fields and gates that refkubelet takes and does not act on, but other kubelets do."""
    every = [] if scenario.kubelet is UNSET else [scenario.kubelet]
    every += [step.set for step in _changes(scenario) if step.set is not UNSET]
    if not every:
        return []
    # Here, not above: as below.
    from refkubelet.config.gates import GATES, WITHOUT_EFFECT
    from refkubelet.config.not_acted_on import NOT_ACTED_ON

    gates = [gate for fields in every for gate in fields.get("featureGates") or {}]
    names = [name for fields in every for name in fields if name in NOT_ACTED_ON]
    return names + [gate for gate in gates if gate in WITHOUT_EFFECT or gate not in GATES]


def _changes(scenario: Scenario) -> Iterator[Kubelet]:
    """The steps that start a kubelet with other fields."""
    for step in scenario.steps:
        if isinstance(step.kubelet, Kubelet) and step.kubelet.set is not UNSET:
            yield step.kubelet


def _mistakes(fields: Mapping[str, Any], *, values: bool) -> Iterator[str]:
    """The texts of the mistakes. `values`: values count, too."""
    if not fields:
        return
    # Here, not above: scenarios without such fields are read without a kubelet.
    from kubeobjects.yaml.document import Document
    from refkubelet.config import ConfigError
    from refkubelet.config.decode import struct_of
    from refkubelet.config.eviction_grammar import ThresholdError, parse_thresholds
    from refkubelet.config.gates import GATES, WITHOUT_EFFECT
    from refkubelet.config.schema.kubelet_config import KubeletConfiguration
    from refkubelet.config.validation.whole import validate

    unknown: list[str] = []
    texts: list[str] = []
    try:
        config = struct_of(Document(dict(fields)), "kubelet", KubeletConfiguration, unknown)
        texts = validate(config)
        parse_thresholds(
            config.eviction_hard or {},
            config.eviction_soft,
            config.eviction_soft_grace_period,
            config.eviction_minimum_reclaim,
        )
    except (ConfigError, ThresholdError) as error:
        texts += str(error).splitlines()
    known = {*GATES, *WITHOUT_EFFECT}
    for gate in fields.get("featureGates") or {}:
        if gate not in known and (hint := did_you_mean(gate, known)):
            unknown.append(f"featureGates: no gate {gate!r}{hint}")
    for text in [*unknown, *(texts if values else ())]:
        yield _PLACE.sub("", text).replace(", without effect", "")
