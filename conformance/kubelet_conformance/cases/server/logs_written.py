"""Logs over HTTP of files that are as somebody else wrote them: each form of a line, as a whole."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, Level, conformance

STATUS: Final = Feature.STATUS
STREAMS: Final = {"featureGates": {"PodLogsQuerySplitStreams": True}}
FILE: Final = "0.log"
DAY: Final = "2026-01-02T03:04:"
LONG: Final = 300_000
"""Characters of a line that is longer than what is read of a file at once."""
LINES: Final = (
    f"{DAY}01.5Z stdout F whole\n",
    f"{DAY}02.123456789+02:00 stdout P one \n",
    f"{DAY}03Z stderr F between\n",
    f"{DAY}04Z stdout P:tag two \n",
    f"{DAY}05Z stdout F:tag three\n",
    f"{DAY}06Z elsewhere F nobody reads this\n",
    "no line of a log\n",
    f"{DAY}07Z stdout F \n",
    f"{DAY}08Z stderr F  two blanks\n",
    f"{DAY}09Z stdout F no end",
)
SHOWN: Final = "whole\none between\ntwo three\n\n two blanks\nno end"


async def written(node: Node, text: str) -> str:
    """The path of the log of `main`, in whose file is this text."""
    await node.apply_static(pod("web"))
    await node.wait_running("web", "main")
    node.machine.write_log("web", "main", FILE, text)
    return f"/containerLogs/default/{node.runtime.pod_name('web')}/main"


async def shown(node: Node, path: str, query: str) -> tuple[int, str]:
    """The answer to such a query."""
    answer = await node.kubelet.get(f"{path}?{query}")
    return answer.status, answer.text


@conformance(
    id="logs-of-each-form",
    rules=["SRV-020", "SRV-023"],
    needs=[STATUS],
    node_config=STREAMS,
    since="1.32",
)
async def parts_of_lines_are_put_together(node: Node) -> None:
    """Parts of a line follow each other without an end of line, and have one time; lines of no
    known stream, and what is no line, are left out, and are none of those that a tail counts when
    it is shown. Streams, times, tails and limits choose among the lines of the file."""
    path = await written(node, "".join(LINES))
    times = (
        f"{DAY}01.500000000Z whole\n{DAY}02.123456789+02:00 one between\n"
        f"{DAY}04.000000000Z two three\n{DAY}07.000000000Z \n"
        f"{DAY}08.000000000Z  two blanks\n{DAY}09.000000000Z no end"
    )
    for query, text in (
        ("", SHOWN),
        ("stream=Stdout", "whole\none two three\n\nno end"),
        ("stream=Stderr", "between\n two blanks\n"),
        ("tailLines=2", "\n two blanks\n"),
        ("tailLines=5&timestamps=false", "three\n\n two blanks\nno end"),
        ("limitBytes=10", SHOWN[:10]),
        ("limitBytes=1000", SHOWN),
        (f"sinceTime={DAY}01.4Z", "whole\nbetween\ntwo three\n\n two blanks\nno end"),
        (f"sinceTime={DAY}01.6Z", "between\ntwo three\n\n two blanks\nno end"),
        (f"sinceTime={DAY}05Z", "three\n\n two blanks\nno end"),
        (f"sinceTime={DAY}08Z&limitBytes=5", " two "),
    ):
        expect_equal(node, await shown(node, path, query), (200, text), f"the log, {query}")
    status, text = await shown(node, path, "timestamps=true")
    expect_equal(node, (status, text), (200, times), "the log with times")


@conformance(
    id="logs-of-docker",
    rules=["SRV-020", "SRV-023"],
    needs=[STATUS],
    node_config=STREAMS,
    since="1.32",
)
async def logs_of_docker_are_read_too(node: Node) -> None:
    """A file whose first line is JSON, as Docker wrote logs, is read as such: text, stream and
    time; what is no such line is left out."""
    rows = [
        {"log": "out\n", "stream": "stdout", "time": f"{DAY}01.25Z"},
        {"log": "err ü\n", "stream": "stderr", "time": f"{DAY}02Z"},
        {"log": "no end", "stream": "stdout", "time": f"{DAY}04Z"},
    ]
    lines = [json.dumps(row) + "\n" for row in rows]
    lines.insert(2, f"{DAY}02Z stdout F of the other form\n")
    path = await written(node, "".join(lines))
    for query, text in (
        ("", "out\nerr ü\nno end"),
        ("stream=Stderr", "err ü\n"),
        ("tailLines=1", "no end"),
        (f"sinceTime={DAY}02Z", "err ü\nno end"),
        (
            "timestamps=true",
            f"{DAY}01.250000000Z out\n{DAY}02.000000000Z err ü\n{DAY}04.000000000Z no end",
        ),
    ):
        expect_equal(node, await shown(node, path, query), (200, text), f"the log, {query}")


@conformance(
    id="logs-long-lines", rules=["SRV-020"], needs=[STATUS], node_config=STREAMS, since="1.32"
)
async def lines_may_be_longer_than_what_is_read_at_once(node: Node) -> None:
    """Lines of any length, and parts of lines, are shown whole, and may be cut; behind a part
    comes a time again where a line of the other stream was between."""
    many = {letter: letter * LONG for letter in "abc"}
    lines = (
        f"{DAY}01Z stdout F {many['a']}\n",
        f"{DAY}02Z stdout P {many['b']}\n",
        f"{DAY}03Z stderr F {many['c']}\n",
        f"{DAY}04Z stdout F end\n",
    )
    path = await written(node, "".join(lines))
    whole = f"{many['a']}\n{many['b']}{many['c']}\nend\n"
    for query, text in (
        ("", whole),
        ("tailLines=1", "end\n"),
        ("tailLines=2", f"{many['c']}\nend\n"),
        ("stream=Stdout", f"{many['a']}\n{many['b']}end\n"),
        ("stream=Stderr", f"{many['c']}\n"),
        (f"limitBytes={LONG + 2}", whole[: LONG + 2]),
        (f"sinceTime={DAY}03Z", f"{many['c']}\nend\n"),
        (
            f"sinceTime={DAY}02Z&timestamps=true&stream=Stdout",
            f"{DAY}02.000000000Z {many['b']}{DAY}04.000000000Z end\n",
        ),
    ):
        status, told = await shown(node, path, query)
        expect_equal(node, (status, len(told)), (200, len(text)), f"the length of the log, {query}")
        expect_equal(node, told == text, True, f"whether the log is as written, {query}")


@conformance(
    id="logs-follow-renamed", rules=["SRV-023"], level=Level.SHOULD, needs=[STATUS], alone=True
)
async def nothing_is_lost_when_a_log_that_is_followed_is_renamed(node: Node) -> None:
    """A log that is followed goes on in the new file of its name, after all that was written to the
    old one, also right before it was renamed."""
    path = await written(node, f"{DAY}01Z stdout F one\n")
    (file,) = node.machine.directory("logs").glob(f"*_{node.runtime.pod_name('web')}_*/main/{FILE}")
    following = asyncio.ensure_future(node.kubelet.get(f"{path}?follow=true", for_s=6))
    try:
        await node.run_for(2)
        with file.open("a") as log:
            log.write(f"{DAY}02Z stdout F two\n")
        file.rename(file.with_name(f"{FILE}.20260102-030402"))
        file.write_text(f"{DAY}03Z stdout F three\n")
        await node.run_until(following.done, within_s=10, what="the end of the answer")
        answer = following.result()
    finally:
        following.cancel()
    expect_equal(node, answer.text, "one\ntwo\nthree\n", "what was shown")
