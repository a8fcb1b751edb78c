"""Fuzzes one target with atheris, led by coverage: `tox -e fuzz -- manifest -max_total_time=600`.

The first word names a target of `fuzz_targets.py`; libFuzzer takes the rest. New texts are kept in
`build/fuzz/<target>`; the seeds in `tests/data/fuzz` are only read. Without a word all targets are
tried for a minute each.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import atheris

SECONDS_EACH = 60
ROOT = Path(__file__).parents[2]

with atheris.instrument_imports(include=["refkubelet", "fakecri", "fakekubeapi", "conformance"]):
    from fuzz_targets import CORPORA, TARGETS


def fuzz(name: str, options: list[str]) -> None:
    """Fuzz until something is found, or the options end it; does not return."""
    target = TARGETS[name]
    found = ROOT / "build" / "fuzz" / name
    found.mkdir(parents=True, exist_ok=True)
    arguments = [sys.argv[0], f"-artifact_prefix={found}/", *options]
    atheris.Setup([*arguments, str(found), str(CORPORA / name)], lambda data: target(data) and None)
    atheris.Fuzz()


def main() -> int:
    """The exit code: 1 if a target has raised what it must not."""
    if len(sys.argv) > 1:
        if sys.argv[1] not in TARGETS:
            print(f"wanted one of {', '.join(TARGETS)}; got {sys.argv[1]}", file=sys.stderr)
            return 2
        fuzz(sys.argv[1], sys.argv[2:])
    failed = [name for name in TARGETS if _fails(name)]
    print(f"found something in: {', '.join(failed)}" if failed else "nothing found")
    return int(bool(failed))


def _fails(name: str) -> bool:
    limit = f"-max_total_time={SECONDS_EACH}"
    return subprocess.run([sys.executable, __file__, name, limit], check=False).returncode != 0


if __name__ == "__main__":
    sys.exit(main())
