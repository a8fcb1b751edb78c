"""Fuzzes one target with atheris, led by coverage: `tox -e fuzz -- manifest -max_total_time=600`.

The first word names a target of `fuzz_targets.py`; libFuzzer takes the rest. It begins with the
seeds of `fuzz_seeds.py` and with what was kept of earlier runs, and writes new texts to
`build/fuzz/<target>`. Without a word all targets are tried for a minute each. `keep` keeps, of what
is in `build/fuzz`, the fewest texts that reach as much (`fuzz_kept.py`).
"""

from __future__ import annotations

import hashlib
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import atheris
from fuzz_kept import keep, kept_texts
from fuzz_seeds import seeds

SECONDS_EACH = 60
ROOT = Path(__file__).parents[2]

with atheris.instrument_imports(
    include=["refkubelet", "fakecri", "fakekubeapi", "kubelet_conformance"]
):
    from fuzz_targets import TARGETS


def found_in(name: str) -> Path:
    """Where new texts of that target go; the seeds and what was kept of earlier runs are there."""
    found = ROOT / "build" / "fuzz" / name
    found.mkdir(parents=True, exist_ok=True)
    for text in [*seeds()[name].values(), *kept_texts(name)]:
        (found / hashlib.sha1(text, usedforsecurity=False).hexdigest()).write_bytes(text)
    return found


def fuzz(name: str, options: list[str]) -> None:
    """Fuzz until something is found, or the options end it; does not return."""
    target, found = TARGETS[name], found_in(name)
    ourselves = shlex.join([sys.executable, __file__, name])  # a merge starts us again, by a shell
    switches = [option for option in options if option.startswith("-")]
    places = [option for option in options if option not in switches]  # where a merge goes to
    arguments = [ourselves, f"-artifact_prefix={found}/", *switches, *places]
    atheris.Setup([*arguments, str(found)], lambda data: target(data) and None)
    atheris.Fuzz()


def keep_found() -> None:
    """Keep what was found of each target that was fuzzed."""
    for name in TARGETS:
        if not (ROOT / "build" / "fuzz" / name).is_dir():
            continue
        with tempfile.TemporaryDirectory() as merged:
            command = [sys.executable, __file__, name, "-merge=1", merged]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            count = keep(name, [text.read_bytes() for text in Path(merged).iterdir()])
        print(f"{name}: {count} texts kept")


def main() -> int:
    """The exit code: 1 if a target has raised what it must not."""
    if sys.argv[1:] == ["keep"]:
        keep_found()
        return 0
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
