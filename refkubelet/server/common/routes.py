"""Which handler a path has on which port, and the answers to paths and methods that have none.
Pure.

Rules: SRV-002, SRV-010. Two kinds of entries, as upstream: web services, which check methods and
cut their paths into parts, and single paths with any method. A path that is not clean (`..`, `//`)
is answered with a redirection to the clean one, so none reaches a handler.
Upstream: pkg/kubelet/server/server.go: NewServer.
"""

from __future__ import annotations

import html
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.server.common.exchange import Answer, error, text

ANY: Final = frozenset[str]()
GET: Final = frozenset({"GET"})
POST: Final = frozenset({"POST"})
GET_POST: Final = frozenset({"GET", "POST"})
HTML: Final = "text/html; charset=utf-8"
NO_PAGE: Final = "404 page not found"
NO_ROUTE: Final = "404: Page Not Found"
WRONG_METHOD: Final = "405: Method Not Allowed"
DEBUG_DISABLED: Final = "Debug endpoints are disabled."


class Service(Struct, frozen=True):
    """A root path, the names of the parts below it, one tuple for each form, and its methods.
    `handler` is its name; `rest`: everything below the root is one part."""

    root: str
    handler: str
    methods: frozenset[str]
    forms: tuple[tuple[str, ...], ...] = ((),)
    rest: bool = False
    below: str = ""
    """The only path below the root; "": the parts."""
    slash: bool = False
    """The root alone is answered with a redirection to the one with a slash."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes: the handler's name and the named parts of its path. `template`: the
    path with upstream's names for the parts, of a web service; "" for a single path."""

    handler: str
    parts: Mapping[str, str]
    template: str = field(default="", compare=False)


NAMES_IN_TEMPLATES: Final = {
    "namespace": "podNamespace",
    "pod": "podID",
    "uid": "uid",
    "container": "containerName",
    "path": "logpath:*",
}
OF_CONTAINER: Final = (("namespace", "pod", "container"),)
OF_CONTAINER_OR_UID: Final = (*OF_CONTAINER, ("namespace", "pod", "uid", "container"))
OF_POD: Final = (("namespace", "pod"), ("namespace", "pod", "uid"))
EVERYWHERE: Final = (
    Service("/pods", "pods", GET),
    Service("/stats", "summary", GET_POST, below="summary"),
)
WITH_DEBUG: Final = (
    Service("/run", "run", POST, OF_CONTAINER_OR_UID),
    Service("/exec", "exec", GET_POST, OF_CONTAINER_OR_UID),
    Service("/attach", "attach", GET_POST, OF_CONTAINER_OR_UID),
    Service("/portForward", "portForward", GET_POST, OF_POD),
    Service("/containerLogs", "containerLogs", GET, OF_CONTAINER),
    Service("/runningpods", "runningpods", GET, slash=True),
)
LOGS: Final = Service("/logs", "logs", GET, rest=True, slash=True)
CHECKPOINT: Final = Service("/checkpoint", "checkpoint", POST, OF_CONTAINER)
PLAIN: Final = {
    "/metrics": "metrics",
    "/metrics/cadvisor": "metrics/cadvisor",
    "/metrics/resource": "metrics/resource",
    "/metrics/probes": "metrics/probes",
}
DISABLED_WITHOUT_DEBUG: Final = (
    *("/run", "/exec", "/attach", "/portForward", "/containerLogs", "/runningpods"),
    *("/debug/pprof", "/logs"),
)


