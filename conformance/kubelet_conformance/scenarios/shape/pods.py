"""The pods of a scenario: their manifests, and what their containers do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Annotated, Any, Final, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from fakecri.scripts.word_shapes import Behaviors
from fakecri.words import behaviors as b
from fakecri.words.behaviors import FOREVER, Behavior
from kubelet_conformance.harness.manifests import IMAGE
from kubelet_conformance.harness.workload import Workload, command, runs
from kubelet_conformance.scenarios.shape.fields import Anything
from kubeobjects.strict.reader import Placed

KINDS: Final = ("initContainers", "containers")
Fields: TypeAlias = dict[str, Anything]
Does: TypeAlias = Annotated[
    Behaviors | Annotated[tuple[Behaviors, ...], Meta(min_length=1)],
    Meta(extra={"wanted": "behaviours, or a list of them: one for each run, the last one stays"}),
]


class PodEntry(Placed, kw_only=True):
    """A pod. What is not written is: one container `main`; its image localhost/busybox:1, which
    every runtime of the suite has; a container runs until it is told to stop, and then exits 0."""

    name: Annotated[str, Meta(description="in its manifest; its key, if not given")] | UnsetType = (
        UNSET
    )
    metadata: Annotated[Fields, Meta(description="further metadata")] | UnsetType = UNSET
    spec: Annotated[Fields, Meta(description="as in a manifest")] | UnsetType = UNSET
    does: (
        Annotated[dict[str, Does], Meta(description="what each container does, by its name")]
        | UnsetType
    ) = UNSET

    def __post_init__(self) -> None:
        spec = {} if self.spec is UNSET else self.spec
        names = set()
        for kind in KINDS:
            listed = spec.get(kind, [])
            if not isinstance(listed, list):
                raise ValueError(f"spec: wanted a list of {kind}")
            for one in listed:
                if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                    raise ValueError(f"spec: wanted a name for each of the {kind}")
                names.add(one["name"])
        names = names if spec.get("containers") else names | {"main"}
        unknown = sorted(set(self.behaviors) - names)
        if unknown:
            known = ", ".join(sorted(names))
            raise ValueError(f"does: no container {unknown[0]!r} in the pod; it has {known}")

    @property
    def behaviors(self) -> dict[str, tuple[Behaviors, ...]]:
        """By container what each of its runs does; the last one holds for all further runs."""
        given = {} if self.does is UNSET else self.does
        return {name: one if isinstance(one, tuple) else (one,) for name, one in given.items()}

    def manifest(self, key: str) -> dict[str, Any]:
        """The whole manifest of the pod that is written under this key."""
        spec = {} if self.spec is UNSET else deepcopy(self.spec)
        if not spec.get("containers"):
            spec["containers"] = [{"name": "main"}]
        for kind in KINDS:
            spec_of_kind = [self._container(one) for one in spec.get(kind, [])]
            if spec_of_kind:
                spec[kind] = spec_of_kind
        metadata = {} if self.metadata is UNSET else self.metadata
        name = key if self.name is UNSET else self.name
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }

    def _container(self, given: Mapping[str, Any]) -> dict[str, Any]:
        filled = {"image": IMAGE, "imagePullPolicy": "IfNotPresent", **given}
        if "command" not in filled and "args" not in filled:
            work = workload(self.behaviors.get(filled["name"], ())) or runs()
            filled["command"] = command(filled["name"], work)
        return filled

    @property
    def needs_fake(self) -> bool:
        """Whether only a fake runtime can play what its containers do."""
        return any(workload(each) is None for each in self.behaviors.values())


def workload(each: Sequence[Behaviors]) -> Workload | None:
    """What a shell can do of these runs; None when it cannot do all of it."""
    if not all(_a_shell_can(word) for one in each for word in one.behaviors):
        return None
    return Workload(tuple(one.behaviors for one in each)) if each else runs()


def _a_shell_can(word: Behavior) -> bool:
    match word:
        case b.exits(reason="", message="") | b.stops(code=int(), reason="", message=""):
            return True
        case b.ignores(signal="SIGTERM", for_s=for_s):
            return for_s == FOREVER
    return isinstance(word, b.writes_termination_message)


def merged(base: Any, change: Any) -> Any:
    """`base` with a change: mappings are merged, null removes a key, lists of named things are
    merged by their names, everything else takes the place of what was there.

    >>> merged({"a": [{"name": "x", "n": 1}], "b": 2}, {"a": [{"name": "x", "n": 3}], "b": None})
    {'a': [{'name': 'x', 'n': 3}]}
    """
    if isinstance(base, Mapping) and isinstance(change, Mapping):
        kept = {key: value for key, value in base.items() if key not in change}
        new = {k: merged(base.get(k), v) for k, v in change.items() if v is not None}
        return {**kept, **new}
    if _named(base) and _named(change):
        changes = {one["name"]: one for one in change}
        first = [merged(one, changes.pop(one["name"], {})) for one in base]
        return [*first, *changes.values()]
    return deepcopy(change)


def _named(value: Any) -> bool:
    """Whether it is a list of things with names."""
    named = isinstance(value, list) and bool(value)
    return named and all(isinstance(one, Mapping) and "name" in one for one in value)


def container_names(manifest: Mapping[str, Any]) -> Iterator[str]:
    """The names of the containers, init containers first."""
    for kind in KINDS:
        for one in manifest["spec"].get(kind, []):
            yield str(one["name"])


def as_text(manifest: Mapping[str, Any]) -> str:
    """The manifest as a file has it."""
    return json.dumps(manifest, indent=1)
