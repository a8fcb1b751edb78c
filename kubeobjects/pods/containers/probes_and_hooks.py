"""Checks probes, hooks, and what they do. Pure.

Rules: PROBE-003, PROBE-061. Upstream: validateProbe, validateHandler, validateLifecycle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from kubeobjects.causes import (
    Cause,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from kubeobjects.names import explained
from kubeobjects.pods.common.checks import Object, needed, not_negative, port

PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_NUMBERS: Final = (
    *("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold"),
    "failureThreshold",
)
_SCHEMES: Final = ("HTTP", "HTTPS")
_HEADER: Final = "[-A-Za-z0-9]+"
_HEADER_RULE: Final = explained(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)
_WITHOUT_OS: Final = "may not be set for containers with empty `spec.os.name`"
_SIGNALS: Final = {
    "windows": ("SIGKILL", "SIGTERM"),
    "linux": tuple(
        sorted(
            f"SIG{name}"
            for name in (
                *("ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO"),
                *("IOT", "KILL", "PIPE", "POLL", "PROF", "PWR", "QUIT", "SEGV", "STKFLT", "STOP"),
                *("SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU", "URG", "USR1", "USR2", "VTALRM"),
                *("WINCH", "XCPU", "XFSZ", "RTMIN", "RTMAX"),
                *(f"RTMIN+{i}" for i in range(1, 16)),
                *(f"RTMAX-{i}" for i in range(1, 15)),
            )
        )
    ),
}


def probe_and_hook_causes(
    container: Object, path: str, spec: Object, *, static: bool
) -> Iterator[Cause]:
    """What is wrong with the hooks, stop signal and probes of a container that may have some.
    `static`: the pod is a kubelet's own, of which the stop signal is looked at (an API server drops
    it)."""
    grace_s = spec.get("terminationGracePeriodSeconds")
    lifecycle, hooks_path = container.get("lifecycle") or {}, f"{path}.lifecycle"
    for name in ("postStart", "preStop"):
        if lifecycle.get(name) is not None:
            yield from _handler_causes(lifecycle[name], f"{hooks_path}.{name}", grace_s, _HOOKS)
    if static and lifecycle.get("stopSignal") is not None:
        yield from _signal_causes(lifecycle["stopSignal"], f"{hooks_path}.stopSignal", spec)
    for name in PROBES:
        if container.get(name) is not None:
            yield from _probe_causes(container[name], f"{path}.{name}", name)


def _signal_causes(signal: str, path: str, spec: Object) -> Iterator[Cause]:
    if spec.get("os") is None:
        yield forbidden_field(path, _WITHOUT_OS)
        return
    signals = _SIGNALS.get(spec["os"].get("name") or "")
    if signals is not None and signal not in signals:
        yield unsupported_value(path, signal, signals)


def _probe_causes(probe: Object, path: str, name: str) -> Iterator[Cause]:
    """What a probe does, and its numbers (PROBE-003)."""
    yield from _handler_causes(probe, path, None, _ACTIONS)
    for field in _NUMBERS:
        yield from not_negative(probe.get(field), f"{path}.{field}")
    grace_s, field = probe.get("terminationGracePeriodSeconds"), "terminationGracePeriodSeconds"
    if grace_s is not None and grace_s <= 0:
        yield invalid_value(f"{path}.{field}", grace_s, "must be greater than 0")
    if name == "readinessProbe":
        if grace_s is not None:
            text = "must not be set for readinessProbes"
            yield invalid_value(f"{path}.{field}", grace_s, text)
    elif probe.get("successThreshold") != 1:
        yield invalid_value(f"{path}.successThreshold", probe.get("successThreshold"), "must be 1")


_Check = Callable[[Object, str, int | None], Iterator[Cause]]


def _handler_causes(
    handler: Object, path: str, grace_s: int | None, kinds: dict[str, _Check]
) -> Iterator[Cause]:
    """Exactly one of the `kinds`. `grace_s`: of the pod, for hooks that sleep."""
    handlers = [kind for kind in kinds if handler.get(kind) is not None]
    if not handlers:
        yield required(path, "must specify a handler type")
    for kind in handlers[:1]:
        yield from kinds[kind](handler[kind], f"{path}.{kind}", grace_s)
    for kind in handlers[1:]:
        yield forbidden_field(f"{path}.{kind}", "may not specify more than 1 handler type")


def _exec(action: Object, path: str, _: int | None) -> Iterator[Cause]:
    yield from needed(action, "command", path)


def _http_get(action: Object, path: str, _: int | None) -> Iterator[Cause]:
    yield from needed(action, "path", path)
    yield from _with_port(action, path, None)
    scheme = action.get("scheme") or ""
    if scheme not in _SCHEMES:
        yield unsupported_value(f"{path}.scheme", scheme, _SCHEMES)
    for header in action.get("httpHeaders") or ():
        name = header.get("name") or ""
        if not re.fullmatch(_HEADER, name):
            yield invalid_value(f"{path}.httpHeaders", name, _HEADER_RULE)


def _with_port(action: Object, path: str, _: int | None) -> Iterator[Cause]:
    number = action.get("port")
    yield from port(0 if number is None else number, f"{path}.port")


def _sleep(action: Object, path: str, grace_s: int | None) -> Iterator[Cause]:
    seconds = action.get("seconds") or 0
    if grace_s is not None and not 0 <= seconds <= grace_s:
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
        yield invalid_value(path, seconds, text)


_ACTIONS: Final[dict[str, _Check]] = {
    "exec": _exec,
    "httpGet": _http_get,
    "tcpSocket": _with_port,
    "grpc": _with_port,
}
_HOOKS: Final[dict[str, _Check]] = {
    "exec": _exec,
    "httpGet": _http_get,
    "tcpSocket": _with_port,
    "sleep": _sleep,
}
