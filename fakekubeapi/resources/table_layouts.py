"""The columns of tables by kind, and what stands in them: what `kubectl get` shows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

Object = dict[str, Any]
Cells = list[Any]
Layout = tuple[list[tuple[str, int]], Callable[[Object, datetime], Cells]]
_NONE: Final = "<none>"
_UNSET: Final = "<unset>"
_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"))
_ROLE: Final = "node-role.kubernetes.io/"


def age(time: str | None, now: datetime) -> str:
    """How long ago that was, in kubectl's short form: `45s`, `3m`, `2d`."""
    if not time:
        return "<unknown>"
    seconds = int((now - datetime.fromisoformat(time)).total_seconds())
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"


def _age(item: Object, now: datetime) -> str:
    return age(item["metadata"].get("creationTimestamp"), now)


def _columns(text: str, wide: str = "") -> list[tuple[str, int]]:
    """Columns of texts with commas; those of `wide` are shown on demand."""
    named = [(name.strip(), 0) for name in text.split(",")]
    return named + [(name.strip(), 1) for name in wide.split(",") if name]


def _plain(item: Object, now: datetime) -> Cells:
    return [item["metadata"]["name"], _age(item, now)]


def _config_map(item: Object, now: datetime) -> Cells:
    count = len(item.get("data") or ()) + len(item.get("binaryData") or ())
    return [item["metadata"]["name"], count, _age(item, now)]


def _secret(item: Object, now: datetime) -> Cells:
    count = len(item.get("data") or ())
    return [item["metadata"]["name"], item.get("type", ""), count, _age(item, now)]


def _lease(item: Object, now: datetime) -> Cells:
    holder = (item.get("spec") or {}).get("holderIdentity", "")
    return [item["metadata"]["name"], holder, _age(item, now)]


def _namespace(item: Object, now: datetime) -> Cells:
    phase = (item.get("status") or {}).get("phase", "")
    return [item["metadata"]["name"], phase, _age(item, now)]


def _service(item: Object, now: datetime) -> Cells:
    spec = item["spec"]
    ports = [
        f"{p['port']}{':' + str(p['nodePort']) if p.get('nodePort') else ''}/{p['protocol']}"
        for p in spec.get("ports") or ()
    ]
    selector = ",".join(f"{k}={v}" for k, v in sorted((spec.get("selector") or {}).items()))
    return [
        item["metadata"]["name"],
        spec["type"],
        (spec.get("clusterIPs") or [_NONE])[0],
        _external(item),
        ",".join(ports) or _NONE,
        _age(item, now),
        selector or _NONE,
    ]


def _external(service: Object) -> str:
    """The column External-IP."""
    spec = service["spec"]
    external_ips = spec.get("externalIPs") or []
    if spec["type"] == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec["type"] != "LoadBalancer":
        return ",".join(external_ips) or _NONE
    ingress = (service.get("status") or {}).get("loadBalancer", {}).get("ingress") or ()
    ingress_addresses = [entry.get("ip") or entry.get("hostname", "") for entry in ingress]
    return ",".join([*ingress_addresses, *external_ips]) or "<pending>"


def _claim(item: Object, now: datetime) -> Cells:
    spec, status = item["spec"], item.get("status") or {}
    deleted = "deletionTimestamp" in item["metadata"]
    bound = bool(spec.get("volumeName"))
    modes = ",".join(_MODES.get(mode, mode) for mode in status.get("accessModes") or ())
    return [
        item["metadata"]["name"],
        "Terminating" if deleted else status.get("phase", ""),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        modes if bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName", _UNSET),
        _age(item, now),
        spec.get("volumeMode", _UNSET),
    ]


def _volume(item: Object, now: datetime) -> Cells:
    spec, status = item["spec"], item.get("status") or {}
    claim = spec.get("claimRef")
    deleted = "deletionTimestamp" in item["metadata"]
    return [
        item["metadata"]["name"],
        (spec.get("capacity") or {}).get("storage", "0"),
        ",".join(_MODES.get(mode, mode) for mode in spec.get("accessModes") or ()),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if deleted else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName", _UNSET),
        status.get("reason", ""),
        _age(item, now),
        spec.get("volumeMode", _UNSET),
    ]


def _driver(item: Object, now: datetime) -> Cells:
    spec = item["spec"]
    tokens = spec.get("tokenRequests")
    return [
        item["metadata"]["name"],
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        ",".join(token["audience"] for token in tokens) if tokens else _UNSET,
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or _NONE,
        _age(item, now),
    ]


def _node_drivers(item: Object, now: datetime) -> Cells:
    return [item["metadata"]["name"], len(item["spec"]["drivers"] or ()), _age(item, now)]


def _attachment(item: Object, now: datetime) -> Cells:
    spec = item["spec"]
    return [
        item["metadata"]["name"],
        spec["attacher"],
        spec["source"].get("persistentVolumeName", ""),
        spec["nodeName"],
        item["status"]["attached"],
        _age(item, now),
    ]


