"""The rules of services: defaults, addresses and node ports, which come out of their names, so that
a service has the same ones in every run, and what is wrong with them.

An address is of 10.96.0.0/16; one that is given is kept. Two services may get the same one: nobody
routes to it here.
"""

from __future__ import annotations

import ipaddress
import zlib
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from fakekubeapi.resources.common.strategy import Object, Strategy
from fakekubeapi.resources.services.types import (
    OF_ADDRESSES,
    WITH_PORTS,
    drop_of_old_type,
    has_health_port,
    is_external,
)
from kubeobjects.addresses import IP_RULE
from kubeobjects.causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_texts,
    invalid_value,
    required,
    shown,
)
from kubeobjects.names import label_problems
from kubeobjects.pods.common.checks import needed, optional_word, port_number

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_POLICIES: Final = ("Cluster", "Local")
_AFFINITIES: Final = ("ClientIP", "None")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_RANGE: Final = ipaddress.ip_network("10.96.0.0/16")
_FIRST_PORT: Final = 30000
_PORTS: Final = 2768
_AFFINITY_S: Final = 10800


class ServiceStrategy(Strategy):
    """The rules. A kubelet lists services that have an address (`spec.clusterIP!=None`)."""

    returns_deleted = True
    looks = 3
    allow_create_on_update = True
    field_labels: ClassVar[tuple[str, ...]] = ("spec.clusterIP", "spec.type")

    def name_rule(self, name: str) -> list[str]:
        return label_problems(name)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}
        _default(obj["spec"])

    def admit(self, obj: Object) -> None:
        _give_addresses(obj)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        if subresource:
            return
        spec, was = new["spec"], old["spec"]
        _default(spec)
        if spec["type"] != "ExternalName" and was["type"] != "ExternalName":
            for field in OF_ADDRESSES:
                if field in was:
                    spec.setdefault(field, was[field])
        drop_of_old_type(spec, was)
        if spec["type"] in WITH_PORTS and was["type"] in WITH_PORTS:
            _keep_node_ports(spec, was)

    def validate_create(self, obj: Object) -> Iterator[Cause]:
        if address := list(_address_causes(obj["spec"])):
            yield from address  # addresses are chosen before all else is looked at
            return
        yield from super().validate_create(obj)
        yield from _causes(obj["spec"])

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        was, ip = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
        external = new["spec"]["type"] == "ExternalName"
        is_new = not subresource and ip and ip not in ("None", was) and not external
        if is_new and not _is_address(ip):
            yield from _address_causes(new["spec"])  # addresses are read before all else
            return
        yield from super().validate_update(new, old, subresource)
        if subresource:
            return
        if was and ip != was and new["spec"]["type"] != "ExternalName":
            text = "may not change once set"
            yield invalid_value("spec.clusterIPs[0]", [ip], text)
        yield from _causes(new["spec"])


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _default(spec: dict[str, Any]) -> None:
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.setdefault("sessionAffinityConfig", {})
        config.setdefault("clientIP", {}).setdefault("timeoutSeconds", _AFFINITY_S)
    spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if not port.get("targetPort"):
            port["targetPort"] = port["port"]
    if is_external(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] in ("ClusterIP", *WITH_PORTS):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "ExternalName" and spec.get("internalTrafficPolicy") in _POLICIES:
        del spec["internalTrafficPolicy"]  # it is checked, and means nothing
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _give_addresses(obj: Object) -> None:
    """Give the service what it has no value for: an address, families, node ports."""
    spec, metadata = obj["spec"], obj["metadata"]
    if spec["type"] not in ("ClusterIP", *WITH_PORTS):
        return
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    if not spec.get("clusterIP"):
        spec["clusterIP"] = str(_RANGE[256 + zlib.crc32(name.encode()) % 65000])
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    families = ["IPv4"]
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("ipFamilies", families)
    if spec["type"] in WITH_PORTS and spec.get("allocateLoadBalancerNodePorts", True):
        for i, port in enumerate(spec.get("ports") or ()):
            if not port.get("nodePort"):
                port["nodePort"] = _node_port(f"{name}/{i}")
    if has_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = _node_port(f"{name}/health")


def _node_port(name: str) -> int:
    return _FIRST_PORT + zlib.crc32(name.encode()) % _PORTS


def _keep_node_ports(spec: dict[str, Any], was: dict[str, Any]) -> None:
    ports = {(p["port"], p["protocol"]): p.get("nodePort") for p in was.get("ports") or ()}
    for port in spec.get("ports") or ():
        old = ports.get((port["port"], port["protocol"]))
        if old:
            port.setdefault("nodePort", old)


_PORT: Final = {
    **{"Name": "", "Protocol": "", "AppProtocol": None, "Port": 0, "TargetPort": 0},
    "NodePort": 0,
}
"""A port as messages show it."""


