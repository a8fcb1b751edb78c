"""The files of configMap, secret, projected and downwardAPI volumes, with modes (NODE-205). Pure.

What must never happen here: a path that leads out of the volume, or to the writer's own links.
Upstream: pkg/volume/configmap, secret, downwardapi: MakePayload, CollectData; pkg/volume/util:
atomic_writer.go: validatePath; pkg/fieldpath/fieldpath.go.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from lightkube.models.core_v1 import ConfigMap, DownwardAPIVolumeFile, KeyToPath, Secret
from msgspec import Struct

from kubeobjects.golang.errors import aggregate
from kubeobjects.golang.strconv import quoted
from kubeobjects.structs import replace
from refkubelet.model.downward_api import NodeAndPodFacts, VariableError, resource_field
from refkubelet.model.objects import Pod
from refkubelet.model.pod import all_containers, labels, uid
from refkubelet.model.pod import annotations as pod_annotations

MAX_PATH: Final = 4096
MAX_NAME: Final = 255
NO_MODE: Final = "no defaultMode used, not even the default value for it"
_SUBSCRIPT: Final = re.compile(r"(metadata\.\w+)\['(.*)'\]\Z")


class PayloadError(Exception):
    """The files cannot be made; the text is upstream's."""


class FileProjection(Struct, frozen=True):
    """One file. `user`: its owner; None: whoever writes it."""

    data: bytes
    mode: int
    user: int | None = None


Payload = Mapping[str, FileProjection]
"""Files by their paths below the volume."""


def config_map_payload(
    config_map: ConfigMap, items: Sequence[KeyToPath] | None, mode: int | None, *, optional: bool
) -> dict[str, FileProjection]:
    """The files of a ConfigMap: all its keys, or `items`. Raises `PayloadError`."""
    data = {key: value.encode() for key, value in (config_map.data or {}).items()}
    binary = {key: _decoded(value, key) for key, value in (config_map.binaryData or {}).items()}
    if not items:
        return _files(data | binary, None, mode, optional=optional, missing="")
    missing = "configmap references non-existent config key: "
    return _files(binary | data, items, mode, optional=optional, missing=missing)


def secret_payload(
    secret: Secret, items: Sequence[KeyToPath] | None, mode: int | None, *, optional: bool
) -> dict[str, FileProjection]:
    """The files of a Secret: all its keys, or `items`. Raises `PayloadError`."""
    data = {key: _decoded(value, key) for key, value in (secret.data or {}).items()}
    missing = "references non-existent secret key: "
    return _files(data, items, mode, optional=optional, missing=missing)


def _files(
    data: Mapping[str, bytes],
    items: Sequence[KeyToPath] | None,
    mode: int | None,
    *,
    optional: bool,
    missing: str,
) -> dict[str, FileProjection]:
    if mode is None:
        raise PayloadError(NO_MODE)
    if not items:
        return {key: FileProjection(value, mode) for key, value in data.items()}
    files: dict[str, FileProjection] = {}
    for item in items:
        if item.key in data:
            own = item.mode if item.mode is not None else mode
            files[item.path] = FileProjection(data[item.key], own)
        elif not optional:
            raise PayloadError(f"{missing}{item.key}")
    return files


def _decoded(value: str | None, key: str) -> bytes:
    try:
        return base64.b64decode(value or "", validate=True)
    except binascii.Error as error:
        raise PayloadError(f"the value of key {key} is not base64: {error}") from None


def downward_payload(
    items: Iterable[DownwardAPIVolumeFile] | None,
    pod: Pod,
    facts: NodeAndPodFacts,
    mode: int | None,
) -> dict[str, FileProjection]:
    """The files of a downwardAPI volume. Raises `PayloadError` with all that is wrong."""
    if mode is None:
        raise PayloadError(NO_MODE)
    files: dict[str, FileProjection] = {}
    errors: list[str] = []
    for item in items or ():
        try:
            text = _downward_text(item, pod, facts)
        except VariableError as error:
            errors.append(str(error))
            continue
        own = item.mode if item.mode is not None else mode
        data = text.encode(errors="surrogateescape")
        files[posixpath.normpath(item.path)] = FileProjection(data, own)
    if errors:
        raise PayloadError(aggregate(errors))
    return files


