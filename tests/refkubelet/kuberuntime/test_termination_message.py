"""What an exited container leaves behind: LIFE-145."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeobjects.structs import replace
from refkubelet.cri.records import ContainerRecord, ContainerState
from refkubelet.kuberuntime.logs.termination_message import (
    TerminationMessages,
    log_tail,
    termination_message,
)

LINE = "2026-11-21T09:00:00.000000001Z {stream} {tag} {text}\n"
FALLBACK = "FallbackToLogsOnError"


def line(text: str, tag: str = "F", stream: str = "stdout") -> str:
    return LINE.format(stream=stream, tag=tag, text=text)


class Files:
    def __init__(self, root: Path) -> None:
        self.log = root / "0.log"
        self.message = root / "message"
        self.log.write_text(line("first") + line("cut ", "P") + line("off", "F", "stderr"))
        self.message.write_bytes(b"")

    @staticmethod
    def text(file: Path) -> str:
        return file.read_text() if file.exists() else ""

    def renamed(self, text: str) -> None:
        """Another file under the name of the message."""
        other = self.message.with_name("other")
        other.write_text(text)
        other.replace(self.message)

    def record(self, **fields: object) -> ContainerRecord:
        made = ContainerRecord(
            id="c",
            name="main",
            state=ContainerState.EXITED,
            exit_code=1,
            reason="Error",
            termination_message_policy=FALLBACK,
            termination_log_host_path=str(self.message),
            log_path=str(self.log),
        )
        return replace(made, **fields)  # type: ignore[arg-type]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_the_end_of_the_file_counts_LIFE_145(files: Files) -> None:
    files.message.write_bytes(b"x" + b"y" * 4095 + b"z")
    text = termination_message(files.record(termination_message_policy="File"))
    assert text == "y" * 4095 + "z"


def test_a_file_beats_the_log_and_stands_after_the_runtimes_words_LIFE_145(files: Files) -> None:
    files.message.write_text("bye")
    assert termination_message(files.record()) == "bye"
    assert termination_message(files.record(message="OCI failed")) == "OCI failed: bye"


LOGS = "first\ncut off\n"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, LOGS),
        ({"termination_log_host_path": ""}, LOGS),
        ({"termination_log_host_path": "/nowhere/message"}, LOGS),
        ({"message": "m"}, f"m: {LOGS}"),
        ({"exit_code": 0, "reason": "Completed"}, ""),
        ({"reason": "ContainerCannotRun"}, ""),
        ({"termination_message_policy": "File"}, ""),
        ({"state": ContainerState.RUNNING, "message": "m"}, "m"),
    ],
)
def test_the_log_stands_in_after_a_failure_only_LIFE_145(
    fields: dict[str, object], text: str, files: Files
) -> None:
    assert termination_message(files.record(**fields)) == text


def test_the_log_gives_eighty_lines_and_2048_bytes_LIFE_145() -> None:
    lines = [line(str(n)) for n in range(100)]
    assert log_tail("".join(lines).encode()) == "".join(f"{n}\n" for n in range(20, 100))
    long = "".join(line("a" * 1000) for _ in range(3)) + line("b" * 100)
    text = log_tail(long.encode())
    assert len(text) == 2048
    assert text.endswith("a\n" + "b" * 100 + "\n")


def test_what_is_no_line_end_stays_in_the_message_LIFE_145() -> None:
    assert log_tail(line("one\u2028two\x0b\x85").encode()) == "one\u2028two\x0b\x85\n"
    assert log_tail(b"nonsense\n") == ""
    assert log_tail(b"") == ""
    assert log_tail(line("no end").encode()[:-1]) == "no end\n"


def test_of_a_big_log_only_the_end_is_read_LIFE_145(files: Files) -> None:
    with files.log.open("w") as file:
        for n in range(5000):
            file.write(line(f"{n:0100}"))
    text = termination_message(files.record())
    assert len(text) == 2048
    assert text.endswith("4999\n")


def test_unreadable_files_are_told_LIFE_145(files: Files, tmp_path: Path) -> None:
    directory = termination_message(files.record(termination_log_host_path=str(tmp_path)))
    assert directory == f"Error on reading termination log {tmp_path}: Is a directory"
    files.log.unlink()
    assert termination_message(files.record()) == (
        "Error on reading termination message from logs: failed to try resolving symlinks in "
        f'path "{files.log}": lstat {files.log}: no such file or directory'
    )


CHANGES: Final[dict[str, Callable[[Files, int], Any]]] = {
    "longer": lambda files, _: files.message.write_text(files.text(files.message) + "x"),
    "emptied": lambda files, _: files.message.write_bytes(b""),
    "gone": lambda files, _: files.message.unlink(missing_ok=True),
    "another": lambda files, n: files.renamed(f"new {n}"),
    "log": lambda files, n: files.log.write_text(files.text(files.log) + line(f"more {n}")),
    "no log": lambda files, _: files.log.unlink(missing_ok=True),
    "nothing": lambda files, _: None,
}


@given(st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.booleans()), max_size=12))
def test_a_message_that_was_read_before_is_the_one_that_would_be_read_LIFE_145(
    steps: list[tuple[str, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        files = Files(Path(directory))
        messages = TerminationMessages()
        for number, (change, falls_back) in enumerate(steps):
            CHANGES[change](files, number)
            record = files.record(termination_message_policy=FALLBACK if falls_back else "File")
            assert messages.of(record) == termination_message(record)


def test_an_unchanged_file_is_not_read_again_LIFE_145(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.message.write_text("bye")
    messages = TerminationMessages()
    running = files.record(state=ContainerState.RUNNING, message="runs")
    assert [messages.of(files.record()), messages.of(running)] == ["bye", "runs"]
    monkeypatch.setattr("refkubelet.kuberuntime.logs.termination_message.read_tail", None)
    assert messages.of(files.record()) == "bye"
    with pytest.raises(TypeError):
        messages.of(files.record(message="another record"))
