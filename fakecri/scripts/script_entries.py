"""What a script file holds, once it is read, and the registry that its table of images makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from fakecri.behaviors.behavior import Behavior
from fakecri.core.images import Registry, RegistryImage
from fakecri.core.references import parse_reference
from fakecri.scripts.yaml_reader import Value


@dataclass(frozen=True, slots=True)
class BehaviorEntry:
    """Behaviours, and for which containers."""

    behaviors: tuple[Behavior, ...]
    selectors: dict[str, Any] = field(default_factory=dict)
    """Arguments of `behaves`: pod, container, image, attempt, first_attempts, times."""


@dataclass(frozen=True, slots=True)
class FaultEntry:
    """One fault, and for which calls."""

    method: str
    action: str
    """A verb of `FAULTS`."""
    arguments: dict[str, Any]
    selectors: dict[str, Any] = field(default_factory=dict)
    """Arguments of `on`: pod, container, image, attempt, nth."""
    place: Value | None = field(default=None, compare=False, repr=False)
    """Where it is in the file."""


@dataclass(frozen=True, slots=True)
class ForwardEntry:
    """A port of pods that leads to a port of this machine (`to`: `host:port`). `pod` None: all
    pods."""

    port: int
    to: str
    pod: str | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script file; entries keep their order."""

    images: tuple[str, ...] | None = None
    """None: the fake's default images."""
    programs: tuple[str, ...] = ()
    """Names of programs that images have."""
    registry: dict[str, RegistryImage | None] | None = None
    """What pulls of these meet (see `registry_with`); None: the fake's default registry."""
    behaviors: tuple[BehaviorEntry, ...] = ()
    faults: tuple[FaultEntry, ...] = ()
    forwards: tuple[ForwardEntry, ...] = ()


def registry_with(table: Mapping[str, RegistryImage | None]) -> Registry:
    """A registry that has every image. Those in `table` are as it says; None: a pull does not find
    the image.

    A key is a reference in any form, or a pattern over normalised ones (`docker.io/library/*`);
    exact references count before patterns, patterns in their order. Raises ValueError for a key
    that is no reference.
    """
    exact = {
        str(parse_reference(key)): image for key, image in table.items() if not _is_pattern(key)
    }
    patterns = [(key, image) for key, image in table.items() if _is_pattern(key)]

    def look_up(reference: str) -> RegistryImage | None:
        if reference in exact:
            return exact[reference]
        for pattern, image in patterns:
            if fnmatchcase(reference, pattern):
                return image
        return RegistryImage()

    return look_up


def _is_pattern(key: str) -> bool:
    return "*" in key or "?" in key
