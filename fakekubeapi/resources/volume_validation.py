"""What is wrong with the volumes of a pod. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fakekubeapi.resources.checks import needed, one_of, path_causes
from kubeobjects.causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from kubeobjects.names import label_problems
from kubeobjects.quantity import parse_nano

Object = dict[str, Any]
_HOST_TYPES: Final = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File"),
    *("FileOrCreate", "Socket"),
)
_FILE_FIELDS: Final = (
    *("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace"),
    "metadata.uid",
)
_MODE_RULE: Final = "must be a number between 0 and 0777 (octal), both inclusive"


def volume_causes(listed: list[Object]) -> tuple[dict[str, Object], list[Cause]]:
    """The volumes that are right, by name, and what is wrong with the others."""
    causes: list[Cause] = []
    names: dict[str, Object] = {}
    for i, volume in enumerate(listed):
        path = f"spec.volumes[{i}]"
        name = volume.get("name", "")
        found = _source_causes(volume, path)
        if not name:
            found.append(required(f"{path}.name"))
        else:
            found += [invalid_value(f"{path}.name", name, text) for text in label_problems(name)]
        if name in names:
            found.append(duplicate(f"{path}.name", name))
        if not found:
            names[name] = volume
        causes += found
    return names, causes


def _source_causes(volume: Object, path: str) -> list[Cause]:
    causes: list[Cause] = []
    kinds: list[str] = [kind for kind in _ORDER if kind in volume]
    kinds += [kind for kind in volume if kind not in _ORDER and kind != "name"]
    for kind in kinds[:1]:
        check = _CHECKS.get(kind)
        causes += check(volume[kind], f"{path}.{kind}") if check else []
    text = "may not specify more than 1 volume type"
    causes += [forbidden_field(f"{path}.{kind}", text) for kind in kinds[1:]]
    if not kinds:
        causes.append(required(path, "must specify a volume type"))
    return causes


def _empty_dir(source: Object, path: str) -> list[Cause]:
    limit = source.get("sizeLimit")
    if limit is not None and parse_nano(limit) < 0:
        text = "SizeLimit field must be a valid resource quantity"
        return [forbidden_field(f"{path}.sizeLimit", text)]
    return []


def _host_path(source: Object, path: str) -> list[Cause]:
    given = source.get("path", "")
    if not given:
        return [required(f"{path}.path")]
    causes = path_causes(given, f"{path}.path", relative=False)
    return causes + one_of(source, "type", path, _HOST_TYPES)


def _keyed(name_field: str) -> Callable[[Object, str], list[Cause]]:
    def check(source: Object, path: str) -> list[Cause]:
        return [
            *needed(source, name_field, path),
            *_mode(source, "defaultMode", path),
            *_items(source.get("items") or [], path),
        ]

    return check


def _mode(source: Object, field: str, path: str) -> list[Cause]:
    mode = source.get(field)
    if mode is None or 0 <= mode <= 0o777:
        return []
    return [invalid_value(f"{path}.{field}", mode, _MODE_RULE)]


def _items(items: list[Object], path: str) -> list[Cause]:
    causes: list[Cause] = []
    for i, item in enumerate(items):
        here = f"{path}.items[{i}]"
        causes += needed(item, "key", here)
        causes += needed(item, "path", here) or path_causes(item["path"], f"{here}.path")
        causes += _mode(item, "mode", here)
    return causes


def _downward(source: Object, path: str) -> list[Cause]:
    causes = _mode(source, "defaultMode", path)
    for item in source.get("items") or []:
        if not item.get("path"):
            causes.append(required(f"{path}.path"))
        else:
            causes += path_causes(item["path"], f"{path}.path")
        causes += _field_ref(item.get("fieldRef"), path)
        causes += _mode(item, "mode", path)
    return causes


def _field_ref(ref: Object | None, path: str) -> list[Cause]:
    if not ref:
        return []
    asked = ref.get("fieldPath", "")
    if asked.partition("[")[0] in _FILE_FIELDS:
        return []
    return [unsupported_value(f"{path}.fieldRef.fieldPath", asked, _FILE_FIELDS)]


def _projected(source: Object, path: str) -> list[Cause]:
    causes = _mode(source, "defaultMode", path)
    for i, part in enumerate(source.get("sources") or []):
        here = f"{path}.sources[{i}]"
        token = part.get("serviceAccountToken")
        if token is not None:
            if token.get("expirationSeconds", 600) < 600:
                text = "may not specify a duration less than 10 minutes"
                field = f"{here}.serviceAccountToken.expirationSeconds"
                causes.append(invalid_value(field, token["expirationSeconds"], text))
            if not token.get("path"):
                causes.append(required(f"{path}.path"))
        for kind in ("secret", "configMap"):
            if kind in part:
                causes += needed(part[kind], "name", f"{here}.{kind}")
                causes += _items(part[kind].get("items") or [], f"{here}.{kind}")
    return causes


def _claim(source: Object, path: str) -> list[Cause]:
    return needed(source, "claimName", path)


_ORDER: Final = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret"),
    *("nfs", "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs"),
    *("quobyte", "downwardAPI", "fc", "configMap", "azureFile", "azureDisk", "storageos"),
    *("projected", "scaleIO", "csi", "ephemeral", "image"),
)
_CHECKS: Final[dict[str, Callable[[Object, str], list[Cause]]]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "secret": _keyed("secretName"),
    "configMap": _keyed("name"),
    "downwardAPI": _downward,
    "projected": _projected,
    "persistentVolumeClaim": _claim,
}


def token_causes(spec: Object) -> list[Cause]:
    """What is wrong with projected tokens in a pod without an account."""
    if spec.get("serviceAccountName"):
        return []
    text = "must not be specified when serviceAccountName is not set"
    return [
        forbidden_field(f"spec.volumes[{i}].projected.sources[{j}].serviceAccountToken", text)
        for i, volume in enumerate(spec.get("volumes") or [])
        for j, part in enumerate((volume.get("projected") or {}).get("sources") or [])
        if part.get("serviceAccountToken") is not None
    ]
