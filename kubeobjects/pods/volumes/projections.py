"""What is wrong with volumes whose files come from objects of the API. Pure.

A path may be used once in a volume of several sources; the sources are looked at in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubeobjects.causes import Cause, forbidden_field, invalid_value, required
from kubeobjects.pods.common.checks import Object, local_path, needed
from kubeobjects.pods.common.references import FILE_FIELDS, field_causes, resource_causes
from kubeobjects.pods.volumes.trust import bundle_causes, certificate_causes, certificate_paths

MAX_MODE: Final = 0o777
_MODE_RULE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_SHORTEST_TOKEN_S: Final = 600
_LONGEST_TOKEN_S: Final = 1 << 32
_PARTS: Final = (
    *("secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle"),
    "podCertificate",
)


def _mode_causes(mode: int | None, path: str) -> Iterator[Cause]:
    if mode is not None and not 0 <= mode <= MAX_MODE:
        yield invalid_value(path, mode, _MODE_RULE)


def _keyed(name_field: str) -> Callable[[Object, str], Iterator[Cause]]:
    """A check of a volume of the keys of one Secret or ConfigMap."""

    def check(source: Object, path: str) -> Iterator[Cause]:
        yield from needed(source, name_field, path)
        yield from _mode_causes(source.get("defaultMode"), f"{path}.defaultMode")
        for i, item in enumerate(source.get("items") or ()):
            yield from _item_causes(item, f"{path}.items[{i}]")

    return check


def _item_causes(item: Object, path: str) -> Iterator[Cause]:
    """A key that becomes a file."""
    yield from needed(item, "key", path)
    yield from needed(item, "path", path)
    yield from local_path(item.get("path") or "", f"{path}.path")
    yield from _mode_causes(item.get("mode"), f"{path}.mode")


def _downward(source: Object, path: str) -> Iterator[Cause]:
    yield from _mode_causes(source.get("defaultMode"), f"{path}.defaultMode")
    for file in source.get("items") or ():
        yield from _file_causes(file, path)


def _file_causes(file: Object, path: str) -> Iterator[Cause]:
    """A file of one field of the pod or one resource of a container. Messages do not say which file
    of the volume it is."""
    yield from needed(file, "path", path)
    yield from local_path(file.get("path") or "", f"{path}.path")
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        yield from field_causes(field, f"{path}.fieldRef", FILE_FIELDS)
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid_value(path, "resource", text)
    elif resource is not None:
        yield from resource_causes(resource, f"{path}.resourceFieldRef", of_file=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _mode_causes(file.get("mode"), f"{path}.mode")


# -- several sources -------------------------------------------------------------------------------


class _Paths:
    """The paths of a projected volume, each of which may be used once."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._used: set[str] = set()

    def used(self, file: str, shown: str) -> Iterator[Cause]:
        """A cause if the path was used before; it shows `shown`."""
        if file in self._used:
            yield invalid_value(self._path, shown, "conflicting duplicate paths")
        self._used.add(file)


def _projected(source: Object, path: str) -> Iterator[Cause]:
    yield from _mode_causes(source.get("defaultMode"), f"{path}.defaultMode")
    paths = _Paths(path)
    for i, part in enumerate(source.get("sources") or ()):
        source_path = f"{path}.sources[{i}]"
        kinds = [kind for kind in _PARTS if part.get(kind) is not None]
        for kind in kinds:
            yield from _part_causes(kind, part[kind], source_path, path, paths)
        if len(kinds) > 1:
            yield forbidden_field(source_path, "may not specify more than 1 volume type per source")


def _part_causes(kind: str, part: Object, here: str, path: str, paths: _Paths) -> Iterator[Cause]:
    field = f"{here}.{kind}"
    if kind in ("secret", "configMap"):
        yield from needed(part, "name", field)
        for i, item in enumerate(part.get("items") or ()):
            yield from _item_causes(item, f"{field}.items[{i}]")
            if item.get("path"):
                yield from paths.used(item["path"], part.get("name") or "")
    elif kind == "downwardAPI":
        for file in part.get("items") or ():
            yield from _file_causes(file, field)
            if file.get("path"):
                yield from paths.used(file["path"], file["path"])
    elif kind == "serviceAccountToken":
        yield from _token_causes(part, field, path)
    elif kind == "clusterTrustBundle":
        yield from bundle_causes(part, field)
        yield from paths.used(part.get("path") or "", part.get("path") or "")
    else:
        yield from certificate_causes(part, field)
        for name in certificate_paths(part):
            yield from local_path(part[name], f"{field}.{name}")
            yield from paths.used(part[name], part[name])
        if not certificate_paths(part):
            text = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
            yield required(field, text)


def _token_causes(token: Object, path: str, volume_path: str) -> Iterator[Cause]:
    """The token of the pod's account. What is wrong with its path is said of the volume's."""
    lives_s: int = token.get("expirationSeconds") or 0
    field, file = f"{path}.expirationSeconds", token.get("path") or ""
    if lives_s < _SHORTEST_TOKEN_S:
        text = "may not specify a duration less than 10 minutes"
        yield invalid_value(field, lives_s, text)
    if lives_s > _LONGEST_TOKEN_S:
        text = "may not specify a duration larger than 2^32 seconds"
        yield invalid_value(field, lives_s, text)
    if not file:
        yield required(f"{volume_path}.path")
    yield from local_path(file, f"{volume_path}.path")


def token_causes(spec: Mapping[str, Any]) -> Iterator[Cause]:
    """Tokens in volumes of a pod without an account of its own."""
    if spec.get("serviceAccountName"):
        return
    text = "must not be specified when serviceAccountName is not set"
    for i, volume in enumerate(spec.get("volumes") or ()):
        for j, part in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if part.get("serviceAccountToken") is not None:
                token_path = f"spec.volumes[{i}].projected.sources[{j}].serviceAccountToken"
                yield forbidden_field(token_path, text)


PROJECTIONS: Final[Mapping[str, Callable[[Object, str], Iterator[Cause]]]] = {
    "secret": _keyed("secretName"),
    "configMap": _keyed("name"),
    "downwardAPI": _downward,
    "projected": _projected,
}
