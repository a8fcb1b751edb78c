"""What the admission plug-in ServiceAccount adds to a new pod: an account, its pull secrets, and
the volume with a token of that account.

Upstream: plugin/pkg/admission/serviceaccount.
"""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.bodies import copy_json

DEFAULT_ACCOUNT: Final = "default"
ROOT_CA: Final = "kube-root-ca.crt"
"""The ConfigMap with the certificate authority of the server, in each namespace."""
MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME_PREFIX: Final = "kube-api-access-"
EXPIRATION_S: Final = 3607
"""An hour and seven seconds: by this number the server knows tokens of these volumes, and lets
them hold for a year, with a warning after the hour."""
_MODE: Final = 0o644

Object = dict[str, Any]


def token_volume(name: str) -> Object:
    """The projected volume: token, certificate authority, namespace."""
    sources: list[Object] = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": EXPIRATION_S}},
        {"configMap": {"name": ROOT_CA, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [
                    {
                        "path": "namespace",
                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                    }
                ]
            }
        },
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": _MODE}}


def add_account(pod: Object, account: Object, volume: str) -> None:
    """Complete a new pod, in place, with that account: pull secrets where it names none, and the
    volume, named `volume` unless one of the pod's is it already, in every container that mounts
    nothing at its place. Pod or account may say that no token is wanted."""
    spec = pod["spec"]
    name = account["metadata"]["name"]
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    is_mounted = spec.get("automountServiceAccountToken")
    if is_mounted is None:
        is_mounted = account.get("automountServiceAccountToken")
    if is_mounted is None or is_mounted:
        _mount(spec, volume)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = copy_json(account["imagePullSecrets"])


def _mount(spec: Object, volume: str) -> None:
    volumes = spec.get("volumes") or []
    token_volumes = [v["name"] for v in volumes if str(v.get("name", "")).startswith(VOLUME_PREFIX)]
    name = token_volumes[0] if token_volumes else volume
    needed = False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        mounts = container.get("volumeMounts") or []
        if all(mount.get("mountPath") != MOUNT_PATH for mount in mounts):
            mount = {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}
            container["volumeMounts"] = [*mounts, mount]
            needed = True
    if needed and not token_volumes:
        spec["volumes"] = [*volumes, token_volume(name)]


def mirror_problem(pod: Object) -> str:
    """Why this mirror pod is refused; "" if it is not: the objects that it would need are not the
    node's to choose."""
    spec = pod.get("spec") or {}
    if spec.get("serviceAccountName"):
        return "a mirror pod may not reference service accounts"
    if _names_secrets(spec):
        return "a mirror pod may not reference secrets"
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if "serviceAccountToken" in source:
                return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""


def _names_secrets(spec: Object) -> bool:
    if spec.get("imagePullSecrets"):
        return True
    for volume in spec.get("volumes") or ():
        sources = (volume.get("projected") or {}).get("sources") or ()
        if "secret" in volume or any("secret" in source for source in sources):
            return True
    groups = ("initContainers", "containers", "ephemeralContainers")
    return any(
        any("secretRef" in source for source in container.get("envFrom") or ())
        or any("secretKeyRef" in (e.get("valueFrom") or {}) for e in container.get("env") or ())
        for group in groups
        for container in spec.get(group) or ()
    )