def _downward_text(item: DownwardAPIVolumeFile, pod: Pod, facts: NodeAndPodFacts) -> str:
    """Raises `VariableError`."""
    if item.fieldRef is not None:
        return field_text(item.fieldRef.fieldPath, pod)
    if item.resourceFieldRef is None:
        return ""
    reference = item.resourceFieldRef
    containers = (*pod.spec.containers, *(pod.spec.initContainers or ()))
    target = next((c for c in containers if c.name == reference.containerName), None)
    if target is None:
        raise VariableError(f"container {reference.containerName or ''} not found")
    # Unlike for variables, a limit that is not set is never that of the pod, and an init container
    # has the node's amounts, too: so the container is given, and nothing that the pod says.
    bare = replace(pod, spec=replace(pod.spec, resources=None))
    return resource_field(replace(reference, containerName=None), target, bare, facts)


def field_text(path: str, pod: Pod) -> str:
    """A field of the pod's metadata; all labels or annotations as lines `key="value"`, sorted, with
    Go's escapes. Raises `VariableError`."""
    meta = pod.metadata
    if match := _SUBSCRIPT.match(path):
        field, key = match.groups()
        if field == "metadata.labels":
            return labels(pod).get(key, "")
        if field == "metadata.annotations":
            return pod_annotations(pod).get(key, "")
        raise VariableError(f"fieldPath {quoted(field)} does not support subscript")
    texts = {
        "metadata.labels": _lines(labels(pod)),
        "metadata.annotations": _lines(pod_annotations(pod)),
        "metadata.name": meta.name or "",
        "metadata.namespace": meta.namespace or "",
        "metadata.uid": uid(pod),
    }
    if path not in texts:
        raise VariableError(f"unsupported fieldPath: {path}")
    return texts[path]


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={quoted(values[key])}" for key in sorted(values, key=str.encode))


def checked(payload: Payload) -> dict[str, FileProjection]:
    """The payload with clean paths, in their order. Raises `PayloadError` for a path that no volume
    may have (NODE-206)."""
    for path in payload:
        problem = path_problem(path)
        if problem is not None:
            raise PayloadError(f"invalid path: {problem}")
    return {posixpath.normpath(path): payload[path] for path in sorted(payload)}


def path_problem(path: str) -> str | None:
    """Why a file of a volume cannot have that path; None: it can.

    >>> path_problem("a/../b"), path_problem("..data"), path_problem("a/..b")
    ("must not contain '..': a/../b", "must not start with '..': ..data", None)
    """
    if not path:
        return 'must not be empty: ""'
    if path.startswith("/"):
        return f"must be relative path: {path}"
    if len(path.encode(errors="surrogateescape")) > MAX_PATH:
        return f"must be less than or equal to {MAX_PATH} characters"
    names = path.split("/")
    if "\0" in path:
        return "must not contain a zero byte"
    for name in names:
        if name == "..":
            return f"must not contain '..': {path}"
        if len(name.encode(errors="surrogateescape")) > MAX_NAME:
            return f"filenames must be less than or equal to {MAX_NAME} characters"
    return f"must not start with '..': {path}" if names[0].startswith("..") else None


def visible_names(payload: Payload) -> list[str]:
    """The names at the top of the volume, each of which is a link."""
    return sorted({path.split("/", 1)[0] for path in payload})


def stale_paths(there: Iterable[str], payload: Payload) -> list[str]:
    """Of the paths in the volume now, those that the payload has no more, the deepest first."""
    needed: set[str] = set()
    for path in payload:
        while path:
            needed.add(path)
            path = posixpath.dirname(path)
    return sorted(set(there) - needed, key=lambda path: (-path.count("/"), path))


def nested_mount_points(volume: str, pod: Pod) -> list[str]:
    """The directories in a volume at which containers mount other volumes, below the volume.
    Raises `PayloadError`."""
    mount_points: list[str] = []
    for container in all_containers(pod):
        points = sorted(
            posixpath.normpath(mount.mountPath) for mount in container.volumeMounts or ()
        )
        own = [m.mountPath for m in container.volumeMounts or () if m.name == volume]
        for top in map(posixpath.normpath, own):
            if top.startswith("../"):
                raise PayloadError(f"invalid container mount point {top}")
            mount_points += _highest_below(top, points)
    return list(dict.fromkeys(mount_points))


def _highest_below(top: str, points: Iterable[str]) -> list[str]:
    """Of the sorted mount points below `top`, those that are not below another; relative to it."""
    highest: list[str] = []
    for point in points:
        if point.startswith(f"{top}/") and not any(point.startswith(f"{h}/") for h in highest):
            highest.append(point)
    return [point[len(top) + 1 :] for point in highest]
