"""Finds what cannot be right about the CSI drivers of a scenario: names that nothing has, fields
that their objects do not have, calls that are about no volume. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from kubelet_conformance.scenarios.part_checks import not_in_message, not_in_object
from kubelet_conformance.scenarios.shape.csi import (
    VOLUME_METHODS,
    Attach,
    CsiAbilities,
    CsiDriverShown,
    CsiDriverStep,
    CsiFault,
    CsiVolume,
)
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubelet_conformance.scenarios.shape.selectors import CsiCallSelector
from kubelet_conformance.scenarios.shape.steps import DiesAt, Step
from kubelet_conformance.scenarios.shape.walk import placed_in
from kubeobjects.schema.messages import message
from kubeobjects.strict.errors import ScriptError, did_you_mean
from kubeobjects.strict.reader import Placed

_OF_DRIVER: Final = (CsiVolume, CsiDriverStep, CsiDriverShown, CsiFault, CsiCallSelector, DiesAt)
_VALUES: Final = {
    "fsGroupPolicy": ("ReadWriteOnceWithFSType", "File", "None"),
    "volumeLifecycleModes": ("Persistent", "Ephemeral"),
}
_OF_VOLUME: Final = (Attach, CsiFault, CsiCallSelector)


def wrong_drivers(scenario: Scenario) -> Iterator[ScriptError]:
    """All of it, each with its place."""
    for part in placed_in(scenario):
        yield from _names(scenario, part)
        yield from _fields(part)
    for key, pod in scenario.pods.items():
        for volume in pod.manifest(key)["spec"].get("volumes") or ():
            if isinstance(volume, Mapping):
                yield from _volume(scenario, pod, volume)


def driver_states(scenario: Scenario) -> Iterator[ScriptError]:
    """Starts of a driver that runs, and ends of one that does not."""
    runs = {name: driver.starts for name, driver in scenario.csi_drivers.items()}
    for step in scenario.steps:
        argument = step.csi_driver
        if argument is UNSET or argument.do is UNSET or argument.name not in runs:
            continue
        if runs[argument.name] is (argument.do == "start"):
            state = "runs already" if runs[argument.name] else "does not run"
            yield step.error(f"csi_driver: {argument.do}: it {state}")
        runs[argument.name] = argument.do == "start"


def _names(scenario: Scenario, part: Placed) -> Iterator[ScriptError]:
    """Drivers and volumes that there are not."""
    if isinstance(part, _OF_DRIVER):
        driver = getattr(part, "driver", getattr(part, "name", UNSET))
        if driver is not UNSET:
            yield from _not_among(part, driver, scenario.csi_drivers, "csi_drivers")
    if isinstance(part, _OF_VOLUME) and part.volume is not UNSET:
        yield from _not_among(part, part.volume, scenario.csi_volumes, "csi_volumes")
        asked = getattr(part, "method", getattr(part, "on", VOLUME_METHODS[0]))
        if asked not in VOLUME_METHODS:
            yield part.error(f"volume: {asked} is not about one volume")
        of_volume = scenario.csi_volumes.get(str(part.volume))
        driver = getattr(part, "driver", UNSET)
        if of_volume is not None and driver not in (UNSET, of_volume.driver):
            yield part.error(f"volume: {part.volume!r} is one of driver {of_volume.driver}")
    if isinstance(part, Step):
        for key in (part.attach, part.detach):
            if isinstance(key, str):
                yield from _not_among(part, key, scenario.csi_volumes, "csi_volumes")


def _not_among(
    place: Placed, name: str, known: Collection[str], where: str, what: str = ""
) -> Iterator[ScriptError]:
    if name not in known:
        names = ", ".join(known) or "none"
        hint = did_you_mean(name, known)
        yield place.error(f"{what}no {name!r} in `{where}`, which has: {names}{hint}")


def _fields(part: Placed) -> Iterator[ScriptError]:
    """What no object and no message can have."""
    if isinstance(part, CsiAbilities) and part.spec is not UNSET:
        for text in not_in_object(part.spec, message("storage.v1.CSIDriverSpec"), "spec"):
            yield part.error(text)
        yield from _values(part, part.spec)
    if isinstance(part, CsiVolume):
        source = message("core.v1.CSIPersistentVolumeSource")
        for text in not_in_object(part.source, source, "source"):
            yield part.error(text)
        for text in not_in_object(part.spec, message("core.v1.PersistentVolumeSpec"), "spec"):
            yield part.error(text)
    if isinstance(part, CsiCallSelector):
        if part.failed is False and part.code is not UNSET:
            yield part.error("code: calls that did not fail have none")
        if part.request is not UNSET:
            for text in not_in_message(part.request, _request_of(part.method), "request"):
                yield part.error(text)


def _values(part: Placed, spec: Mapping[str, Any]) -> Iterator[ScriptError]:
    for field, known in _VALUES.items():
        given = spec.get(field, ())
        for value in given if isinstance(given, list) else (given,) if given else ():
            if value not in known:
                yield part.error(f"spec.{field}: {value!r} is none of {', '.join(known)}")


def _request_of(method: str) -> Any:
    """The descriptor of what that call is given."""
    from kubecri.csi import api_pb2

    for service in ("Node", "Identity"):
        found = api_pb2.DESCRIPTOR.services_by_name[service].methods_by_name.get(method)
        if found is not None:
            return found.input_type
    raise LookupError(method)


def _volume(scenario: Scenario, pod: Placed, volume: Mapping[str, Any]) -> Iterator[ScriptError]:
    """Volumes of a pod that no driver and no claim is there for."""
    of = f"volume {volume.get('name')}: "
    inline, claimed = volume.get("csi"), volume.get("persistentVolumeClaim")
    driver = inline.get("driver") if isinstance(inline, Mapping) else None
    if isinstance(driver, str):
        yield from _not_among(pod, driver, scenario.csi_drivers, "csi_drivers", of)
    claim = claimed.get("claimName") if isinstance(claimed, Mapping) else None
    if isinstance(claim, str) and claim not in _made_claims(scenario):
        yield from _not_among(pod, claim, scenario.csi_volumes, "csi_volumes", of)


def _made_claims(scenario: Scenario) -> set[str]:
    """The claims that steps make."""
    made = [s.create_object for s in scenario.steps if s.create_object is not UNSET]
    return {
        str((each.manifest.get("metadata") or {}).get("name"))
        for each in made
        if each.plural == "persistentvolumeclaims"
    }
