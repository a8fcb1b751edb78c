"""The manifests of a node: what a look at the directory of static pods shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from kubelet_conformance.laws.history import Manifest
from kubeobjects.strict.errors import ScriptError
from kubeobjects.strict.values import parse_yaml

COPIES: Final = ("~", ".bak")
"""So end the names of copies that cases keep beside manifests."""
WITHOUT_SERVER: Final = ("emptyDir", "hostPath")
"""Volumes that a static pod may have."""


def manifests_in(directory: Path, names: Collection[str]) -> Mapping[str, list[Manifest]] | None:
    """The manifests in a directory of pods that have one of these names, by them; None: it is
    none."""
    if not directory.is_dir():
        return None
    found: dict[str, list[Manifest]] = {}
    for file in sorted(directory.iterdir()):
        pod = {} if file.name.startswith(".") or not file.is_file() else _read(file)
        name = str((pod.get("metadata") or {}).get("name", ""))
        if name in names and not _names_objects(pod.get("spec") or {}):
            is_copy = file.name.endswith(COPIES)
            found.setdefault(name, []).append(Manifest(pod, read=not is_copy))
    return found


def _read(file: Path) -> Mapping[str, Any]:
    """What is in a file; {}: no object."""
    try:
        pod = parse_yaml(file.read_text(), file.name).plain()
    except (ScriptError, OSError, UnicodeDecodeError):
        return {}
    return pod if isinstance(pod, dict) else {}


def _names_objects(spec: Mapping[str, Any]) -> bool:
    """Whether a pod refers to objects of the API server, which a static one may not."""
    volumes = spec.get("volumes") or ()
    kinds = {kind for each in volumes for kind in each if kind != "name"}
    named = spec.get("imagePullSecrets") or spec.get("serviceAccountName")
    return bool(named) or not kinds <= set(WITHOUT_SERVER)