def _node(node: Object, now: datetime) -> Cells:
    status, metadata = node.get("status") or {}, node["metadata"]
    conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
    words = {"True": "Ready", None: "Unknown"}
    status_text = words.get(conditions.get("Ready"), "NotReady")
    if (node.get("spec") or {}).get("unschedulable"):
        status_text += ",SchedulingDisabled"
    labels = metadata.get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or "<unknown>"
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        metadata["name"],
        status_text,
        ",".join(sorted(roles - {""})) or _NONE,
        _age(node, now),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _address(status: Object, kind: str) -> str:
    addresses = [a["address"] for a in status.get("addresses") or () if a["type"] == kind]
    return addresses[0] if addresses else _NONE


def _event(event: Object, now: datetime) -> Cells:
    about, source = event.get("involvedObject") or {}, event.get("source") or {}
    series = event.get("series")
    first = age(event.get("firstTimestamp") or event.get("eventTime"), now)
    last = age(event["lastTimestamp"], now) if event.get("lastTimestamp") else first
    if series:
        last = age(series.get("lastObservedTime"), now)
    kind, name = about.get("kind", "").lower(), about.get("name", "")
    parts = [source.get("component") or event.get("reportingComponent", "")]
    parts.append(source.get("host") or event.get("reportingInstance", ""))
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        about.get("fieldPath", ""),
        ", ".join(part for part in parts if part),
        event.get("message", "").strip(),
        first,
        series["count"] if series else event.get("count") or 1,
        event["metadata"]["name"],
    ]


def _pod(pod: Object, now: datetime) -> Cells:
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    containers = status.get("containerStatuses") or []
    ready = sum(1 for container in containers if container.get("ready"))
    restarts = sum(container.get("restartCount", 0) for container in containers)
    return [
        pod["metadata"]["name"],
        f"{ready}/{len(spec.get('containers') or ())}",
        _pod_status(pod),
        str(restarts),
        _age(pod, now),
        status.get("podIP", _NONE),
        spec.get("nodeName", _NONE),
        status.get("nominatedNodeName", _NONE),
        _gates(spec.get("readinessGates") or (), status),
    ]


def _gates(gates: Sequence[Object], status: Object) -> str:
    if not gates:
        return _NONE
    met = {c["type"] for c in status.get("conditions") or () if c["status"] == "True"}
    return f"{sum(gate['conditionType'] in met for gate in gates)}/{len(gates)}"


def _pod_status(pod: Object) -> str:
    """The column Status: the reason of a container or of the pod, else the phase."""
    status = pod.get("status") or {}
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    status_text = status.get("reason") or status.get("phase", "Unknown")
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            status_text = "SchedulingGated"
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        for kind in ("waiting", "terminated"):
            status_text = (state.get(kind) or {}).get("reason") or status_text
    return str(status_text)


PLAIN: Final[Layout] = (_columns("Name,Age"), _plain)
LAYOUTS: Final[dict[str, Layout]] = {
    "pods": (
        _columns("Name,Ready,Status,Restarts,Age", "IP,Node,Nominated Node,Readiness Gates"),
        _pod,
    ),
    "nodes": (
        _columns(
            "Name,Status,Roles,Age,Version",
            "Internal-IP,External-IP,OS-Image,Kernel-Version,Container-Runtime",
        ),
        _node,
    ),
    "events": (
        [
            *_columns("Last Seen,Type,Reason,Object", "Subobject,Source"),
            *_columns("Message", "First Seen,Count,Name"),
        ],
        _event,
    ),
    "configmaps": (_columns("Name,Data,Age"), _config_map),
    "secrets": (_columns("Name,Type,Data,Age"), _secret),
    "namespaces": (_columns("Name,Status,Age"), _namespace),
    "services": (
        _columns("Name,Type,Cluster-IP,External-IP,Port(s),Age", "Selector"),
        _service,
    ),
    "leases.coordination.k8s.io": (_columns("Name,Holder,Age"), _lease),
    "persistentvolumeclaims": (
        _columns(
            "Name,Status,Volume,Capacity,Access Modes,StorageClass,VolumeAttributesClass,Age",
            "VolumeMode",
        ),
        _claim,
    ),
    "persistentvolumes": (
        _columns(
            "Name,Capacity,Access Modes,Reclaim Policy,Status,Claim,StorageClass,"
            "VolumeAttributesClass,Reason,Age",
            "VolumeMode",
        ),
        _volume,
    ),
    "csidrivers.storage.k8s.io": (
        _columns(
            "Name,AttachRequired,PodInfoOnMount,StorageCapacity,TokenRequests,RequiresRepublish,"
            "Modes,Age"
        ),
        _driver,
    ),
    "csinodes.storage.k8s.io": (_columns("Name,Drivers,Age"), _node_drivers),
    "volumeattachments.storage.k8s.io": (
        _columns("Name,Attacher,PV,Node,Attached,Age"),
        _attachment,
    ),
}
TYPES: Final = {
    **dict.fromkeys(("AttachRequired", "PodInfoOnMount", "StorageCapacity"), "boolean"),
    **dict.fromkeys(("RequiresRepublish", "Attached"), "boolean"),
    "Drivers": "integer",
}
"""The columns that hold no texts."""
NAMES: Final = frozenset(("Name", "Attacher"))
"""The columns that hold the names of objects."""
