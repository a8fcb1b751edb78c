"""Volumes of pods: what is wrong with them. Pure.

`volume_causes` is what others call. A volume has one source of 30 kinds: `sources` has the kinds
whose data are on the node or in the API, `disks` those of storage in a network or a cloud,
`projections` the files made of other objects, `trust` those that are certificates, `templates` the
claim of a volume that lives as long as its pod.

What must never pass here: a path that leads out of its volume (NODE-204).
Upstream: pkg/apis/core/validation: ValidateVolumes, validateVolumeSource.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubeobjects.causes import Cause, duplicate, forbidden_field, invalid_value, required
from kubeobjects.pods.common.checks import Object, label
from kubeobjects.pods.volumes.disks import DISKS, portal_causes
from kubeobjects.pods.volumes.projections import PROJECTIONS
from kubeobjects.pods.volumes.sources import SOURCES, image_causes
from kubeobjects.pods.volumes.templates import claim_name_causes, template_causes

KINDS: Final = (  # in the order in which an API server looks for them
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret"),
    *("nfs", "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs"),
    *("quobyte", "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume"),
    *("photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO"),
    *("csi", "ephemeral", "image"),
)
_SHOWN_FIRST: Final = {"gcePersistentDisk": "persistentDisk"}
_SHOWN_MORE: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""How messages write the field of a kind, if not as it is: of the one source, and of more."""
_CHECKS: Final[Mapping[str, Callable[[Object, str], Iterator[Cause]]]] = {
    **SOURCES,
    **DISKS,
    **PROJECTIONS,
    "ephemeral": template_causes,
}


def volume_causes(
    spec: Object, *, pod_name: str = "", static: bool = False
) -> tuple[dict[str, Object], list[Cause]]:
    """The volumes of a pod's spec that are right, by name, and what is wrong with the others.

    `static`: the pod is a kubelet's own, of which less is asked. Without the pod's name, the names
    of claims that it makes are not looked at.
    """
    listed = spec.get("volumes") or ()
    ephemeral_claims = {
        f"{pod_name}-{volume.get('name') or ''}"
        for volume in listed
        if pod_name and volume.get("ephemeral") is not None
    }
    right: dict[str, Object] = {}
    causes: list[Cause] = []
    for i, volume in enumerate(listed):
        path, name = f"spec.volumes[{i}]", volume.get("name") or ""
        wrong = [*_source_causes(volume, path, pod_name, static), *_name_causes(name, path, right)]
        if not wrong:
            right[name] = volume
        causes += wrong
        claimed = (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""
        if claimed in ephemeral_claims:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            causes.append(invalid_value(f"{path}.persistentVolumeClaim.claimName", claimed, text))
    return right, causes


def _name_causes(name: str, path: str, right: Mapping[str, Any]) -> Iterator[Cause]:
    if name:
        yield from label(name, f"{path}.name")
    else:
        yield required(f"{path}.name")
    if name in right:
        yield duplicate(f"{path}.name", name)


def _source_causes(volume: Object, path: str, pod_name: str, static: bool) -> Iterator[Cause]:
    """What is wrong with the first source. Every other one is one too many."""
    kinds = [kind for kind in KINDS if volume.get(kind) is not None]
    name = volume.get("name") or ""
    for kind in kinds:
        source = volume[kind]
        if kind == kinds[0]:
            source_path = f"{path}.{_SHOWN_FIRST.get(kind, kind)}"
            if kind == "image":
                yield from image_causes(source, source_path, static=static)
            else:
                yield from _CHECKS[kind](source, source_path)
            if kind == "ephemeral" and pod_name and name:
                yield from claim_name_causes(pod_name, name, path)
        else:
            source_path = f"{path}.{_SHOWN_MORE.get(kind, kind)}"
            yield forbidden_field(source_path, "may not specify more than 1 volume type")
        if kind == "iscsi":
            yield from portal_causes(source, name, path)
    if not kinds:
        yield required(path, "must specify a volume type")
