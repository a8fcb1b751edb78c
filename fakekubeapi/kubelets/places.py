"""Where a request that is passed on goes: a decision of the objects in the store.

Upstream: pkg/registry/core/pod/strategy.go: LogLocation, streamLocation, PortForwardLocation,
ResourceLocation, and their like of nodes and services.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from msgspec import Struct

from fakekubeapi.errors import StatusError, bad_request, not_found
from fakekubeapi.kubelets.addresses import kubelet_of, parts_of, pod_address, service_address
from fakekubeapi.kubelets.log_options import log_query
from fakekubeapi.kubelets.options import KubeletOptions
from fakekubeapi.kubelets.paths import LOG, PROXY, Passed, check_method
from fakekubeapi.requests.parameters import is_true
from fakekubeapi.storage.changes import Key
from fakekubeapi.storage.store import Store

Object = Mapping[str, Any]
_GROUPS: Final = ("initContainers", "containers", "ephemeralContainers")
_STREAMS: Final = (("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty"))
"""The switches of exec and attach: the API server's word, the kubelet's."""


class Place(Struct, frozen=True):
    """Where a request goes. `host` "": nowhere, as the pod has no node yet, and there is no log."""

    scheme: str
    host: str
    port: int | None
    """None: the scheme's own."""
    path: str
    """Quoted; "" for the root of a proxy, to which clients are sent with a slash."""
    kubelet: bool = True
    """Whether a kubelet is there, and is shown the server's credentials."""
    query: str = ""
    """What a kubelet gets; a proxy passes on the client's."""
    verified: bool = True
    """False: the client does not care for the certificate (`insecureSkipTLSVerifyBackend`)."""

    @property
    def address(self) -> str:
        """Host and port as a URL has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def target(self) -> str:
        """Path and query, for a request line."""
        return (self.path or "/") + (f"?{self.query}" if self.query else "")


class Places(Struct, frozen=True):
    """Finds the place of a request, by the objects of `store`."""

    store: Store
    options: KubeletOptions

    def find(self, method: str, passed: Passed, query: Iterable[tuple[str, str]]) -> Place:
        """The place; `query`: the pairs of the client's query. Raises: StatusError."""
        check_method(passed, method)
        pairs = tuple(query)
        if passed.subresource == PROXY:
            return self._proxy(passed, pairs)
        params = dict(reversed(pairs))  # of several the first
        if passed.subresource == LOG:
            query_of_log = log_query(params, passed.name)
            return self._log(passed, params, query_of_log)
        pod = self._object("pods", passed.namespace, passed.name)
        if passed.subresource == "portforward":
            ports = ",".join(value for name, value in pairs if name == "ports")
            query_of_ports = [("port", ports)] if ports else []
            return self._kubelet(pod, "portForward", "", query_of_ports)
        container = container_of(pod, params.get("container", ""))
        return self._kubelet(pod, passed.subresource, container, _stream_query(pairs))

    def _log(self, passed: Passed, params: Object, query: list[tuple[str, str]]) -> Place:
        pod = self._object("pods", passed.namespace, passed.name)
        container = container_of(pod, params.get("container", ""))
        if not pod["spec"].get("nodeName"):
            return Place("https", "", None, "")
        careless = is_true(params.get("insecureSkipTLSVerifyBackend"))
        return self._kubelet(pod, "containerLogs", container, query, verified=not careless)

    def _kubelet(
        self,
        pod: Object,
        page: str,
        container: str,
        query: list[tuple[str, str]],
        *,
        verified: bool = True,
    ) -> Place:
        """A page of a pod at the kubelet of its node."""
        name = pod["metadata"]["name"]
        if not (node := pod["spec"].get("nodeName")):
            raise bad_request(f"pod {name} does not have a host assigned")
        host, port = kubelet_of(self._object("nodes", "", node), self.options)
        parts = [page, pod["metadata"]["namespace"], name, *([container] if container else [])]
        path = "".join(f"/{quote(part, safe='')}" for part in parts)
        return Place("https", host, port, path, query=urlencode(query), verified=verified)

    def _proxy(self, passed: Passed, pairs: tuple[tuple[str, str], ...]) -> Place:
        kind = {"pods": "pod", "nodes": "node", "services": "service"}[passed.plural]
        scheme, name, port = parts_of(passed.name, kind)
        path = passed.rest
        target = self._object(passed.plural, passed.namespace, name)
        if passed.plural == "nodes":
            host, own = kubelet_of(target, self.options)
            if port in ("", str(own)):
                return Place("https", host, own, path)
        elif passed.plural == "pods":
            host, port = pod_address(target, port)
        else:
            pods = self._pods(passed.namespace)
            host, port = service_address(target, pods, port, passed.name)
        return Place(scheme or "http", host, _number(port), path, kubelet=False)

    def _pods(self, namespace: str) -> list[Object]:
        keys = self.store.keys("pods", namespace)
        return [pod for key in keys if (pod := self.store.get(key)) is not None]

    def _object(self, plural: str, namespace: str, name: str) -> Object:
        obj = self.store.get(Key(plural, namespace, name))
        if obj is None:
            raise not_found(plural, name)
        return obj


def container_of(pod: Object, wanted: str) -> str:
    """The container that is meant; "" is the pod's only one. Raises: StatusError 400."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    every = [str(container["name"]) for group in _GROUPS for container in spec.get(group) or ()]
    containers = spec.get("containers") or []
    if wanted:
        if wanted not in every:
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(containers) == 1:
        return str(containers[0]["name"])
    words = f"a container name must be specified for pod {name}"
    if containers:
        words += f", choose one of: [{' '.join(every)}]"
    raise bad_request(words)


def _stream_query(pairs: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """The kubelet's query of an exec or attach, sorted by name."""
    params = dict(reversed(pairs))
    query = [("command", value) for name, value in pairs if name == "command"]
    query += [(flag, "1") for name, flag in _STREAMS if is_true(params.get(name))]
    return sorted(query, key=lambda pair: pair[0])


def _number(port: str) -> int | None:
    if not port:
        return None
    if not port.isdecimal() or int(port) > 65535:
        raise StatusError(
            503, f"error trying to reach service: dial tcp: lookup {port}: unknown port"
        )
    return int(port)
