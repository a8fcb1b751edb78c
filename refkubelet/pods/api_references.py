"""Finds references to API objects, which static pods may not have. Pure.

Rule: SRC-038. Upstream: pkg/api/pod/util.go: HasAPIObjectReference.
"""

from __future__ import annotations

from typing import Any

from refkubelet.model.objects import Pod, PodSpec


def api_object_reference(pod: Pod) -> str | None:
    """The first kind of API object that the pod refers to, in SRC-038's order; None: none."""
    spec = pod.spec
    if spec.serviceAccountName or spec.serviceAccount:  # the second is the first one's old name
        return "serviceaccounts"
    if any(ref.name for ref in spec.imagePullSecrets or ()) or _names(spec, "secret"):
        return "secrets"
    if _names(spec, "configMap"):
        return "configmaps"
    if spec.resourceClaims:
        return "resourceclaims"
    return next(filter(None, map(_volume_reference, spec.volumes or ())), None)


def _names(spec: PodSpec, kind: str) -> bool:
    """Whether any env, envFrom or volume takes its content from a Secret or ConfigMap."""
    for c in [*(spec.containers or ()), *(spec.initContainers or ())]:
        if any(_named(getattr(source, f"{kind}Ref")) for source in c.envFrom or ()):
            return True
        if any(e.valueFrom and _named(getattr(e.valueFrom, f"{kind}KeyRef")) for e in c.env or ()):
            return True
    for volume in spec.volumes or ():
        if getattr(volume, kind) is not None or (kind == "secret" and _has_secret_ref(volume)):
            return True
        parts = (volume.projected.sources or ()) if volume.projected else ()
        if any(_named(getattr(part, kind)) for part in parts):
            return True
    return False


def _named(ref: Any) -> bool:
    return ref is not None and bool(ref.name)


def _has_secret_ref(volume: Any) -> bool:
    sources = (getattr(volume, f) for f in volume.__struct_fields__ if f not in ("name", "csi"))
    if volume.csi is not None and _named(volume.csi.nodePublishSecretRef):
        return True
    return volume.azureFile is not None or any(
        _named(getattr(source, "secretRef", None)) for source in sources
    )


def _volume_reference(volume: Any) -> str | None:
    """The first API object that a volume needs beyond Secrets and ConfigMaps."""
    for field, kind in (
        ("csi", "csidrivers (via CSI volumes)"),
        ("glusterfs", "endpoints (via glusterFS volumes)"),
        ("persistentVolumeClaim", "persistentvolumeclaims"),
        ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ):
        if getattr(volume, field) is not None:
            return kind
    for part in (volume.projected.sources or ()) if volume.projected else ():
        for field, kind in (
            ("configMap", "configmaps (via projected volumes)"),
            ("secret", "secrets (via projected volumes)"),
            ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
            ("clusterTrustBundle", "clustertrustbundles"),
            ("podCertificate", "podcertificates"),
        ):
            if getattr(part, field) is not None:
                return kind
    return None
