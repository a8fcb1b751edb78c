"""Finds pods of a scenario that cannot be what it wants: manifests that every kubelet refuses, and
resources that nothing offers, which a kubelet leaves out of account. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from kubelet_conformance.scenarios.shape.conditions import PodShown
from kubelet_conformance.scenarios.shape.pods import KINDS
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubelet_conformance.scenarios.shape.steps import sources_of
from kubelet_conformance.scenarios.shape.walk import placed_in
from kubeobjects.resource_names import is_extended_resource
from kubeobjects.strict.errors import ScriptError, did_you_mean

_LINE: Final = re.compile(r"^line \d+: ")
"""Where in the text that is made of a pod here, which nobody sees."""


def wrong_pods(scenario: Scenario) -> Iterator[ScriptError]:
    """What is wrong with the pods, each with its place."""
    yield from _refused(scenario)
    yield from _not_offered(scenario)


def _refused(scenario: Scenario) -> Iterator[ScriptError]:
    """Static pods that a kubelet refuses when it reads their file, in the words of refkubelet. A
    scenario may want that: it then expects `pod: {there: false}`."""
    from refkubelet.model.pod_updates import PodSource
    from refkubelet.pods.manifest import ManifestError, read_manifest

    shown = (part for part in placed_in(scenario) if isinstance(part, PodShown))
    wanted = {part.name for part in shown if not part.there and part.source == "kubelet"}
    for key, source in sources_of(scenario.steps).items():
        if source != "static" or key in wanted or key not in scenario.pods:
            continue
        text = json.dumps(scenario.pods[key].manifest(key)).encode()
        try:
            read_manifest(text, source=PodSource.FILE, origin=key, node_name="node")
        except ManifestError as refused:
            why = _LINE.sub("", str(refused))
            hint = f"if that is wanted, expect `pod: {{name: {key}, there: false}}`"
            yield scenario.pods[key].error(f"the kubelet refuses this manifest: {why}; {hint}")


def _not_offered(scenario: Scenario) -> Iterator[ScriptError]:
    """Amounts of resources of vendors that no plug-in offers and no step gives to the node."""
    offered = set[str]()
    for step in scenario.steps:
        if step.plug_in is not UNSET:
            offered.add(step.plug_in.resource)
        if step.patch_node is not UNSET and step.patch_node.status:
            offered |= _status_resources(step.patch_node.set)
    for key, pod in scenario.pods.items():
        for name in sorted(_asked(pod.manifest(key)) - offered):
            hint = did_you_mean(name, offered)
            yield pod.error(
                f"{name}: no step `plug_in` offers it, and a kubelet takes no account of it{hint}"
            )


def _status_resources(change: Mapping[str, Any]) -> set[str]:
    """What a change of the Node says of its resources."""
    status = change.get("status") or {}
    return {name for part in ("capacity", "allocatable") for name in status.get(part) or ()}


def _asked(manifest: Mapping[str, Any]) -> set[str]:
    """The resources of vendors that the containers of a pod ask for."""
    spec = manifest.get("spec") or {}
    return {
        name
        for kind in KINDS
        for container in spec.get(kind) or ()
        for amounts in (container.get("resources") or {}).values()
        if isinstance(amounts, Mapping)
        for name in amounts
        if is_extended_resource(str(name))
    }
