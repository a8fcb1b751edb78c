"""The recorded runs, read: what was done when, which calls came, which statuses and events.

Nothing is judged here. The forms in which a recorded and a replayed run can be compared are in
`golden_forms.py`. What must never happen: a line of a recording that is skipped without a reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from golden_files import scenario_texts
from places import GOLDEN

DOCUMENT: Final = re.compile(
    r"^---\n# (?P<file>\S+\.yaml)[^\n]*\n(?P<text>.*?)(?=^---$|\Z)", re.S | re.M
)
CONFIGURATION: Final = re.compile(r"^Kubelet configuration beyond .*?: `(\{.*\})`\.$", re.M)
STEP: Final = re.compile(r"^\| (\d+\.\d+) \| (.*) \|$", re.M)


@dataclass(frozen=True, slots=True)
class Step:
    """One line of "What was done": seconds after the first, and the words."""

    at_s: float
    words: str


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded run: `s04` (static pods) or `s04/api` (the same pods at an API)."""

    name: str

    @property
    def scenario(self) -> str:
        return self.name.partition("/")[0]

    @property
    def has_api(self) -> bool:
        """Whether the kubelet had an API server: events were recorded then."""
        return self.has("events.jsonl")

    def has(self, file: str) -> bool:
        """Whether that was recorded: `nodes.jsonl`."""
        return self._heading(file) in scenario_texts(GOLDEN / f"{self.scenario}.txt")

    def text(self, file: str) -> str:
        """What was recorded under that name."""
        return scenario_texts(GOLDEN / f"{self.scenario}.txt")[self._heading(file)]

    def _heading(self, file: str) -> str:
        return f"{self.name}/{file}".partition("/")[2]

    def steps(self) -> list[Step]:
        """What was done to the node, in order; what was only seen is among them."""
        done = self.text("scenario.md").split("## What was done", 1)[1].split("\n## ", 1)[0]
        return [Step(float(at_s), words) for at_s, words in STEP.findall(done)]

    def configuration(self) -> dict[str, Any]:
        """The KubeletConfiguration fields beyond those of every recording."""
        found = CONFIGURATION.search(self.text("scenario.md"))
        return json.loads(found.group(1)) if found else {}

    def manifests(self) -> dict[str, list[str]]:
        """The versions of each manifest file, in order."""
        versions: dict[str, list[str]] = {}
        for found in DOCUMENT.finditer(self.text("manifest.yaml")):
            versions.setdefault(found["file"], []).append(found["text"])
        return versions

    def rows(self, file: str) -> Iterator[dict[str, Any]]:
        """The lines of a recorded file, without its header."""
        for line in self.text(file).splitlines():
            row = json.loads(line)
            if "header" not in row:
                yield row


def recordings() -> list[Recording]:
    """Every run with recorded calls, sorted by name."""
    names = [
        f"{file.stem}/{heading}".removesuffix("/cri.jsonl")
        for file in GOLDEN.glob("*.txt")
        for heading in scenario_texts(file)
        if heading.endswith("cri.jsonl")
    ]
    return [Recording(name) for name in sorted(names)]
