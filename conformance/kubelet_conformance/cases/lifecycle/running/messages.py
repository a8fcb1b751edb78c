"""Termination messages: from the container's file, from its log, and how long they may be."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fakecri import prints
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import Workload, exits, in_turn
from kubelet_conformance.registry import Feature, KnownBug, conformance

STATUS = Feature.STATUS
FALLBACK = "FallbackToLogsOnError"


async def ended(node: Node, *containers: Any) -> dict[str, str]:
    """Run the containers once until they have ended, and return their messages by name ("" for
    none)."""
    await node.apply_static(pod("job", *containers, restartPolicy="Never"))
    names = [c.name for c in containers]
    await node.run_until(
        lambda: all("terminated" in node.container("job", n).get("state", {}) for n in names),
        within_s=limits.START_S + limits.NOTICE_S,
        what="all containers have ended",
    )
    states = {name: node.container("job", name)["state"]["terminated"] for name in names}
    return {name: state.get("message", "") for name, state in states.items()}


def printing(text: str, code: int = 1, *, message: str = "", to: str = "stdout") -> Workload:
    """A run that prints one line and ends."""
    return exits(code, prints(text, stream=to), after_s=1.0, message=message)


@conformance(
    id="message-file",
    rules=["LIFE-145.1", "LIFE-145.5", "CRI-072.2"],
    needs=[STATUS, Feature.FAULTS],
)
async def what_a_container_writes_to_its_message_file_is_shown(node: Node) -> None:
    """The text of the message file is the termination message, after success as well as after
    failure; where the runtime has a message of its own it stands before it."""

    def said(answer: Any) -> None:
        answer.status.message = "gone"

    node.runtime.on("ContainerStatus", container="told").changes_answer(said)
    messages = await ended(
        node,
        container("bad", exits(1, message="lost")),
        container("good", exits(0, message="ok")),
        container("told", exits(1, message="bye")),
    )
    expect_equal(node, messages, {"bad": "lost", "good": "ok", "told": "gone: bye"}, "messages")


@conformance(id="message-file-only", rules=["LIFE-145"], needs=[STATUS])
async def without_the_fallback_a_log_is_no_message(node: Node) -> None:
    """With policy File the log of a failed container does not become its message."""
    messages = await ended(node, container("main", printing("said")))
    expect_equal(node, messages, {"main": ""}, "messages")


@conformance(id="message-fallback", rules=["LIFE-145"], needs=[STATUS])
async def the_log_of_a_failed_container_stands_in(node: Node) -> None:
    """With FallbackToLogsOnError the log, of both streams, is the message of a container that
    failed and wrote no message file; not that of one that succeeded or wrote a file."""
    policy: dict[str, Any] = {"terminationMessagePolicy": FALLBACK}
    messages = await ended(
        node,
        container("failed", printing("why"), **policy),
        container("cried", printing("help", to="stderr"), **policy),
        container("fine", printing("all good", 0), **policy),
        container("both", printing("in the log", message="in the file"), **policy),
    )
    expected_messages = {"failed": "why\n", "cried": "help\n", "fine": "", "both": "in the file"}
    expect_equal(node, messages, expected_messages, "messages")


@conformance(id="message-limit", rules=["LIFE-145", "LIFE-145.1"], needs=[STATUS])
async def a_long_message_is_cut_to_its_end(node: Node) -> None:
    """The message is the last 4096 bytes of a message file, or the last 2048 of a log, where a line
    that the runtime has written in pieces is one line."""
    messages = await ended(
        node,
        container("file", exits(1, message="a" + "b" * 4096)),
        container("log", printing("c" + "d" * 2047), terminationMessagePolicy=FALLBACK),
        container("long", printing("e" * 16384 + "f"), terminationMessagePolicy=FALLBACK),
    )
    expect_equal(node, messages["file"], "b" * 4096, "message from the file")
    expect_equal(node, messages["log"], "d" * 2047 + "\n", "message from the log")
    expect_equal(node, messages["long"], "e" * 2046 + "f\n", "message from a log with a long line")


@conformance(id="message-own-path", rules=["LIFE-138", "LIFE-136"], needs=[STATUS])
async def the_message_file_is_where_the_container_wants_it(node: Node) -> None:
    """terminationMessagePath is where the message file is mounted; every run gets a new file."""
    main = container("main", exits(1), terminationMessagePath="/tmp/last-words")
    await node.apply_static(pod("web", main))
    await node.run_until(
        lambda: node.count("CreateContainer", container="main") == 2,
        within_s=limits.START_S + limits.NOTICE_S,
    )
    paths = []
    for call in node.calls("CreateContainer", container="main"):
        mounts = [m for m in call.request.config.mounts if m.container_path == "/tmp/last-words"]
        expect_equal(node, len(mounts), 1, "mounts of the message file")
        paths.append(mounts[0].host_path)
    expect(node, paths[0] != paths[1], "different files for the messages of the two runs", paths)


@conformance(id="message-of-last-run", rules=["LIFE-145", "LIFE-170"], needs=[STATUS])
async def a_message_stays_with_the_run_that_left_it(node: Node) -> None:
    """The message of an earlier run is in lastState; the next run has its own or none."""
    work = in_turn(exits(1, message="first"), exits(2, after_s=2, message="second"))
    await node.apply_static(pod("web", container("main", work)))
    await node.run_until(
        lambda: node.container("web", "main").get("lastState", {}).get("terminated"),
        within_s=limits.START_S + limits.NOTICE_S,
    )
    last = node.container("web", "main")["lastState"]["terminated"]
    expect_equal(node, (last["exitCode"], last.get("message")), (1, "first"), "lastState")
    await node.run_until(
        lambda: "terminated" in node.container("web", "main").get("state", {}),
        within_s=2 + limits.NOTICE_S,
    )
    ended = node.container("web", "main")["state"]["terminated"]
    expect_equal(node, (ended["exitCode"], ended.get("message")), (2, "second"), "state")


@conformance(id="message-file-replaced", rules=["LIFE-145.3"], needs=[STATUS])
async def a_message_file_that_is_none_any_more_hides_no_exit(node: Node) -> None:
    """A message file that was removed counts as empty; a directory in its place is told as an
    error."""
    names = ("gone", "directory", "plain")
    ends, places = await replaced(node, *names, directory=Path.mkdir)
    expect_equal(node, {end["exitCode"] for end in ends.values()}, {3}, "exit codes")
    expect_equal(node, ends["gone"].get("message", ""), "", "message without a file")
    expect_equal(node, ends["plain"].get("message", ""), "", "message of an empty file")
    told = ends["directory"].get("message", "")
    text = f"Error on reading termination log {places['directory']}: "
    expect(node, told.startswith(text), f"{text}...", told)


@conformance(
    id="message-file-fifo",
    rules=["LIFE-145.4"],
    needs=[STATUS],
    alone=True,
    bugs=[KnownBug("", "it waits for somebody to write to a FIFO in the place of a message file")],
)
async def a_fifo_as_message_file_holds_nothing_up(node: Node) -> None:
    """A FIFO in the place of a message file, which nobody writes to, holds nothing up: the exit is
    shown in time, the message says that the file cannot be read, and other pods start."""
    ends, places = await replaced(node, "fifo", fifo=os.mkfifo)
    told = ends["fifo"].get("message", "")
    text = f"Error on reading termination log {places['fifo']}: "
    expect(node, told.startswith(text), f"{text}...", told)
    await node.apply_static(pod("next"))
    await node.wait_running("next")


async def replaced(
    node: Node, *names: str, **makers: Callable[[Path], object]
) -> tuple[dict[str, Any], dict[str, Path]]:
    """Run these containers, remove their message files but for that of `plain`, put there what the
    maker of that name makes, and let all end with 3. Returns how each has ended, and the paths."""
    work = exits(3, after_s=4)
    await node.apply_static(
        pod("job", *(container(name, work) for name in names), restartPolicy="Never")
    )
    await node.run_until(lambda: node.running("job", *names), within_s=limits.START_S)
    places = {name: message_place(node, name) for name in names}
    for name, path in places.items():
        if name != "plain":
            path.unlink()
        if name in makers:
            makers[name](path)
    await node.run_until(
        lambda: all("terminated" in node.container("job", n).get("state", {}) for n in names),
        within_s=4 + limits.NOTICE_S,
        what="all containers have ended",
    )
    ends = {name: node.container("job", name)["state"]["terminated"] for name in names}
    return ends, places


def message_place(node: Node, name: str) -> Path:
    """The path on the node of the message file of the container's newest instance."""
    config = node.calls("CreateContainer", container=name)[-1].request.config
    (path,) = (m.host_path for m in config.mounts if m.container_path == "/dev/termination-log")
    return Path(path)


@conformance(id="message-of-many-lines", rules=["LIFE-145.2"], needs=[STATUS])
async def the_last_eighty_lines_are_the_message(node: Node) -> None:
    """Of a log of a hundred short lines the last 80 are the termination message of a container
    that has failed without one; those of one with 80 lines are all of them."""
    many, few = (
        container(
            name,
            exits(1, *(prints(f"line {number}") for number in range(count)), after_s=1.0),
            terminationMessagePolicy=FALLBACK,
        )
        for name, count in (("many", 100), ("few", 80))
    )
    messages = await ended(node, many, few)
    for name, first, end in (("many", 20, 100), ("few", 0, 80)):
        lines = [f"line {number}" for number in range(first, end)]
        expect_equal(node, messages[name].splitlines(), lines, f"lines of {name}")
