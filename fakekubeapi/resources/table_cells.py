"""What stands in the columns of tables, which `kubectl get` shows. Pure.

`CELLS` has a cell for each column that `kinds.txt` gives a kind: the path of a field, with what is
shown where it is not there (`spec.volumeMode=<unset>`; nothing by default), or a function.
Upstream: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

Object = dict[str, Any]
Cell = str | Callable[[Object], Any]
_NONE: Final = "<none>"
_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"))
_ROLE: Final = "node-role.kubernetes.io/"


class Moment(str):
    """A cell that shows how long ago an instant was."""


def cell(item: Object, of: Cell, now: datetime) -> Any:
    """What a cell shows of an object; `now` is for ages."""
    value = _read(item, of)
    return age(value, now) if isinstance(value, Moment) else value


def _read(item: Object, of: Cell) -> Any:
    return _at(item, of) if isinstance(of, str) else of(item)


def age(time: str, now: datetime) -> str:
    """How long ago that was, in kubectl's short form: `45s`, `3m`, `2d`."""
    if not time:
        return "<unknown>"
    return short_duration(int((now - datetime.fromisoformat(time)).total_seconds()))


def short_duration(seconds: int) -> str:
    """`45s`, `3m`, `2d`."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"


def _at(item: Object, path: str) -> Any:
    """What is at a path; without a default `""`, which as a list is empty, too."""
    path, _, default = path.partition("=")
    value: Any = item
    for name in path.split("."):
        value = (value or {}).get(name)
    return default if value is None else value


def _age(item: Object) -> Moment:
    return Moment(item["metadata"].get("creationTimestamp", ""))


def _size(*paths: str) -> Cell:
    """How many parts there are in the lists and maps at these paths."""
    return lambda item: sum(len(_at(item, path)) for path in paths)


def _joined(path: str, default: str = "") -> Cell:
    return lambda item: ",".join(_at(item, path)) or default


def _phase(item: Object) -> Any:
    return "Terminating" if "deletionTimestamp" in item["metadata"] else _at(item, "status.phase")


def _modes(item: Object, path: str = "spec.accessModes") -> str:
    return ",".join(_MODES.get(mode, mode) for mode in _at(item, path))


# -- services, claims, volumes, drivers --------------------------------------------------------


def _ports(service: Object) -> str:
    ports = [
        f"{p['port']}{':' + str(p['nodePort']) if p.get('nodePort') else ''}/{p['protocol']}"
        for p in _at(service, "spec.ports")
    ]
    return ",".join(ports) or _NONE


def _selector(service: Object) -> str:
    selector = _at(service, "spec.selector") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items())) or _NONE


def _external(service: Object) -> str:
    """The column External-IP."""
    spec = service["spec"]
    external_ips = spec.get("externalIPs") or []
    if spec["type"] == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec["type"] != "LoadBalancer":
        return ",".join(external_ips) or _NONE
    ingress = _at(service, "status.loadBalancer.ingress") or ()
    ingress_addresses = [entry.get("ip") or entry.get("hostname", "") for entry in ingress]
    return ",".join([*ingress_addresses, *external_ips]) or "<pending>"


def _if_bound(of: Cell) -> Cell:
    """What is shown of a claim that has a volume."""
    return lambda claim: _read(claim, of) if claim["spec"].get("volumeName") else ""


def _claim_of(volume: Object) -> str:
    claim = volume["spec"].get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _audiences(driver: Object) -> str:
    tokens = driver["spec"].get("tokenRequests")
    return ",".join(token["audience"] for token in tokens) if tokens else "<unset>"


# -- nodes -------------------------------------------------------------------------------------


def _node_status(node: Object) -> str:
    conditions = {c["type"]: c["status"] for c in _at(node, "status.conditions")}
    words = {"True": "Ready", None: "Unknown"}
    status = words.get(conditions.get("Ready"), "NotReady")
    return status + (",SchedulingDisabled" if _at(node, "spec.unschedulable") else "")


def _roles(node: Object) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(roles - {""})) or _NONE


def _address(kind: str) -> Cell:
    def read(node: Object) -> str:
        addresses = _at(node, "status.addresses")
        return next((str(a["address"]) for a in addresses if a["type"] == kind), _NONE)

    return read


def _info(field: str) -> Cell:
    return lambda node: _at(node, f"status.nodeInfo.{field}") or "<unknown>"


def _kernel(node: Object) -> str:
    info = _at(node, "status.nodeInfo") or {}
    architecture = f" ({info['architecture']})" if info.get("architecture") else ""
    return (info.get("kernelVersion") or "<unknown>") + architecture


# -- events ------------------------------------------------------------------------------------


def _first_seen(event: Object) -> Moment:
    return Moment(event.get("firstTimestamp") or event.get("eventTime") or "")


def _last_seen(event: Object) -> Moment:
    if event.get("series"):
        return Moment(event["series"].get("lastObservedTime") or "")
    return Moment(event.get("lastTimestamp") or _first_seen(event))


def _about(event: Object) -> str:
    kind, name = _at(event, "involvedObject.kind").lower(), _at(event, "involvedObject.name")
    return f"{kind}/{name}" if name else kind


def _source(event: Object) -> str:
    component = _at(event, "source.component") or event.get("reportingComponent", "")
    host = _at(event, "source.host") or event.get("reportingInstance", "")
    return ", ".join(part for part in (component, host) if part)


def _count(event: Object) -> Any:
    return event["series"]["count"] if event.get("series") else event.get("count") or 1


# -- pods --------------------------------------------------------------------------------------


def _ready(pod: Object) -> str:
    ready = sum(1 for container in _at(pod, "status.containerStatuses") if container.get("ready"))
    return f"{ready}/{len(_at(pod, 'spec.containers'))}"


def _restarts(pod: Object) -> str:
    statuses = _at(pod, "status.containerStatuses")
    return str(sum(container.get("restartCount", 0) for container in statuses))


def _gates(pod: Object) -> str:
    gates = _at(pod, "spec.readinessGates")
    met = {c["type"] for c in _at(pod, "status.conditions") if c["status"] == "True"}
    return f"{sum(gate['conditionType'] in met for gate in gates)}/{len(gates)}" if gates else _NONE


def _pod_status(pod: Object) -> str:
    """The column Status: the reason of a container or of the pod, else the phase."""
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    status = pod.get("status") or {}
    status_text = status.get("reason") or status.get("phase", "Unknown")
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            status_text = "SchedulingGated"
    for container in status.get("containerStatuses") or ():
        for kind in ("waiting", "terminated"):
            status_text = _at(container, f"state.{kind}.reason") or status_text
    return str(status_text)


# -- requests for certificates, claims on devices ----------------------------------------------


def _request_state(request: Object) -> str:
    types = {condition["type"] for condition in _at(request, "status.conditions")}
    state = next((word for word in ("Denied", "Approved") if word in types), "Pending")
    issued = ",Issued" if _at(request, "status.certificate") else ""
    return state + (",Failed" if "Failed" in types else "") + issued


def _requested_duration(request: Object) -> str:
    seconds = request["spec"].get("expirationSeconds")
    return _NONE if seconds is None else short_duration(seconds)


def _device_claim_state(claim: Object) -> str:
    deleted = "deletionTimestamp" in claim["metadata"]
    allocated = bool(_at(claim, "status.allocation"))
    states = {
        "deleted": deleted,
        "pending": not deleted and not allocated,
        "allocated": allocated,
        "reserved": allocated and bool(_at(claim, "status.reservedFor")),
    }
    return ",".join(state for state, holds in states.items() if holds)


_NAME: Final = "metadata.name"
_CLASSES: Final = ("spec.storageClassName", "spec.volumeAttributesClassName=<unset>")
CELLS: Final[dict[str, tuple[Cell, ...]]] = {
    "pods": (
        *(_NAME, _ready, _pod_status, _restarts, _age, "status.podIP=<none>"),
        *("spec.nodeName=<none>", "status.nominatedNodeName=<none>", _gates),
    ),
    "nodes": (
        *(_NAME, _node_status, _roles, _age, "status.nodeInfo.kubeletVersion"),
        *(_address("InternalIP"), _address("ExternalIP"), _info("osImage"), _kernel),
        _info("containerRuntimeVersion"),
    ),
    "namespaces": (_NAME, "status.phase", _age),
    "events": (
        *(_last_seen, "type", "reason", _about, "involvedObject.fieldPath", _source),
        *(lambda event: event.get("message", "").strip(), _first_seen, _count, _NAME),
    ),
    "configmaps": (_NAME, _size("data", "binaryData"), _age),
    "secrets": (_NAME, "type", _size("data"), _age),
    "services": (
        *(_NAME, "spec.type", lambda service: (_at(service, "spec.clusterIPs") or [_NONE])[0]),
        *(_external, _ports, _age, _selector),
    ),
    "serviceaccounts": (_NAME, _age),
    "persistentvolumes": (
        *(_NAME, "spec.capacity.storage=0", _modes, "spec.persistentVolumeReclaimPolicy"),
        *(_phase, _claim_of, *_CLASSES, "status.reason", _age, "spec.volumeMode=<unset>"),
    ),
    "persistentvolumeclaims": (
        *(_NAME, _phase, "spec.volumeName", _if_bound("status.capacity.storage=0")),
        _if_bound(lambda claim: _modes(claim, "status.accessModes")),
        *(*_CLASSES, _age, "spec.volumeMode=<unset>"),
    ),
    "leases.coordination.k8s.io": (_NAME, "spec.holderIdentity", _age),
    "resourceclaims.resource.k8s.io": (_NAME, _device_claim_state, _age),
    "runtimeclasses.node.k8s.io": (_NAME, "handler", _age),
    "priorityclasses.scheduling.k8s.io": (
        *(_NAME, "value", lambda item: item.get("globalDefault", False), _age),
        "preemptionPolicy",
    ),
    "csidrivers.storage.k8s.io": (
        *(_NAME, "spec.attachRequired", "spec.podInfoOnMount", "spec.storageCapacity"),
        *(_audiences, "spec.requiresRepublish", _joined("spec.volumeLifecycleModes", _NONE), _age),
    ),
    "csinodes.storage.k8s.io": (_NAME, _size("spec.drivers"), _age),
    "volumeattachments.storage.k8s.io": (
        *(_NAME, "spec.attacher", "spec.source.persistentVolumeName", "spec.nodeName"),
        *("status.attached", _age),
    ),
    "certificatesigningrequests.certificates.k8s.io": (
        *(_NAME, _age, "spec.signerName=<none>", "spec.username", _requested_duration),
        _request_state,
    ),
    "clustertrustbundles.certificates.k8s.io": (_NAME, "spec.signerName=<none>"),
}
"""By the qualified name of the kind."""
