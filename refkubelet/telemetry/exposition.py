"""Metrics as the Prometheus text format 0.0.4 has them. Pure.

The Prometheus library would add `_total` to the names of counters, and the kubelet has counters
without it (`kubelet_evictions`), so the lines are made here; our tests read them with the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

Kind = Literal["counter", "gauge", "histogram"]


class Sample(Struct, frozen=True):
    """One line. `labels`: (name, value); `suffix`: what follows the metric's name (`_bucket`);
    `time_ms`: when it was measured, in ms since 1970, None: now."""

    labels: tuple[tuple[str, str], ...]
    value: float
    suffix: str = ""
    time_ms: int | None = None


class Family(Struct, frozen=True):
    """One metric: its whole name and its samples."""

    name: str
    kind: Kind
    help: str
    samples: Sequence[Sample]


def exposition(families: Iterable[Family]) -> str:
    """The text, by name. A metric without samples has no line, not even of its type."""
    lines: list[str] = []
    for family in sorted(families, key=lambda family: family.name):
        if not family.samples:
            continue
        lines.append(f"# HELP {family.name} {_in_help(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines.extend(_line(family.name, sample) for sample in family.samples)
    return "".join(f"{line}\n" for line in lines)


def number(value: float) -> str:
    """A value as Prometheus reads it.

    >>> number(3), number(0.25), number(float("inf"))
    ('3.0', '0.25', '+Inf')
    """
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))


def _line(name: str, sample: Sample) -> str:
    labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in sample.labels)
    label_text = f"{{{labels}}}" if labels else ""
    time = "" if sample.time_ms is None else f" {sample.time_ms}"
    return f"{name}{sample.suffix}{label_text} {number(sample.value)}{time}"


def _in_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _escaped(value: str) -> str:
    return _in_help(value).replace('"', '\\"')
