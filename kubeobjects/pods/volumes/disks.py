"""What is wrong with volumes of storage in a network or a cloud. Pure.

Pods of a kubelet with most of these kinds fail later anyway, but not with an error of validation.
No check may take longer than a text is long: names of iSCSI are split, not matched as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from kubeobjects.causes import MOST_ALIKE, Cause, invalid_value, required, unsupported_value
from kubeobjects.names import byte_length
from kubeobjects.pods.common.checks import Object, between, label, needed, optional_word
from kubeobjects.pods.volumes.sources import fields_needed

MAX_LUN: Final = 255
_PARTITION_RULE: Final = "must be between 1 and 255, inclusive"
_RESERVED: Final = (".kubernetes.io", ".k8s.io")
_DISK_KINDS: Final = ("Dedicated", "Managed", "Shared")
_CACHING: Final = ("None", "ReadOnly", "ReadWrite")
_MANAGED_DISK: Final = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/"
    "{disk-id}"
)
_BLOB_DISK: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_PAIRS: Final = "must be a host:port pair or multiple pairs separated by commas"
_MAX_TENANT: Final = 64
_MAX_PORTAL: Final = 64
_IN_DOMAIN: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-."
_IQN: Final = re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\..")
_NOT_IN_TARGET: Final = re.compile(r"[,;*&$|\t\n\f\r ]")
_HEX_FORMS: Final = {
    "eui": re.compile(r"eui.[0-9A-Za-z]{16}"),
    "naa": re.compile(r"naa.[0-9A-Za-z]{32}"),
}
_HOST_AND_PORT: Final = re.compile(r"(?:\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*", re.DOTALL)


# -- iSCSI -----------------------------------------------------------------------------------------


def portal_causes(source: Object, volume_name: str, path: str) -> Iterator[Cause]:
    """A volume with an initiator of its own has an interface named after volume and portal, which
    may not be too long."""
    whole = f"{volume_name}:{source.get('targetPortal') or ''}"
    if source.get("initiatorName") is not None and byte_length(whole) > _MAX_PORTAL:
        text = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
            "iscsi.initiatorName is specified."
        )
        yield invalid_value(f"{path}.name", volume_name, text)


def _iscsi(source: Object, path: str) -> Iterator[Cause]:
    yield from fields_needed("targetPortal", "iqn")(source, path)
    if source.get("iqn"):
        yield from _initiator_causes(source["iqn"], f"{path}.iqn")
    yield from between(source.get("lun") or 0, f"{path}.lun", 0, MAX_LUN)
    asks = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if asks and source.get("secretRef") is None:
        yield required(f"{path}.secretRef")
    if source.get("initiatorName") is not None:
        yield from _initiator_causes(source["initiatorName"], f"{path}.initiatorname")


def _initiator_causes(name: str, path: str) -> Iterator[Cause]:
    kind = name[:3]
    if kind == "iqn":
        right = _is_iqn(name)
    elif kind in _HEX_FORMS:
        right = _HEX_FORMS[kind].fullmatch(name) is not None
    else:
        yield invalid_value(path, name, "must be valid format starting with iqn, eui, or naa")
        return
    if not right:
        yield invalid_value(path, name, "must be valid format")


def _is_iqn(name: str) -> bool:
    """Whether the name ends with `iqn.`, year and month, a domain, a colon and a target. What is
    before does not matter.

    >>> _is_iqn("iqn.2001-04.com.example:disk"), _is_iqn("iqn.2001-04.com.example:a,b")
    (True, False)
    """
    parts = _NOT_IN_TARGET.split(name)[-1].split(":")
    domains = parts[:-1] if parts[-1] else parts[:-2]  # some target has to follow
    ends = (begin[len(begin.rstrip(_IN_DOMAIN)) :] for begin in domains)
    return any(_IQN.search(end) for end in ends)


# -- the others ------------------------------------------------------------------------------------


def _fibre_channel(source: Object, path: str) -> Iterator[Cause]:
    names, field, lun = source.get("targetWWNs"), f"{path}.targetWWNs", source.get("lun")
    if not names and not source.get("wwids"):
        yield required(field, "must specify either targetWWNs or wwids, but not both")
    if names and source.get("wwids"):
        text = "targetWWNs and wwids can not be specified simultaneously"
        yield invalid_value(field, names, text)
    if names and lun is None:
        yield required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif names:
        yield from between(lun, f"{path}.lun", 0, MAX_LUN)


def _with_partition(field: str) -> Callable[[Object, str], Iterator[Cause]]:
    """A check of a disk that `field` names, of which a partition may be used."""

    def check(source: Object, path: str) -> Iterator[Cause]:
        yield from needed(source, field, path)
        partition = source.get("partition") or 0
        if not 0 <= partition <= 255:
            yield invalid_value(f"{path}.partition", partition, _PARTITION_RULE)

    return check


def _nfs(source: Object, path: str) -> Iterator[Cause]:
    yield from fields_needed("server", "path")(source, path)
    exported = source.get("path") or ""
    if not exported.startswith("/"):
        yield invalid_value(f"{path}.path", exported, "must be an absolute path")


def _flocker(source: Object, path: str) -> Iterator[Cause]:
    name, uuid = source.get("datasetName") or "", source.get("datasetUUID")
    if not name and not uuid:
        yield required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        text = "datasetName and datasetUUID can not be specified simultaneously"
        yield invalid_value(path, "resource", text)
    if "/" in name:
        yield invalid_value(f"{path}.datasetName", name, "must not contain '/'")


def _quobyte(source: Object, path: str) -> Iterator[Cause]:
    registry, field = source.get("registry") or "", f"{path}.registry"
    if not registry:
        yield required(field, _PAIRS)
    elif byte_length(source.get("tenant") or "") > _MAX_TENANT:
        text = f"must be a UUID and may not exceed a length of {_MAX_TENANT} characters"
        yield required(f"{path}.tenant", text)
    else:
        wrong = (pair for pair in registry.split(",") if not _HOST_AND_PORT.fullmatch(pair))
        for _ in islice(wrong, MOST_ALIKE):
            yield invalid_value(field, registry, _PAIRS)
    yield from needed(source, "volume", path)


def _flex(source: Object, path: str) -> Iterator[Cause]:
    yield from needed(source, "driver", path)
    for key in source.get("options") or {}:
        if f".{key.partition('/')[0].lower()}".endswith(_RESERVED):
            text = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid_value(f"{path}.options[{key}]", key, text)


def _azure_disk(source: Object, path: str) -> Iterator[Cause]:
    yield from fields_needed("diskName", "diskURI")(source, path)
    kind, place = source.get("kind"), source.get("diskURI") or ""
    yield from optional_word(source.get("cachingMode"), f"{path}.cachingMode", _CACHING)
    yield from optional_word(kind, f"{path}.kind", _DISK_KINDS)
    if kind is None:
        return
    begin, disk_form = ("https://", _BLOB_DISK)
    if kind == "Managed":
        begin, disk_form = ("/subscriptions/", _MANAGED_DISK)
    if not place.startswith(begin):
        yield unsupported_value(f"{path}.diskURI", place, (disk_form,), free=True)


def _named_secret(source: Object, path: str) -> Iterator[Cause]:
    secret = source.get("secretRef")
    if secret is not None:
        yield from needed(secret, "name", f"{path}.secretRef")


def _cinder(source: Object, path: str) -> Iterator[Cause]:
    yield from needed(source, "volumeID", path)
    yield from _named_secret(source, path)


def _storage_os(source: Object, path: str) -> Iterator[Cause]:
    yield from needed(source, "volumeName", path)
    for field in ("volumeName", "volumeNamespace"):
        if source.get(field):
            yield from label(source[field], f"{path}.{field}")
    yield from _named_secret(source, path)


DISKS: Final[Mapping[str, Callable[[Object, str], Iterator[Cause]]]] = {
    "awsElasticBlockStore": _with_partition("volumeID"),
    "azureDisk": _azure_disk,
    "azureFile": fields_needed("secretName", "shareName"),
    "cephfs": fields_needed("monitors"),
    "cinder": _cinder,
    "fc": _fibre_channel,
    "flexVolume": _flex,
    "flocker": _flocker,
    "gcePersistentDisk": _with_partition("pdName"),
    "glusterfs": fields_needed("endpoints", "path"),
    "iscsi": _iscsi,
    "nfs": _nfs,
    "photonPersistentDisk": fields_needed("pdID"),
    "portworxVolume": fields_needed("volumeID"),
    "quobyte": _quobyte,
    "rbd": fields_needed("monitors", "image"),
    "scaleIO": fields_needed("gateway", "system", "volumeName"),
    "storageos": _storage_os,
    "vsphereVolume": fields_needed("volumePath"),
}
