"""The page /metrics/resource, made of a summary: CPU, memory and swap of node, pods, containers.
Pure.

Rules: SRV-031. Upstream: pkg/kubelet/metrics/collectors/resource_metrics.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

Json = Mapping[str, Any]
NANO: Final = 10**9
OF_CONTAINER: Final = ("container", "pod", "namespace")
OF_POD: Final = ("pod", "namespace")
_CPU: Final = ("cpu", "usageCoreNanoSeconds", "cpu_usage_seconds_total", "counter")
_MEMORY: Final = ("memory", "workingSetBytes", "memory_working_set_bytes", "gauge")
_SWAP: Final = ("swap", "swapUsageBytes", "swap_usage_bytes", "gauge")
PARTS: Final = (_CPU, _MEMORY, _SWAP)
HELP: Final = {
    "cpu_usage_seconds_total": "CPU time since the start, in core-seconds",
    "memory_working_set_bytes": "Working set in bytes",
    "swap_usage_bytes": "Swap in use in bytes",
    "swap_limit_bytes": "Most swap in bytes",
    "start_time_seconds": "Start in seconds since 1970",
    "scrape_error": "1: there was an error while the values were collected",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One value; `time_ms`: when it was measured, None: now."""

    name: str
    kind: str
    labels: tuple[tuple[str, str], ...]
    value: float
    time_ms: int | None = None


def samples(summary: Json) -> Iterator[Sample]:
    """All values of a summary."""
    yield from _of("node", summary["node"], ())
    for pod in summary["pods"]:
        ref = pod["podRef"]
        names = (("pod", ref["name"]), ("namespace", ref["namespace"]))
        for container in pod["containers"]:
            labels = (("container", container["name"]), *names)
            yield from _of("container", container, labels)
            yield from _start(container, labels)
            yield from _swap_limit(container, labels)
        yield from _of("pod", pod, names)


def _of(prefix: str, part: Json, labels: tuple[tuple[str, str], ...]) -> Iterator[Sample]:
    for section, field, name, kind in PARTS:
        measured = part.get(section) or {}
        value = measured.get(field)
        if value is None:
            continue
        shown = value / NANO if field == "usageCoreNanoSeconds" else float(value)
        yield Sample(f"{prefix}_{name}", kind, labels, shown, _ms(measured.get("time")))


def _start(container: Json, labels: tuple[tuple[str, str], ...]) -> Iterator[Sample]:
    began = _ms(container.get("startTime"))
    if began is not None and began > 0:
        yield Sample("container_start_time_seconds", "gauge", labels, began / 1000)


def _swap_limit(container: Json, labels: tuple[tuple[str, str], ...]) -> Iterator[Sample]:
    swap = container.get("swap") or {}
    used, left = swap.get("swapUsageBytes"), swap.get("swapAvailableBytes")
    if used is not None and left is not None:
        yield Sample("container_swap_limit_bytes", "gauge", labels, float(used + left), None)


def _ms(time: str | None) -> int | None:
    return None if time is None else round(datetime.fromisoformat(time).timestamp() * 1000)


def page(summary: Json | None) -> str:
    """The text of the page; None: the summary could not be made (SRV-031.2)."""
    found = [] if summary is None else list(samples(summary))
    found.append(Sample("resource_scrape_error", "gauge", (), float(summary is None)))
    return exposition(found)


def exposition(found: list[Sample]) -> str:
    """Samples in the Prometheus text format, by metric."""
    by_name: dict[str, list[Sample]] = {}
    for sample in found:
        by_name.setdefault(sample.name, []).append(sample)
    lines: list[str] = []
    for name, rows in sorted(by_name.items()):
        lines.append(f"# HELP {name} {_help(name)}")
        lines.append(f"# TYPE {name} {rows[0].kind}")
        lines.extend(_line(row) for row in rows)
    return "".join(f"{line}\n" for line in lines)


def _help(name: str) -> str:
    return next((text for end, text in HELP.items() if name.endswith(end)), name)


def _line(row: Sample) -> str:
    labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in row.labels)
    shown = f"{{{labels}}}" if labels else ""
    time = "" if row.time_ms is None else f" {row.time_ms}"
    return f"{row.name}{shown} {row.value!r}{time}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
