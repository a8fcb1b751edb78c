"""Where a kubelet, a pod and a service are. Pure.

Upstream: pkg/kubelet/client/kubelet_client.go; pkg/registry/core/{node,pod,service}:
ResourceLocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fakekubeapi.errors import StatusError, bad_request
from fakekubeapi.kubelets.options import KubeletOptions

Object = Mapping[str, Any]
_SCHEMES: Final = ("", "http", "https")


def kubelet_of(node: Object, options: KubeletOptions) -> tuple[str, int]:
    """Host and port of the node's kubelet. Raises: StatusError 500 for a node without an address of
    a type that is wanted."""
    status = node.get("status") or {}
    addresses = status.get("addresses") or []
    for address_type in options.preferred_address_types:
        for address in addresses:
            if address.get("type") == address_type:
                endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
                port = endpoint.get("Port") or 0
                return str(address["address"]), port if port > 0 else options.port
    listed = " ".join(f"{{{a.get('type')} {a.get('address')}}}" for a in addresses)
    words = f"no preferred addresses found; known addresses: [{listed}]"
    raise StatusError(500, words, reason="")


def parts_of(identity: str, kind: str) -> tuple[str, str, str]:
    """Scheme, name and port of `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`. Raises: StatusError 400.

    >>> parts_of("https:web:443", "pod")
    ('https', 'web', '443')
    """
    parts = identity.split(":")
    if len(parts) < 3:
        parts = ["", *parts, ""][:3]
    if len(parts) != 3 or parts[0] not in _SCHEMES or not parts[1]:
        raise bad_request(f'invalid {kind} request "{identity}"')
    return parts[0], parts[1], parts[2]


def pod_address(pod: Object, port: str) -> tuple[str, str]:
    """The pod's address, and the port, or the first that its containers name where none is given
    (then "" if there is none). Raises: StatusError 400 for a pod without an address."""
    addresses = (pod.get("status") or {}).get("podIPs") or []
    if not addresses:
        raise bad_request("address not allowed")
    named = [
        str(container_port["containerPort"])
        for container in pod["spec"].get("containers") or ()
        for container_port in container.get("ports") or ()
    ]
    return str(addresses[0]["ip"]), port or (named[0] if named else "")


def service_address(
    service: Object, pods: Iterable[Object], port: str, identity: str
) -> tuple[str, str]:
    """Address and port of a ready pod behind the service: the first by name. `port` is a name or a
    number; "": the port without a name. Raises: StatusError 503 where there is none."""
    name, spec = service["metadata"]["name"], service.get("spec") or {}
    row = _port_of(spec, name, port)
    ready = [pod for pod in pods if _is_behind(pod, spec.get("selector") or {})]
    if not ready:
        raise StatusError(503, f'no endpoints available for service "{name}"')
    for pod in sorted(ready, key=lambda pod_object: str(pod_object["metadata"]["name"])):
        number = None if row is None else _number(pod, row)
        if number is not None:
            return str(pod["status"]["podIPs"][0]["ip"]), str(number)
    raise StatusError(503, f'no endpoints available for service "{identity}"')


def _port_of(spec: Object, name: str, port: str) -> Object | None:
    rows: list[Object] = spec.get("ports") or []
    if not port.isdecimal():
        return next((row for row in rows if row.get("name", "") == port), None)
    for row in rows:
        if row.get("port") == int(port):
            return row
    raise StatusError(503, f'no service port {int(port)} found for service "{name}"')


def _is_behind(pod: Object, selector: Mapping[str, str]) -> bool:
    """Whether the service's traffic goes to that pod: its labels fit, it is ready, has an address
    and is not being deleted."""
    labels, status = pod["metadata"].get("labels") or {}, pod.get("status") or {}
    ready = any(
        row.get("type") == "Ready" and row.get("status") == "True"
        for row in status.get("conditions") or ()
    )
    is_reachable = bool(status.get("podIPs")) and "deletionTimestamp" not in pod["metadata"]
    fits = bool(selector) and all(labels.get(key) == value for key, value in selector.items())
    return fits and ready and is_reachable


def _number(pod: Object, row: Object) -> int | None:
    """The pod's port that a port of the service leads to; None: the pod has none of that name."""
    target = row.get("targetPort") or row["port"]
    if isinstance(target, int):
        return target
    for container in pod["spec"].get("containers") or ():
        for container_port in container.get("ports") or ():
            if container_port.get("name") == target:
                return int(container_port["containerPort"])
    return None
