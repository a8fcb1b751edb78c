"""The page /metrics, as numbers."""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct

from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node

_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SAMPLE: Final = re.compile(r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
Labels = frozenset[tuple[str, str]]


class Scraped(Struct, frozen=True):
    """One page; `samples`: (name, labels) -> value; `types`: name -> type."""

    samples: dict[tuple[str, Labels], float]
    types: dict[str, str]

    def get(self, name: str, /, **labels: str) -> float | None:
        """The sample with exactly these labels; None: there is none."""
        return self.samples.get((name, frozenset(labels.items())))

    def count(self, name: str, /, **labels: str) -> float:
        """A counter's sample; 0 while there is none."""
        return self.get(name, **labels) or 0.0

    def of(self, name: str) -> dict[Labels, float]:
        """All samples of that name, by their labels."""
        return {labels: value for (own, labels), value in self.samples.items() if own == name}


def scraped(page: str) -> Scraped:
    """The samples of a page."""
    samples: dict[tuple[str, Labels], float] = {}
    types: dict[str, str] = {}
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            types[name] = kind
        elif (match := _SAMPLE.match(line)) is not None:
            labels = frozenset(_LABEL.findall(match["labels"] or ""))
            samples[match["name"], labels] = float(match["value"])
    return Scraped(samples, types)


async def metrics(node: Node) -> Scraped:
    """What /metrics shows now."""
    return scraped((await node.kubelet.get("/metrics")).text)


def expect_metric(node: Node, page: Scraped, wanted: float, name: str, /, **labels: str) -> None:
    """Expect this value of a sample; one that is not there is None."""
    expect_equal(node, page.get(name, **labels), wanted, f"{name} {labels or ''}".strip())


def expect_grown(
    node: Node, before: Scraped, after: Scraped, by: float, name: str, /, **labels: Any
) -> None:
    """Expect that a counter has grown by so much."""
    grown = after.count(name, **labels) - before.count(name, **labels)
    expect_equal(node, grown, by, f"growth of {name} {labels or ''}".strip())


def expect_at_least(node: Node, page: Scraped, wanted: float, name: str, /, **labels: str) -> None:
    """Expect a sample of at least this value."""
    value = page.count(name, **labels)
    expect(node, value >= wanted, f"{name} {labels or ''}, at least {wanted:g}".strip(), value)