class Routes(Struct, frozen=True):
    """The paths of one port. `plain`: path -> handler; `disabled`: root -> the words of its 405."""

    services: tuple[Service, ...]
    plain: Mapping[str, str]
    disabled: Mapping[str, str]

    @property
    def roots(self) -> frozenset[str]:
        """The first parts of all paths, and what is below /metrics."""
        plain = (path.removeprefix("/") for path in self.plain)
        single = (p if p.startswith("metrics") else p.partition("/")[0] for p in plain)
        return frozenset((*single, *(service.root.removeprefix("/") for service in self.services)))

    def find(self, method: str, path: str) -> Route | Answer:
        """The handler of a request; an answer where there is none."""
        if (moved := _moved(path)) is not None:
            return moved
        if (handler := self.plain.get(path)) is not None:
            return Route(handler, {})
        for root, words in self.disabled.items():
            if path.startswith(f"{root}/"):
                return error(405, words)
        for service in self.services:
            if path == service.root or path.startswith(f"{service.root}/"):
                return _in(service, method, path)
        return error(404, NO_PAGE)


def _moved(path: str) -> Answer | None:
    """The redirection of a path that is not clean; None for a clean one."""
    clean = posixpath.normpath(f"/{path.lstrip('/')}")
    if path.endswith("/") and clean != "/":
        clean += "/"
    if clean == path:
        return None
    return moved_to(clean)


def moved_to(path: str) -> Answer:
    """The redirection to another path of this port."""
    place = quote(path)
    page = f'<a href="{html.escape(place)}">Temporary Redirect</a>.\n\n'
    return Answer(status=307, body=page.encode(), content_type=HTML, headers={"Location": place})


def _in(service: Service, method: str, path: str) -> Route | Answer:
    if path == service.root and service.slash:
        return moved_to(f"{path}/")
    rest = path[len(service.root) :].strip("/")
    if service.rest:
        parts: Mapping[str, str] | None = {"path": rest}
    elif service.below:
        parts = {} if rest == service.below else None
    else:
        values = rest.split("/") if rest else []
        form = next((f for f in service.forms if len(f) == len(values)), None)
        parts = None if form is None else dict(zip(form, values, strict=True))
    if parts is None:
        return text(NO_ROUTE, 404)
    if service.methods and method not in service.methods:
        return text(WRONG_METHOD, 405)
    return Route(service.handler, parts, _template(service, parts))


def _template(service: Service, parts: Mapping[str, str]) -> str:
    """
    >>> _template(LOGS, {"path": "a/b"}), _template(LOGS, {"path": ""})
    ('/logs/{logpath:*}', '/logs/')
    """
    if service.below:
        return f"{service.root}/{service.below}"
    if service.rest and not parts["path"]:
        return f"{service.root}/"
    below = "/".join(f"{{{NAMES_IN_TEMPLATES[name]}}}" for name in parts)
    return f"{service.root}/{below}"


def main_routes(config: KubeletConfiguration, checks: tuple[str, ...]) -> Routes:
    """The paths of the main port. `checks`: the names of the health checks."""
    plain = {**PLAIN, **_health(checks)}
    if not config.enable_debugging_handlers:
        return Routes(EVERYWHERE, plain, _disabled())
    plain["/configz"] = "configz"
    services: tuple[Service, ...] = (*EVERYWHERE, *WITH_DEBUG)
    disabled = {}
    if config.enable_system_log_handler:
        services = (*services, LOGS)
    else:
        disabled["/logs"] = "logs endpoint is disabled."
    if not config.enable_profiling_handler:
        disabled["/debug/pprof"] = "profiling endpoint is disabled."
    if config.feature_gates.get("ContainerCheckpoint", True):
        services = (*services, CHECKPOINT)
    return Routes(services, plain, disabled)


def read_only_routes(checks: tuple[str, ...]) -> Routes:
    """The paths of the read-only port (SRV-010)."""
    return Routes(EVERYWHERE, {**PLAIN, **_health(checks)}, _disabled())


def healthz_routes() -> Routes:
    """The paths of the healthz port (SRV-002)."""
    return Routes((), {"/healthz": "alive", "/healthz/ping": "alive"}, {})


def _health(checks: tuple[str, ...]) -> dict[str, str]:
    return {"/healthz": "healthz", **{f"/healthz/{name}": "healthz/one" for name in checks}}


def _disabled() -> dict[str, str]:
    return dict.fromkeys(DISABLED_WITHOUT_DEBUG, DEBUG_DISABLED)
