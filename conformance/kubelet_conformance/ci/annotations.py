"""Lines that GitHub Actions shows beside a run (workflow commands): one for each failure, known
failure and case that could not be judged.

GitHub shows ten errors, ten warnings and ten notices a step; the log and the summary have all.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kubelet_conformance.harness.runs.case_run import Outcome, Result

KINDS: Final[Mapping[Outcome, str]] = {
    Outcome.FAILED: "error",
    Outcome.ERROR: "error",
    Outcome.INCONCLUSIVE: "warning",
    Outcome.KNOWN_BUG: "notice",
}
MOST_LINES: Final = 20
"""Of a failure; the log has the rest."""


def annotation(result: Result, repeat: str, here: Path) -> str:
    """The line for a result; "" for one that needs none. `repeat`: the command that runs the case
    again. A case in a file below `here`, the directory of the checkout, is shown at its place."""
    kind = KINDS.get(result.outcome)
    if kind is None:
        return ""
    lines = result.detail.splitlines()
    detail_lines = lines[:MOST_LINES] + (["..."] if len(lines) > MOST_LINES else [])
    rules = ", ".join(result.case.rules)
    head = f"{result.case.title} ({rules}, {result.case.level.name})"
    title = f"{result.outcome.value}: {result.case.id}"
    message = "\n".join([head, *detail_lines, f"repeat: {repeat}"])
    return command(kind, message, **_place(result, here), title=title)


def command(kind: str, message: str, **properties: str) -> str:
    """A workflow command.

    >>> command("error", "50% of\\nit", title="a: b, c")
    '::error title=a%3A b%2C c::50%25 of%0Ait'
    """
    pairs = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind}{' ' if pairs else ''}{pairs}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _place(result: Result, here: Path) -> dict[str, str]:
    """File and line of a case of the user's own; a case of this package is not in a checkout."""
    file = Path(result.case.file) if result.case.file else None
    if file is None or not file.absolute().is_relative_to(here.absolute()):
        return {}
    place = {"file": str(file.absolute().relative_to(here.absolute()))}
    return {**place, "line": str(result.case.line)} if result.case.line else place
