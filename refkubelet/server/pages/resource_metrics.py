"""The page /metrics/resource, made of a summary: CPU, memory and swap of node, pods, containers.
Pure.

Rules: SRV-031. Upstream: pkg/kubelet/metrics/collectors/resource_metrics.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from refkubelet.telemetry import exposition as text_format

Json = Mapping[str, Any]
Part = tuple[str, str, str, text_format.Kind]
"""Section and field of the summary, and the end of the metric's name with its kind."""
NANO: Final = 10**9
OF_CONTAINER: Final = ("container", "pod", "namespace")
OF_POD: Final = ("pod", "namespace")
_CPU: Final[Part] = ("cpu", "usageCoreNanoSeconds", "cpu_usage_seconds_total", "counter")
_MEMORY: Final[Part] = ("memory", "workingSetBytes", "memory_working_set_bytes", "gauge")
_SWAP: Final[Part] = ("swap", "swapUsageBytes", "swap_usage_bytes", "gauge")
PARTS: Final = (_CPU, _MEMORY, _SWAP)
HELP: Final = {
    "cpu_usage_seconds_total": "CPU time since the start, in core-seconds",
    "memory_working_set_bytes": "Working set in bytes",
    "swap_usage_bytes": "Swap in use in bytes",
    "swap_limit_bytes": "Most swap in bytes",
    "start_time_seconds": "Start in seconds since 1970",
    "scrape_error": "1: there was an error while the values were collected",
}


class NamedSample(Struct, frozen=True):
    """One sample with the name of its metric; `time_ms`: when it was measured, None: now."""

    name: str
    kind: text_format.Kind
    labels: tuple[tuple[str, str], ...]
    value: float
    time_ms: int | None = None


def samples(summary: Json) -> Iterator[NamedSample]:
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


def _of(prefix: str, part: Json, labels: tuple[tuple[str, str], ...]) -> Iterator[NamedSample]:
    for section, field, name, kind in PARTS:
        measured = part.get(section) or {}
        value = measured.get(field)
        if value is None:
            continue
        sample_value = value / NANO if field == "usageCoreNanoSeconds" else float(value)
        yield NamedSample(f"{prefix}_{name}", kind, labels, sample_value, _ms(measured.get("time")))


def _start(container: Json, labels: tuple[tuple[str, str], ...]) -> Iterator[NamedSample]:
    began = _ms(container.get("startTime"))
    if began is not None and began > 0:
        yield NamedSample("container_start_time_seconds", "gauge", labels, began / 1000)


def _swap_limit(container: Json, labels: tuple[tuple[str, str], ...]) -> Iterator[NamedSample]:
    swap = container.get("swap") or {}
    used, free = swap.get("swapUsageBytes"), swap.get("swapAvailableBytes")
    if used is not None and free is not None:
        yield NamedSample(
            "container_swap_limit_bytes", "gauge", labels, float(used + free), _ms(swap.get("time"))
        )


def _ms(time: str | None) -> int | None:
    return None if time is None else round(datetime.fromisoformat(time).timestamp() * 1000)


def page(summary: Json | None) -> str:
    """The text of the page; None: the summary could not be made (SRV-031.2)."""
    samples_shown = [] if summary is None else list(samples(summary))
    samples_shown.append(NamedSample("resource_scrape_error", "gauge", (), float(summary is None)))
    return text_of(samples_shown)


def text_of(found: list[NamedSample]) -> str:
    """Samples in the Prometheus text format, by metric."""
    by_name: dict[str, list[NamedSample]] = {}
    for sample in found:
        by_name.setdefault(sample.name, []).append(sample)
    return text_format.exposition(
        text_format.Family(
            name,
            rows[0].kind,
            _help(name),
            [text_format.Sample(row.labels, row.value, time_ms=row.time_ms) for row in rows],
        )
        for name, rows in by_name.items()
    )


def _help(name: str) -> str:
    return next((text for end, text in HELP.items() if name.endswith(end)), name)