def _address_causes(spec: dict[str, Any]) -> Iterator[Cause]:
    """What is wrong with an address or family that was asked for; the first that cannot be given
    is all that is said."""
    if spec["type"] == "ExternalName":
        return
    families = spec.get("ipFamilies") or ["IPv4"]
    if families[0] != "IPv4":
        yield invalid_value("spec.ipFamilies[0]", families[0], "not configured on this cluster")
        return
    address = spec.get("clusterIP", "")
    if address in ("", "None"):
        return
    if not _is_address(address):
        yield invalid_value("spec.clusterIPs[0]", address, IP_RULE)
        return
    if ipaddress.ip_address(address) not in _RANGE:
        text = (
            f"failed to allocate IP {address}: the provided network does not match the current "
            "range"
        )
        yield invalid_value("spec.clusterIPs", [address], text)


def _external_causes(spec: dict[str, Any]) -> Iterator[Cause]:
    """What is wrong with a service that is only a name: it has no addresses."""
    addressed = bool(spec.get("clusterIPs") or spec.get("clusterIP"))
    is_set_of = {
        "clusterIPs": addressed,
        "ipFamilies": bool(spec.get("ipFamilies")),
        "ipFamilyPolicy": spec.get("ipFamilyPolicy") is not None,
    }
    text = "may not be set for ExternalName services"
    for name, is_set in is_set_of.items():
        if is_set:
            yield forbidden_field(f"spec.{name}", text)
    yield from needed(spec, "externalName", "spec")


def _causes(spec: dict[str, Any]) -> Iterator[Cause]:
    yield from _address_causes(spec)
    kind, ports = spec["type"], spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None" and kind != "ExternalName":
        yield required("spec.ports")
    if spec.get("clusterIP") == "None" and kind in WITH_PORTS:
        text = f"may not be set to 'None' for {kind} services"
        yield invalid_value("spec.clusterIPs[0]", "None", text)
    if kind == "ExternalName":
        yield from _external_causes(spec)
    names: set[str] = set()
    for i, port in enumerate(ports):
        yield from _port_causes(port, f"spec.ports[{i}]", names, named=len(ports) > 1)
    yield from optional_word(spec["sessionAffinity"], "spec.sessionAffinity", _AFFINITIES)
    yield from optional_word(kind, "spec.type", _TYPES)
    yield from _type_causes(spec)
    yield from _duplicate_ports(ports)
    yield from _policy_causes(spec)


def _type_causes(spec: dict[str, Any]) -> Iterator[Cause]:
    """What is wrong with the ports of a service that is not reached from outside."""
    text = "may not be used when `type` is 'ClusterIP'"
    for i, port in enumerate(spec.get("ports") or ()):
        if spec["type"] == "ClusterIP" and port.get("nodePort"):
            yield forbidden_field(f"spec.ports[{i}].nodePort", text)


def _policy_causes(spec: dict[str, Any]) -> Iterator[Cause]:
    """What is wrong with what a service says of load balancers and of the way of its traffic."""
    if "allocateLoadBalancerNodePorts" in spec and spec["type"] != "LoadBalancer":
        text = "may only be used when `type` is 'LoadBalancer'"
        yield forbidden_field("spec.allocateLoadBalancerNodePorts", text)
    outside, inside = (spec.get(f"{side}TrafficPolicy") for side in ("external", "internal"))
    if outside and not is_external(spec):
        text = "may only be set for externally-accessible services"
        yield invalid_value("spec.externalTrafficPolicy", outside, text)
    else:
        yield from optional_word(outside, "spec.externalTrafficPolicy", _POLICIES)
    yield from optional_word(inside, "spec.internalTrafficPolicy", _POLICIES)


def _port_causes(port: Object, path: str, names: set[str], *, named: bool) -> Iterator[Cause]:
    name = port.get("name", "")
    if not name and named:
        yield required(f"{path}.name")
    if name:
        yield from invalid_texts(f"{path}.name", name, label_problems(name))
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
    yield from port_number(port["port"], f"{path}.port")
    yield from optional_word(port["protocol"], f"{path}.protocol", _PROTOCOLS)
    if isinstance(port["targetPort"], int):
        yield from port_number(port["targetPort"], f"{path}.targetPort")


def _duplicate_ports(ports: list[Object]) -> Iterator[Cause]:
    pairs_seen: set[tuple[int, str]] = set()
    for i, port in enumerate(ports):
        key = (port["port"], port["protocol"])
        if key in pairs_seen:
            message = f"Duplicate value: {shown(dict(_PORT, Protocol=key[1], Port=key[0]))}"
            yield Cause(f"spec.ports[{i}]", message, "FieldValueDuplicate")
        pairs_seen.add(key)
