"""Recorded runs of kubelets (`tests/data/golden/README.md`) leave out what is repeated, and have
names with slashes for IDs: here are the lines with everything written out. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from fakecri.recording.recorded import RecordError

SAME: Final = "(same as the previous one for this request)"
"""In place of a response."""
OF_SANDBOX: Final = "(equal to the config of RunPodSandbox)"
"""In place of a sandbox_config."""
_NAME: Final = re.compile(r"\b(?:ctr|sandbox):[\w.#-]+(?:/[\w.#-]+)+")


def without_slashes(line: str) -> str:
    """The line with names for IDs that have no slashes: where a status has one, the last slash ends
    the name of the runtime.

    >>> without_slashes('"containerd://ctr:web/main/0"')
    '"containerd://ctr:web.main.0"'
    """
    return _NAME.sub(lambda found: found[0].replace("/", "."), line)


def written_out(lines: Iterable[str], name: str) -> Iterator[str]:
    """The lines, in their order; one that tells of no single call is empty. Raises RecordError for
    one that repeats what was not there, under its `name` and number."""
    answers: dict[str, Any] = {}
    configs: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        row = _row(line)
        if row is None:  # who reads the lines says what is wrong
            yield line
        elif "header" in row or "collapsed" in row:
            yield ""
        elif not isinstance(row.get("request"), dict):
            yield line
        else:
            try:
                yield without_slashes(_whole(row, line, answers, configs))
            except KeyError:
                raise RecordError(f"{name}:{number}: it repeats a line that is not there") from None


def _row(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _whole(row: dict[str, Any], line: str, answers: dict[str, Any], configs: dict[str, Any]) -> str:
    """The line of a call with all that it repeats. Raises KeyError where there is none."""
    request = row["request"]
    asked = f"{row.get('method')} {json.dumps(request, sort_keys=True)}"
    repeats = False
    if row.get("response") == SAME:
        row["response"], repeats = answers[asked], True
    elif "response" in row:
        answers[asked] = row["response"]
    if request.get("sandbox_config") == OF_SANDBOX:
        request["sandbox_config"], repeats = configs[str(request.get("pod_sandbox_id"))], True
    answer = row.get("response")
    if row.get("method") == "RunPodSandbox" and isinstance(answer, dict):
        configs[str(answer.get("pod_sandbox_id"))] = request.get("config", {})
    return json.dumps(row) if repeats else line
