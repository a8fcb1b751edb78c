"""A world: what is on a node, and what happens to it. It is data, and a scenario file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct

from kubelet_conformance.registry import Case
from kubelet_conformance.scenarios.case import case_of
from kubelet_conformance.scenarios.reading import read_scenario
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubeobjects.strict.values import parse_yaml

AREA: Final = "search"


class World(Struct, frozen=True):
    """One world."""

    seed: int
    """It was drawn from that seed, and is played under it."""
    kinds: tuple[str, ...]
    """The kinds of things that can be in it (`KINDS`)."""
    document: Mapping[str, Any]
    """The scenario, as its file has it (docs/scenarios.md)."""

    @property
    def name(self) -> str:
        """The ID of the scenario."""
        return str(self.document["id"])

    def text(self) -> str:
        """The scenario file."""
        head = "# yaml-language-server: $schema=scenario.schema.json\n"
        return head + yaml.safe_dump(
            _plain(self.document), sort_keys=False, default_flow_style=None, width=100
        )

    def scenario(self) -> Scenario:
        """The scenario. Raises ScriptError where the document is none."""
        as_json = json.dumps(self.document)  # which is YAML, and is written faster
        return read_scenario(parse_yaml(as_json, f"{self.name}.yaml"))

    def case(self) -> Case:
        """The case that plays it. Raises ScriptError, likewise."""
        return case_of(self.scenario(), Path(f"{self.name}.yaml"))


def _plain(value: Any) -> Any:
    """The same without anything shared, which YAML would write as references."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
