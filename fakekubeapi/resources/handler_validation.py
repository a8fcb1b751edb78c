"""What is wrong with the probes and hooks of a container. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from fakekubeapi.resources.checks import needed, not_negative, one_of, port_causes
from kubeobjects.causes import Cause, forbidden_field, invalid_value, required
from kubeobjects.names import explained

Object = dict[str, Any]
_KINDS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_HEADER: Final = "[-A-Za-z0-9]+"
_HEADER_RULE: Final = explained(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)


def probe_causes(container: Object, path: str, grace_s: int) -> list[Cause]:
    """What is wrong with lifecycle and probes."""
    causes: list[Cause] = []
    for name in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(name)
        if handler is not None:
            causes += _handler_causes(handler, f"{path}.lifecycle.{name}", grace_s)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is not None:
            causes += _probe_causes(container[name], f"{path}.{name}", name)
    return causes


def _probe_causes(probe: Object, path: str, name: str) -> list[Cause]:
    causes = _handler_causes(probe, path, 0)
    for field in (
        *("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold"),
        "failureThreshold",
    ):
        causes += not_negative(probe, field, path)
    grace = probe.get("terminationGracePeriodSeconds")
    field = f"{path}.terminationGracePeriodSeconds"
    if grace is not None and grace <= 0:
        causes.append(invalid_value(field, grace, "must be greater than 0"))
    if name == "readinessProbe":
        if grace is not None:
            causes.append(invalid_value(field, grace, "must not be set for readinessProbes"))
    elif probe.get("successThreshold", 1) != 1:
        value = probe["successThreshold"]
        causes.append(invalid_value(f"{path}.successThreshold", value, "must be 1"))
    return causes


def _handler_causes(handler: Object, path: str, grace_s: int) -> list[Cause]:
    kinds = [kind for kind in _KINDS if handler.get(kind) is not None]
    if not kinds:
        return [required(path, "must specify a handler type")]
    text = "may not specify more than 1 handler type"
    causes = _one_handler(kinds[0], handler[kinds[0]], f"{path}.{kinds[0]}", grace_s)
    return causes + [forbidden_field(f"{path}.{kind}", text) for kind in kinds[1:]]


def _one_handler(kind: str, action: Object, path: str, grace_s: int) -> list[Cause]:
    if kind == "exec":
        return needed(action, "command", path)
    if kind == "sleep":
        seconds = action.get("seconds", 0)
        if 0 <= seconds < grace_s:
            return []
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
        return [invalid_value(path, seconds, text)]
    causes = needed(action, "path", path) if kind == "httpGet" else []
    causes += port_causes(action.get("port", 0), f"{path}.port")
    if kind == "httpGet":
        causes += one_of(action, "scheme", path, ("HTTP", "HTTPS"))
        for header in action.get("httpHeaders") or []:
            if not re.fullmatch(_HEADER, header.get("name", "")):
                name = header.get("name", "")
                causes.append(invalid_value(f"{path}.httpHeaders", name, _HEADER_RULE))
    return causes
