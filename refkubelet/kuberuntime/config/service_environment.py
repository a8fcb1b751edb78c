"""The variables with the addresses of services (LIFE-137). Pure.

Upstream: pkg/kubelet/envvars/envvars.go; kubelet_pods.go: getServiceEnvVarMap.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lightkube.models.core_v1 import Service, ServicePort

DEFAULT_NAMESPACE: Final = "default"
MASTER_SERVICES: Final = ("kubernetes",)
NO_ADDRESS: Final = (None, "", "None")


def service_environment(
    services: Iterable[Service], namespace: str, *, links: bool
) -> dict[str, str]:
    """The variables of a pod in `namespace`: for the service default/kubernetes, and with `links`
    (enableServiceLinks) for the services of its namespace, which override equal names. Services
    without a cluster IP are left out."""
    chosen: dict[str, Service] = {}
    for service in services:
        meta = service.metadata
        if meta is None or service.spec is None or service.spec.clusterIP in NO_ADDRESS:
            continue
        name = meta.name or ""
        if meta.namespace == DEFAULT_NAMESPACE and name in MASTER_SERVICES:
            chosen.setdefault(name, service)
        elif meta.namespace == namespace and links:
            chosen[name] = service
    result: dict[str, str] = {}
    for name in sorted(chosen):
        result.update(_variables(name, chosen[name]))
    return result


def _variables(name: str, service: Service) -> dict[str, str]:
    """The variables of one service: the `_SERVICE_` form, then that of linked containers."""
    spec = service.spec
    ports = (spec.ports or ()) if spec is not None else ()
    address = (spec.clusterIP or "") if spec is not None else ""
    prefix = variable_name(name)
    result = {f"{prefix}_SERVICE_HOST": address}
    if ports:
        result[f"{prefix}_SERVICE_PORT"] = str(ports[0].port)
    for port in ports:
        if port.name:
            result[f"{prefix}_SERVICE_PORT_{variable_name(port.name)}"] = str(port.port)
    for port in reversed(ports):  # the first port gives the short name
        result[f"{prefix}_PORT"] = _url(port, address)
    for port in ports:
        result.update(_link(prefix, port, address))
    return result


def _link(prefix: str, port: ServicePort, address: str) -> dict[str, str]:
    protocol = port.protocol or "TCP"
    name = f"{prefix}_PORT_{port.port}_{protocol.upper()}"
    return {
        name: _url(port, address),
        f"{name}_PROTO": protocol.lower(),
        f"{name}_PORT": str(port.port),
        f"{name}_ADDR": address,
    }


def _url(port: ServicePort, address: str) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"{(port.protocol or 'TCP').lower()}://{host}:{port.port}"


def variable_name(text: str) -> str:
    """The begin of the variables' names.

    >>> variable_name("my-shop")
    'MY_SHOP'
    """
    return text.replace("-", "_").upper()
