"""The defaults of the v1 Pod API, and what two admission plug-ins add to every new pod.

The values are those that stored pods have beyond their manifests in the recorded runs
(`tests/data/golden/*/api/pods.jsonl`). The admission plug-ins (default tolerations, priority) run
when a pod is created, and when it is changed other than through a subresource.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kubeobjects.quantity import QuantityError, from_json, parse_nano

_TOLERATED_FOR_A_WHILE: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_S: Final = 300
_FILE_MODE: Final = 0o644
_TOKEN_S: Final = 3600
_POD: Final[dict[str, Any]] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}
_CONTAINER: Final[dict[str, Any]] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBE: Final[dict[str, Any]] = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_VOLUME_MODES: Final = ("configMap", "secret", "downwardAPI", "projected")
_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    rf"(?![0-9a-f]{{64}}$)(?:(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>\w+(?:[-_+.]\w+)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
"""The name of an image: registry, path, tag, digest. 64 digits are none, but an ID."""


def default_pod(pod: dict[str, Any], *, admission: bool = True) -> None:
    """Fill in, in place, the fields that the manifest leaves out. `admission`: also those of the
    admission plug-ins. Parts of a wrong type are left as they are, for validation."""
    spec = pod.setdefault("spec", {})
    if not isinstance(spec, dict):
        return
    for key, value in _POD.items():
        spec.setdefault(key, value)
    spec.setdefault("securityContext", {})
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    of_pod = spec.get("resources")
    if isinstance(of_pod, dict) and of_pod.get("limits"):
        of_pod["requests"] = {**of_pod["limits"], **(of_pod.get("requests") or {})}
    for container in _containers(spec):
        _default_container(container, host_network=bool(spec.get("hostNetwork")))
    for volume in _dicts(spec.get("volumes")):
        _default_volume(volume)
    if admission:
        spec.setdefault("priority", 0)
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
        _add_tolerations(spec)


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def _containers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for group in ("initContainers", "containers", "ephemeralContainers"):
        yield from _dicts(spec.get(group))


def _default_container(container: dict[str, Any], *, host_network: bool) -> None:
    for key, value in _CONTAINER.items():
        container.setdefault(key, value)
    container.setdefault("imagePullPolicy", _pull_policy(str(container.get("image", ""))))
    resources = container.setdefault("resources", {})
    for group in ("limits", "requests"):
        resources[group] = {
            name: _whole_milli(amount) for name, amount in (resources.get(group) or {}).items()
        }
        if not resources[group]:
            del resources[group]
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    for port in _dicts(container.get("ports")):
        port.setdefault("protocol", "TCP")
        if host_network and "containerPort" in port:
            port.setdefault("hostPort", port["containerPort"])
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(name), dict):
            container[name] = _PROBE | container[name]
            _default_handler(container[name])
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict):
            _default_handler(handler)
    for variable in _dicts(container.get("env")):
        source = (variable.get("valueFrom") or {}).get("fieldRef")
        if isinstance(source, dict):
            source.setdefault("apiVersion", "v1")


def _whole_milli(amount: Any) -> Any:
    """An amount without parts of a thousandth, which are rounded up."""
    try:
        return str(from_json(amount).in_thousandths())
    except QuantityError:
        return amount  # left to validation


def _default_handler(handler: dict[str, Any]) -> None:
    http = handler.get("httpGet")
    if isinstance(http, dict):
        http.setdefault("path", "/")
        http.setdefault("scheme", "HTTP")
    if isinstance(handler.get("grpc"), dict):
        handler["grpc"].setdefault("service", "")


def _pull_policy(image: str) -> str:
    """Images without tag and digest are the latest; what is no name of an image has no tag."""
    found = _IMAGE.fullmatch(image)
    tag = found and (found["tag"] or (None if found["digest"] else "latest"))
    return "Always" if tag == "latest" else "IfNotPresent"


def _default_volume(volume: dict[str, Any]) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for source in _VOLUME_MODES:
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", _FILE_MODE)
    projected = volume.get("projected")
    for part in [volume, *_dicts((projected or {}).get("sources"))]:
        if isinstance(part.get("serviceAccountToken"), dict):
            part["serviceAccountToken"].setdefault("expirationSeconds", _TOKEN_S)
        for item in _dicts((part.get("downwardAPI") or {}).get("items")):
            if isinstance(item.get("fieldRef"), dict):
                item["fieldRef"].setdefault("apiVersion", "v1")
            if isinstance(item.get("resourceFieldRef"), dict):
                item["resourceFieldRef"].setdefault("divisor", "0")
    image = volume.get("image")
    if isinstance(image, dict):
        image.setdefault("pullPolicy", _pull_policy(str(image.get("reference", ""))))
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")


def _add_tolerations(spec: dict[str, Any]) -> None:
    tolerations = spec.get("tolerations") or []
    added = [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _TOLERATION_S,
        }
        for key in _TOLERATED_FOR_A_WHILE
        if not any(_tolerates(toleration, key) for toleration in _dicts(tolerations))
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _tolerates(toleration: dict[str, Any], key: str) -> bool:
    right_key = toleration.get("key", "") in ("", key)
    return right_key and toleration.get("effect", "") in ("", "NoExecute")


def qos_class(spec: dict[str, Any]) -> str:
    """The QoS class, BestEffort, Burstable or Guaranteed: from the requests and limits of cpu and
    memory in the pod's own resources if it has any, else in those of its containers."""
    guaranteed = True
    anything = False
    containers = [*_dicts(spec.get("initContainers")), *_dicts(spec.get("containers"))]
    for owner in [spec] if spec.get("resources") is not None else containers:
        resources = owner.get("resources") or {}
        limits, requests = _amounts(resources.get("limits")), _amounts(resources.get("requests"))
        anything = anything or bool(limits or requests)
        for name in ("cpu", "memory"):
            if not limits.get(name) or requests.get(name, limits[name]) != limits[name]:
                guaranteed = False
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _amounts(listed: Any) -> dict[str, int]:
    """The positive amounts of cpu and memory; malformed ones are left to validation."""
    amounts = {}
    for name in ("cpu", "memory"):
        try:
            amount = parse_nano(str((listed or {}).get(name, "0")))
        except QuantityError:
            continue
        if amount > 0:
            amounts[name] = amount
    return amounts
