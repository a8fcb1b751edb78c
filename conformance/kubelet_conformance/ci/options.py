"""The options of `kubelet-conformance run` for CI: one table for pytest and for `--help`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "--summary": {
        "type": Path,
        "metavar": "FILE",
        "help": 'append a summary in Markdown to this file, such as "$GITHUB_STEP_SUMMARY"',
    },
    "--annotations": {
        "choices": ["github"],
        "help": "print a line for each failure that this CI shows beside the run",
    },
    "--baseline": {
        "type": Path,
        "metavar": "FILE",
        "help": "cases that are known to fail: only others make the run fail",
    },
    "--write-baseline": {
        "action": "store_true",
        "help": "write the failures of this run to the file of --baseline, and pass with them",
    },
    "--times": {
        "type": Path,
        "action": "append",
        "default": [],
        "metavar": "FILE",
        "help": "the --results of an earlier run: --shard makes parts of equal length of it, and "
        "the time that is left is known better (may be repeated, for an earlier run in parts)",
    },
}
