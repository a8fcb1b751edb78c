"""Checks the sources of volumes: required and forbidden fields of each kind. Pure.

Pods with most of these kinds are refused later anyway, but the error of an invalid manifest must be
that of an API server.
Upstream: pkg/apis/core/validation: validateVolumeSource.

What must never pass here: a path that leads out of its volume (NODE-204).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from kubeobjects.golang.strconv import quoted
from refkubelet.model.validation.field_errors import (
    MAX_NAME,
    between,
    forbidden,
    invalid,
    label,
    one_of,
    required,
    subdomain,
    too_long,
)
from refkubelet.model.validation.references import (
    VOLUME_FIELDS,
    field_selector,
    local_path,
    no_steps_back,
    resource_selector,
)
from refkubelet.model.validation.resources import amount_of

MAX_MODE: Final = 0o777
MAX_LUN: Final = 255
_HOST_PATHS: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "awsElasticBlockStore": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "azureFile": ("secretName", "shareName"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "configMap": ("name",),
    "csi": ("driver",),
    "ephemeral": ("volumeClaimTemplate",),
    "flexVolume": ("driver",),
    "gcePersistentDisk": ("pdName",),
    "gitRepo": ("repository",),
    "glusterfs": ("endpoints", "path"),
    "hostPath": ("path",),
    "iscsi": ("targetPortal", "iqn"),
    "nfs": ("server", "path"),
    "persistentVolumeClaim": ("claimName",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "quobyte": ("volume",),
    "rbd": ("monitors", "image"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "secret": ("secretName",),
    "storageos": ("volumeName",),
    "vsphereVolume": ("volumePath",),
}
_KINDS: Final = (  # in the order of the checks
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret"),
    *("nfs", "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs"),
    *("quobyte", "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume"),
    *("photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO"),
    *("csi", "ephemeral", "image"),
)
_SHOWN: Final = {"gcePersistentDisk": "persistentDisk"}  # the field that errors name instead
_WITH_MODE: Final = ("secret", "configMap", "downwardAPI", "projected")
_INITIATORS: Final = {
    "iqn": re.compile(r".*iqn\.\d{4}-\d{2}\.[A-Za-z0-9.-]+:[^,;*&$|\s]+\Z", re.DOTALL),
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}\Z"),
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}\Z"),
}
_LONGEST_INITIATOR: Final = 1024  # iSCSI has 223; the pattern takes the square of the length
_HOST_AND_PORT: Final = re.compile(r"(?:\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*\Z")
_OWN_NAMESPACES: Final = (".kubernetes.io", ".k8s.io")
_DISK_KINDS: Final = ("Dedicated", "Managed", "Shared")
_CACHING: Final = ("None", "ReadOnly", "ReadWrite")


def volume_problems(place: str, volume: Any) -> Iterator[str]:
    """Check the source of a volume; every source after the first is forbidden."""
    given = [kind for kind in _KINDS if getattr(volume, kind) is not None]
    for kind in given[1:]:
        yield forbidden(f"{place}.{kind}", "may not specify more than 1 volume type")
    for kind in given[:1]:
        source = getattr(volume, kind)
        field = f"{place}.{_SHOWN.get(kind, kind)}"
        for name in _REQUIRED.get(kind, ()):
            if not getattr(source, name):
                yield required(f"{field}.{name}")
        if kind in _WITH_MODE:
            yield from _mode(f"{field}.defaultMode", source.defaultMode)
        check = _CHECKS.get(kind)
        if check is not None:
            yield from check(field, source)


def _mode(field: str, mode: int | None) -> Iterator[str]:
    if mode is not None and not 0 <= mode <= MAX_MODE:
        yield invalid(field, mode, "must be a number between 0 and 0777 (octal), both inclusive")


def _items(field: str, source: Any) -> Iterator[str]:
    """The keys of a Secret or ConfigMap that become files."""
    for i, item in enumerate(source.items or ()):
        place = f"{field}.items[{i}]"
        for name in ("key", "path"):
            if not getattr(item, name):
                yield required(f"{place}.{name}")
        yield from local_path(f"{place}.path", item.path)
        yield from _mode(f"{place}.mode", item.mode)


def _downward(field: str, source: Any) -> Iterator[str]:
    """The files of a downwardAPI volume: each from one field or one resource."""
    for item in source.items or ():
        if not item.path:
            yield required(f"{field}.path")
        yield from local_path(f"{field}.path", item.path)
        if item.fieldRef is not None:
            yield from field_selector(f"{field}.fieldRef", item.fieldRef, VOLUME_FIELDS)
            if item.resourceFieldRef is not None:
                why = "fieldRef and resourceFieldRef can not be specified simultaneously"
                yield invalid(field, "resource", why)
        elif item.resourceFieldRef is not None:
            ref = item.resourceFieldRef
            yield from resource_selector(f"{field}.resourceFieldRef", ref, in_volume=True)
        else:
            yield required(field, "one of fieldRef and resourceFieldRef is required")
        yield from _mode(f"{field}.mode", item.mode)


def _projected(field: str, source: Any) -> Iterator[str]:
    """The sources of a projected volume. Fields of those that need an API server are not checked:
    such pods are refused anyway (SRC-038)."""
    paths: set[str] = set()
    for i, part in enumerate(source.sources or ()):
        place = f"{field}.sources[{i}]"
        if part.downwardAPI is not None:
            yield from _downward(f"{place}.downwardAPI", part.downwardAPI)
        for kind in ("secret", "configMap"):
            named = getattr(part, kind)
            if named is not None:
                if not named.name:
                    yield required(f"{place}.{kind}.name")
                yield from _items(f"{place}.{kind}", named)
        for kind in ("secret", "configMap", "downwardAPI"):
            for item in getattr(getattr(part, kind), "items", None) or ():
                if item.path and item.path in paths:
                    yield invalid(field, item.path, "conflicting duplicate paths")
                paths.add(item.path)
        if sum(getattr(part, kind) is not None for kind in part.__struct_fields__) > 1:
            yield forbidden(place, "may not specify more than 1 volume type per source")


def _empty_dir(field: str, source: Any) -> Iterator[str]:
    if source.sizeLimit is not None:
        size = amount_of(str(source.sizeLimit))
        if size is None or size < 0:
            why = "SizeLimit field must be a valid resource quantity"
            yield forbidden(f"{field}.sizeLimit", why)


def _host_path(field: str, source: Any) -> Iterator[str]:
    yield from no_steps_back(f"{field}.path", source.path)
    yield from one_of(f"{field}.type", source.type, _HOST_PATHS)


def _image(field: str, source: Any) -> Iterator[str]:
    yield from one_of(f"{field}.pullPolicy", source.pullPolicy, ("Always", "IfNotPresent", "Never"))


def _git_repo(field: str, source: Any) -> Iterator[str]:
    directory = source.directory or ""
    if directory.startswith("/"):
        yield invalid(f"{field}.directory", directory, "must be a relative path")
    yield from no_steps_back(f"{field}.directory", directory)


def _nfs(field: str, source: Any) -> Iterator[str]:
    if not source.path.startswith("/"):
        yield invalid(f"{field}.path", source.path, "must be an absolute path")


def _initiator(field: str, name: str) -> Iterator[str]:
    form = _INITIATORS.get(name[:3])
    if form is None:
        yield invalid(field, name, "must be valid format starting with iqn, eui, or naa")
    elif len(name) > _LONGEST_INITIATOR or not form.match(name):
        yield invalid(field, name, "must be valid format")


def _iscsi(field: str, source: Any) -> Iterator[str]:
    if source.iqn:
        yield from _initiator(f"{field}.iqn", source.iqn)
    yield from between(f"{field}.lun", source.lun, 0, MAX_LUN)
    if (source.chapAuthDiscovery or source.chapAuthSession) and source.secretRef is None:
        yield required(f"{field}.secretRef")
    if source.initiatorName is not None:
        yield from _initiator(f"{field}.initiatorname", source.initiatorName)


def _fc(field: str, source: Any) -> Iterator[str]:
    names = f"{field}.targetWWNs"
    if not source.targetWWNs and not source.wwids:
        yield required(names, "must specify either targetWWNs or wwids, but not both")
    if source.targetWWNs and source.wwids:
        why = "targetWWNs and wwids can not be specified simultaneously"
        yield invalid(names, source.targetWWNs, why)
    if source.targetWWNs and source.lun is None:
        yield required(f"{field}.lun", "lun is required if targetWWNs is specified")
    elif source.targetWWNs:
        yield from between(f"{field}.lun", source.lun, 0, MAX_LUN)


def _partition(field: str, source: Any) -> Iterator[str]:
    yield from between(f"{field}.partition", source.partition, 0, 255)


def _flocker(field: str, source: Any) -> Iterator[str]:
    name = source.datasetName or ""
    if not name and not source.datasetUUID:
        yield required(field, "one of datasetName and datasetUUID is required")
    if name and source.datasetUUID:
        why = "datasetName and datasetUUID can not be specified simultaneously"
        yield invalid(field, "resource", why)
    if "/" in name:
        yield invalid(f"{field}.datasetName", name, "must not contain '/'")


def _quobyte(field: str, source: Any) -> Iterator[str]:
    pairs = "must be a host:port pair or multiple pairs separated by commas"
    if not source.registry:
        yield required(f"{field}.registry", pairs)
    elif len(source.tenant or "") > 64:
        why = "must be a UUID and may not exceed a length of 64 characters"
        yield required(f"{field}.tenant", why)
    elif not all(_HOST_AND_PORT.match(pair) for pair in source.registry.split(",")):
        yield invalid(f"{field}.registry", source.registry, pairs)


def _flex(field: str, source: Any) -> Iterator[str]:
    for key in source.options or {}:
        if f".{key.partition('/')[0].lower()}".endswith(_OWN_NAMESPACES):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid(f"{field}.options[{key}]", key, why)


def _azure_disk(field: str, source: Any) -> Iterator[str]:
    yield from one_of(f"{field}.cachingMode", source.cachingMode, _CACHING)
    yield from one_of(f"{field}.kind", source.kind, _DISK_KINDS)
    prefix, shown = "https://", "https://{account-name}.blob.core.windows.net/..."
    if source.kind == "Managed":
        prefix, shown = "/subscriptions/", "/subscriptions/{sub-id}/resourcegroups/..."
    if not source.diskURI.startswith(prefix):
        why = f"Unsupported value: {quoted(source.diskURI)}: supported values: {quoted(shown)}"
        yield f"{field}.diskURI: {why}"


def _named_secret(field: str, source: Any) -> Iterator[str]:
    if source.secretRef is not None and not source.secretRef.name:
        yield required(f"{field}.secretRef.name")


def _storage_os(field: str, source: Any) -> Iterator[str]:
    yield from label(f"{field}.volumeName", source.volumeName)
    yield from label(f"{field}.volumeNamespace", source.volumeNamespace)
    yield from _named_secret(field, source)


def _csi(field: str, source: Any) -> Iterator[str]:
    driver, place = source.driver, f"{field}.driver"
    if len(driver) > MAX_NAME:
        yield too_long(place, MAX_NAME)
    if any(subdomain(place, driver.lower())):  # capitals are allowed
        yield from subdomain(place, driver)
    secret = source.nodePublishSecretRef
    if secret is not None and not secret.name:
        yield required(f"{field}.nodePublishSecretRef.name")


_CHECKS: Final[dict[str, Callable[[str, Any], Iterator[str]]]] = {
    "awsElasticBlockStore": _partition,
    "azureDisk": _azure_disk,
    "cinder": _named_secret,
    "configMap": _items,
    "csi": _csi,
    "downwardAPI": _downward,
    "emptyDir": _empty_dir,
    "fc": _fc,
    "flexVolume": _flex,
    "flocker": _flocker,
    "gcePersistentDisk": _partition,
    "gitRepo": _git_repo,
    "hostPath": _host_path,
    "image": _image,
    "iscsi": _iscsi,
    "nfs": _nfs,
    "projected": _projected,
    "quobyte": _quobyte,
    "secret": _items,
    "storageos": _storage_os,
}
