"""`kubelet-conformance check-trace`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fakecri.recording.recorded import RecordError
from kubelet_conformance.recordings.asking import asked_of, breaches_of, left_out
from kubelet_conformance.recordings.history import Recording
from kubelet_conformance.recordings.reading import read_configuration, read_recording

EXIT_BROKEN: Final = 1
EXIT_FILE: Final = 2


def add_words(parser: argparse.ArgumentParser) -> None:
    """Add the words of `check-trace`."""
    parser.add_argument(
        "records",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="JSON lines of --record, or the folder of a recorded run",
    )
    parser.add_argument(
        "--kubelet-config",
        type=Path,
        metavar="FILE",
        help="the KubeletConfiguration of that kubelet, for the laws that want it",
    )
    parser.add_argument(
        "--outside",
        action="store_true",
        help="others than the kubelet did something to the runtime, its containers or sandboxes",
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="name the laws that were asked"
    )


def main(options: argparse.Namespace) -> int:
    """Hold recorded calls of a kubelet against the laws. Exit codes: 0 all that were asked hold, 1
    one is broken, 2 a file cannot be read."""
    broken = False
    try:
        path = options.kubelet_config
        config = None if path is None else read_configuration(path)
        for file in options.records:
            recording = read_recording(file, config=config, outside=options.outside)
            breaches = breaches_of(recording)
            for breach in breaches:
                print(f"{file}: {breach}")
            broken = broken or bool(breaches)
            laws = {breach.law.name for breach in breaches}
            print("\n".join(words_of(file, recording, len(laws), verbose=options.verbose)))
    except RecordError as problem:
        print(f"kubelet-conformance check-trace: {problem}", file=sys.stderr)
        return EXIT_FILE
    return EXIT_BROKEN if broken else 0


def words_of(file: Path, recording: Recording, broken: int, *, verbose: bool) -> Iterator[str]:
    """What was asked of a recording, and what was not."""
    history = recording.history
    asked = [law.name for law in asked_of(recording)]
    about = f"{len(history.calls)} calls, {history.end_s / 60:.1f} min"
    yield f"{file}: {about}; {len(asked)} laws asked, {broken} broken"
    if verbose:
        yield f"  asked: {', '.join(asked)}"
    by_want: dict[str, list[str]] = {}
    for law, wants in left_out(recording).items():
        by_want.setdefault(wants, []).append(law)
    for wants, laws in by_want.items():
        yield f"  not asked, for want of {wants}: {', '.join(laws)}"
