"""Checks probes, lifecycle hooks, and their handlers. Pure.

Rules: PROBE-003, PROBE-061. Upstream: pkg/apis/core/validation: validateProbe, validateHandler,
validateLifecycle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from refkubelet.model.objects import Container, LifecycleHandler, PodSpec, Probe
from refkubelet.model.pod import is_sidecar
from refkubelet.model.validation.field_errors import (
    at_least,
    forbidden,
    invalid,
    one_of,
    port_name,
    required,
)

_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOKS: Final = ("exec", "httpGet", "tcpSocket", "sleep")
_HEADER: Final = re.compile(r"[-A-Za-z0-9]+\Z")


def probes_and_hooks(place: str, c: Container, spec: PodSpec) -> Iterator[str]:
    """Check the probes and hooks of a regular container or a sidecar."""
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        yield from _probe(f"{place}.{name}", getattr(c, name), name)
    if c.lifecycle is not None:
        for name in ("postStart", "preStop"):
            hook = getattr(c.lifecycle, name)
            if hook is not None:
                yield from _handler(f"{place}.lifecycle.{name}", hook, _HOOKS)
    yield from _of_the_pod(place, c, spec)


def probes_and_hooks_of_init(place: str, c: Container, spec: PodSpec) -> Iterator[str]:
    """Check the probes and hooks of an init container, which only a sidecar may have."""
    if is_sidecar(c):
        yield from probes_and_hooks(place, c, spec)
        return
    for name in ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"):
        if getattr(c, name) is not None:
            why = "may not be set for init containers without restartPolicy=Always"
            yield forbidden(f"{place}.{name}", why)


def _of_the_pod(place: str, c: Container, spec: PodSpec) -> Iterator[str]:
    """The checks that depend on the pod's spec, and those of the headers of requests."""
    if c.lifecycle is not None:
        if c.lifecycle.stopSignal is not None and not (spec.os and spec.os.name):
            field = f"{place}.lifecycle.stopSignal"
            yield forbidden(field, "may not be set for containers with empty `spec.os.name`")
        for name in ("postStart", "preStop"):
            yield from _hook(f"{place}.lifecycle.{name}", getattr(c.lifecycle, name), spec)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = getattr(c, name)
        if probe is not None:
            yield from _headers(f"{place}.{name}.httpGet", probe.httpGet)


def _probe(place: str, probe: Probe | None, kind: str) -> Iterator[str]:
    """Check the numbers of a probe (PROBE-003), and its handler."""
    if probe is None:
        return
    yield from _handler(place, probe, _HANDLERS)
    yield from at_least(f"{place}.initialDelaySeconds", probe.initialDelaySeconds, 0)
    for name in ("timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        yield from at_least(f"{place}.{name}", getattr(probe, name), 0)
    if kind != "readinessProbe" and (probe.successThreshold or 1) != 1:
        yield invalid(f"{place}.successThreshold", probe.successThreshold, "must be 1")
    grace = probe.terminationGracePeriodSeconds
    if kind == "readinessProbe" and grace is not None:
        field = f"{place}.terminationGracePeriodSeconds"
        yield forbidden(field, "must not be set for readinessProbes")
    else:
        yield from at_least(f"{place}.terminationGracePeriodSeconds", grace, 1)


def _handler(place: str, handler: Any, kinds: tuple[str, ...]) -> Iterator[str]:
    given = [kind for kind in kinds if getattr(handler, kind, None) is not None]
    if not given:
        yield required(place, f"must specify a handler type: {', '.join(kinds)}")
    elif len(given) > 1:
        yield forbidden(f"{place}.{given[1]}", "may not specify more than 1 handler type")
    if "exec" in given and not handler.exec.command:
        yield required(f"{place}.exec.command")
    if "httpGet" in given:
        yield from one_of(f"{place}.httpGet.scheme", handler.httpGet.scheme, ("HTTP", "HTTPS"))
    for kind in given:
        if kind in ("httpGet", "tcpSocket", "grpc"):
            yield from _number_or_name(f"{place}.{kind}.port", getattr(handler, kind).port)


def _number_or_name(field: str, port: int | str) -> Iterator[str]:
    """Check the port of a handler, a number or a name; digits alone are not a name (PROBE-061)."""
    if isinstance(port, int):
        if not 1 <= port <= 65535:
            yield invalid(field, port, "must be between 1 and 65535, inclusive")
        return
    yield from port_name(field, port)


def _hook(place: str, hook: LifecycleHandler | None, spec: PodSpec) -> Iterator[str]:
    if hook is None:
        return
    yield from _headers(f"{place}.httpGet", hook.httpGet)
    grace_s = spec.terminationGracePeriodSeconds or 0
    if hook.sleep is not None and not 0 <= hook.sleep.seconds <= grace_s:
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
        yield invalid(f"{place}.sleep", hook.sleep.seconds, why)


def _headers(place: str, action: Any) -> Iterator[str]:
    for header in (action.httpHeaders if action is not None else None) or ():
        if not _HEADER.match(header.name):
            why = "a valid HTTP header must consist of alphanumeric characters or '-'"
            yield invalid(f"{place}.httpHeaders", header.name, why)
