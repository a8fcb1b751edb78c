"""What a report keeps of the log of a kubelet that died."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from process_world import free_port

from kubelet_conformance.harness.kubelets.base import KubeletDied, NodePaths
from kubelet_conformance.harness.kubelets.last_words import LAST_LINES, MOST_LINES, last_words
from kubelet_conformance.harness.kubelets.process import ProcessKubelet
from kubelet_conformance.harness.kubelets.program import external

INFO = [f"I1128 10:00:00.{n:06} 7 kubelet.go:1] line {n}" for n in range(40)]
GOROUTINE = ["", "goroutine 117 [running]:", *(f"k8s.io/kubelet.f{n}()" for n in range(30))]
PANICS = [
    "panic: runtime error: index out of range [1] with length 1 [recovered]",
    "\tpanic: runtime error: index out of range [1] with length 1",
    *GOROUTINE,
]
FRAMES = [f"  File {n}" for n in range(30)]
TRACEBACK = ["Traceback (most recent call last):", *FRAMES, "KeyError: 1"]
LOGGED = ["2026-11-28 10:00:00,000 E refkubelet.x: cannot do it", *TRACEBACK]
REFUSED = [f"kubelet.yaml: invalid configuration: field{n} must not be {n}" for n in range(30)]
GOES_ON = [f"2026-11-28 10:00:0{n},000 I refkubelet.x: line" for n in range(9)]


@pytest.mark.parametrize(
    ("log", "kept"),
    [
        (INFO, INFO[-LAST_LINES:]),
        (INFO[:3], INFO[:3]),
        ([], []),
        ([*INFO, *PANICS], PANICS),
        ([*INFO, *PANICS, *INFO[:2]], [*PANICS, *INFO[:2]]),  # another thread had not ended yet
        ([*INFO, "fatal error: concurrent map writes", *GOROUTINE],
         ["fatal error: concurrent map writes", *GOROUTINE]),
        ([*INFO, "F1128 10:00:00.000000 7 server.go:1] no", *GOROUTINE],
         ["F1128 10:00:00.000000 7 server.go:1] no", *GOROUTINE]),
        ([*INFO, *TRACEBACK], TRACEBACK),
        ([*INFO, *TRACEBACK, "", "During handling", "", *TRACEBACK],
         [*TRACEBACK, "", "During handling", "", *TRACEBACK]),
        ([*LOGGED, *INFO], INFO[-LAST_LINES:]),  # it went on
        ([*LOGGED, *GOES_ON], [*LOGGED, *GOES_ON][-LAST_LINES:]),
        ([*LOGGED, '{"ts":1}'], [*LOGGED, '{"ts":1}'][-LAST_LINES:]),
        (["I1128 x] a panic: in the middle", *INFO], INFO[-LAST_LINES:]),
        ([*INFO, *REFUSED], REFUSED),
        ([*GOES_ON, *REFUSED * 4], REFUSED[-LAST_LINES:]),  # no log that is known: its end is kept
    ],
)  # fmt: skip
def test_why_it_died_is_kept_from_its_first_line_on(log: list[str], kept: list[str]) -> None:
    assert last_words(log) == kept


def test_where_every_goroutine_was_is_cut_off() -> None:
    kept = last_words([*INFO, "fatal error: all goroutines are asleep", *GOROUTINE * 100])
    assert kept[0] == "fatal error: all goroutines are asleep"
    assert len(kept) == MOST_LINES + 1
    assert kept[-1] == f"({1 + 100 * len(GOROUTINE) - MOST_LINES} more lines)"


@pytest.mark.parametrize(
    ("end", "ended"),
    [("echo panic: no; sleep 100", True), ("exec sleep 100", False), ("exit 2", True)],
)
async def test_a_kubelet_that_answers_no_more_because_it_ends_has_ended(
    tmp_path: Path, end: str, ended: bool
) -> None:
    """Its sockets are closed before its process has ended, or before that is known here."""
    paths = NodePaths(tmp_path)
    paths.make()
    kubelet = ProcessKubelet(
        external(tmp_path / "kubelet"), paths, "unix:///x", node_name="node", kubeconfig=None
    )
    kubelet._read_only_port = free_port()
    with kubelet._log.open("wb") as log:
        kubelet._process = await asyncio.create_subprocess_exec(
            "sh", "-c", f"{end}", stdout=log, start_new_session=True
        )
    while not _is_at_its_end(kubelet._process.pid, end, kubelet._log):
        os.sched_yield()  # asyncio must not learn of the end
    with pytest.raises(KubeletDied) as died:
        await kubelet.pods()
    assert died.value.ended is ended
    await kubelet.close()


def _is_at_its_end(pid: int, end: str, log: Path) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True  # its end was waited for already
    return state == "Z" if end.startswith("exit") else "echo" not in end or bool(log.read_text())


async def test_the_error_of_a_dead_kubelet_has_its_panic_and_not_that_of_an_earlier_one(
    tmp_path: Path,
) -> None:
    program = tmp_path / "kubelet"
    paths = NodePaths(tmp_path / "case")
    paths.make()
    kubelet = ProcessKubelet(
        external(program), paths, "unix:///x", node_name="node", kubeconfig=None
    )
    for why in ("first", "second"):
        frames = "; ".join(f"echo frame {n}" for n in range(30))
        program.write_text(f"#!/bin/sh\necho I1128 starts\necho panic: {why}\n{frames}\nexit 2\n")
        program.chmod(0o755)
        with pytest.raises(KubeletDied) as died:
            await asyncio.wait_for(kubelet.start({}), 30)
        told = [line.strip() for line in str(died.value).splitlines()]
        assert told[1:] == [f"panic: {why}", *(f"frame {n}" for n in range(30))]
        await kubelet.close()
        kubelet._process = None
    whole = kubelet.log_lines()
    assert [line for line in whole if "panic" in line] == ["panic: first", "panic: second"]
