"""Logs over HTTP: what is asked, which container, which lines (SRV-020 to SRV-023)."""

from __future__ import annotations

import asyncio
import os
import resource
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pods import make_pod
from server_world import ask, host, port

from refkubelet.cri.records import ContainerRecord, ContainerState
from refkubelet.cri.target import CriCallError
from refkubelet.model.objects import PodStatus, decode_pod
from refkubelet.server.common.exchange import Answer, Request
from refkubelet.server.logs.lines import (
    LogFilter,
    LogLine,
    UnknownFormat,
    parse_cri,
    parse_json,
    parser_of,
)
from refkubelet.server.logs.reader import LogReader, LogSource, tail_start
from refkubelet.server.logs.request import LogError, container_with_logs, log_options
from simclock import RealClock, run_virtual

LINES = (
    b"2026-01-01T00:00:01.1Z stdout F one\n"
    b"2026-01-01T00:00:02Z stderr F two\n"
    b"2026-01-01T00:00:03.123456789Z stdout P thr\n"
    b"2026-01-01T00:00:03.2Z stdout F ee\n"
)


def options(query: str) -> Any:
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    return log_options(Request(path="/", query=tuple((n, v) for n, _, v in pairs)))


@pytest.mark.parametrize(
    ("query", "status"),
    [
        *(("tailLines=x", 400), ("tailLines=", 400), ("limitBytes=1.5", 400)),
        *(("sinceTime=yesterday", 400), ("sinceSeconds=9223372036854775808", 400)),
        *(("tailLines=-1", 422), ("limitBytes=0", 422), ("sinceSeconds=0", 422)),
        *(("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422), ("stream=Both", 422)),
        *(("stream=Stdout&tailLines=1", 422), ("stream=stdout", 422)),
    ],
)
def test_what_is_no_request_SRV_021(query: str, status: int) -> None:
    found = options(query)
    words = {400: "Unable to decode query.", 422: "Invalid request."}[status]
    assert isinstance(found, Answer)
    assert (found.status, found.body.decode()) == (status, f'{{"message": "{words}"}}')


def test_what_a_request_asks_for_SRV_020() -> None:
    assert options("follow=").follow
    assert options("follow=yes").follow
    assert not options("follow=0").follow
    assert not options("follow=FALSE").follow
    assert not options("").previous
    assert options("tail=all&tailLines=3").tail_lines is None
    assert options("tail=2&tailLines=3").tail_lines == 2
    assert options("tailLines=0").tail_lines == 0
    assert options("limitBytes=7").limit_bytes == 7
    assert options("stream=All&tailLines=1").stream == "All"


def test_the_smallest_and_largest_numbers_SRV_021() -> None:
    assert options("limitBytes=1").limit_bytes == 1
    assert options("sinceSeconds=1").since_seconds == 1
    assert options(f"tailLines={2**63 - 1}").tail_lines == 2**63 - 1
    for number, status in ((-(2**63), 422), (-(2**63) - 1, 400), (2**63, 400)):
        assert options(f"tailLines={number}").status == status


def test_times_of_requests_SRV_020() -> None:
    assert not options("timestamps=0").timestamps
    assert options("timestamps=1").timestamps
    beginning = datetime(1970, 1, 1, tzinfo=UTC)
    for query in ("sinceTime=", "sinceTime=null", "sinceTime=1970-01-01T01:00:00+01:00"):
        assert options(query).since_time == beginning
    for query in (
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00Z",
        "2026-01-01T",
    ):
        assert options(f"sinceTime={query}").status == 400


def status(**fields: Any) -> PodStatus:
    found = {"name": "c", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    rows = {"containerStatuses": [{**found, **fields}]}
    made = decode_pod({"metadata": {"name": "p"}, "status": rows}).status
    assert made is not None
    return made


WHERE = 'container "c" in pod "p"'
ENDED = {"terminated": {"exitCode": 0, "containerID": "x://old"}}
NOT_STARTED = {"terminated": {"exitCode": 128}}
WAITS = {"waiting": {"reason": "CrashLoopBackOff"}}


@pytest.mark.parametrize(
    ("fields", "previous", "wanted"),
    [
        ({"state": {"running": {}}, "containerID": "x://new"}, False, "x://new"),
        ({"state": {"running": {}}, "containerID": "x://new"}, True, None),
        ({"state": {"running": {}}, "lastState": ENDED, "containerID": "x://n"}, True, "x://old"),
        ({"state": ENDED}, False, "x://old"),
        ({"state": {"running": {}}}, False, ""),  # the runtime has not told yet
        ({"state": NOT_STARTED, "lastState": ENDED}, False, "x://old"),
        ({"state": WAITS, "lastState": ENDED}, False, "x://old"),
    ],
)
def test_which_container_has_the_log_SRV_022(
    fields: dict[str, Any], previous: bool, wanted: str | None
) -> None:
    if wanted is None:
        with pytest.raises(LogError, match="previous terminated container"):
            container_with_logs("p", status(**fields), "c", previous=previous)
    else:
        assert container_with_logs("p", status(**fields), "c", previous=previous) == wanted


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"state": NOT_STARTED}, f"{WHERE} is terminated"),
        ({"state": WAITS, "lastState": NOT_STARTED}, f"{WHERE} is terminated"),
        ({"state": WAITS}, f"{WHERE} is waiting to start: CrashLoopBackOff"),
        (
            {"state": {"waiting": {"reason": "ErrImagePull"}}},
            f"{WHERE} is waiting to start: image can't be pulled",
        ),
        (
            {"state": {"waiting": {"reason": "ImagePullBackOff"}}},
            f"{WHERE} is waiting to start: trying and failing to pull image",
        ),
        ({}, f"{WHERE} is waiting to start - no logs yet"),
        ({"state": {"waiting": {}}}, f"{WHERE} is waiting to start: "),
        ({"name": "d"}, f"{WHERE} is not available"),
    ],
)
def test_why_there_is_no_log_SRV_022(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(LogError) as caught:
        container_with_logs("p", status(**fields), "c", previous=False)
    assert str(caught.value) == words


def shown(lines: bytes = LINES, **wanted: Any) -> bytes:
    chosen = LogFilter(**wanted)
    return b"".join(chosen.take(line) for line in lines.splitlines(keepends=True))


def test_which_lines_are_shown_and_how_SRV_020_SRV_023() -> None:
    assert shown() == b"one\ntwo\nthree\n"
    assert shown(stream=b"stderr") == b"two\n"
    assert shown(limit_bytes=6) == b"one\ntw"
    since = parse_cri(LINES.splitlines(keepends=True)[1]).time_ns
    assert shown(since_ns=since) == b"two\nthree\n"
    assert shown(since_ns=since + 1) == b"three\n"
    assert shown(timestamps=True) == (
        b"2026-01-01T00:00:01.100000000Z one\n"
        b"2026-01-01T00:00:02.000000000Z two\n"
        b"2026-01-01T00:00:03.123456789Z three\n"
    )
    assert shown(timestamps=True, limit_bytes=5) == b"2026-"


def test_formats_of_lines_SRV_020() -> None:
    docker = b'{"log":"a\\n","stream":"stdout","time":"2026-01-01T00:00:00.5Z"}\n'
    assert shown(docker + b"no such line\n" + docker) == b"a\na\n"
    assert parse_json(docker).time_ns % 10**9 == 500_000_000
    with pytest.raises(UnknownFormat, match="unsupported log format"):
        shown(b"plain\n")
    assert shown(LINES + b"2026-01-01T00:00:09Z elsewhere F x\n") == shown()


NEW_YEAR_NS = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            b"2026-01-01T00:00:00.123456789123Z stderr F a b  c\n",
            LogLine(NEW_YEAR_NS + 123_456_789, "Z", b"stderr", b"a b  c\n"),
        ),
        (
            b"2026-01-01T02:00:00,5+02:00 stdout P:x half\n",
            LogLine(NEW_YEAR_NS + 500_000_000, "+02:00", b"stdout", b"half"),
        ),
        (b"2026-01-01T00:00:00Z stdout  \n", LogLine(NEW_YEAR_NS, "Z", b"stdout", b"\n")),
        (b"2026-01-01T00:00:00Z stdout F:P x", LogLine(NEW_YEAR_NS, "Z", b"stdout", b"x")),
    ],
)
def test_lines_of_runtimes_SRV_020(line: bytes, wanted: LogLine) -> None:
    assert parse_cri(line) == wanted


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"2026-01-01T00:00:00Z stdin F x\n", "unexpected stream type b'stdin'"),
        (b"2026-01-01 stdout F x\n", "unexpected timestamp b'2026-01-01'"),
        (b"2026-01-01T00:00:00 stdout F x\n", "unexpected timestamp b'2026-01-01T00:00:00'"),
    ],
)
def test_lines_that_no_runtime_writes_SRV_020(line: bytes, words: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_cri(line)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"[]", "no mapping"),
        (b'{"stream": "stdin"}', "unexpected stream type b'stdin'"),
        (b'{"time": "2026-01-01T00:00:00Z"}', "unexpected stream type"),
        (b'{"stream": "stdout"}', "unexpected timestamp"),
    ],
)
def test_lines_that_docker_did_not_write_SRV_020(line: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_json(line)


def test_lines_of_docker_SRV_020() -> None:
    line = b'{"stream": "stderr", "time": "2026-01-01T01:00:00.25+01:00", "log": "x"}'
    assert parse_json(line) == LogLine(NEW_YEAR_NS + 250_000_000, "+01:00", b"stderr", b"x")
    empty = b'{"stream": "stdout", "time": "2026-01-01T00:00:00Z"}'
    assert parse_json(empty) == LogLine(NEW_YEAR_NS, "Z", b"stdout", b"")
    assert shown(line, stream=b"stdout") == b""
    with pytest.raises(UnknownFormat) as caught:
        parser_of(b"\xff")
    assert str(caught.value) == "unsupported log format: '\ufffd'"


def test_times_are_shown_where_a_line_begins_in_its_zone_SRV_023() -> None:
    lines = (
        b"2026-01-01T02:00:00+02:00 stdout P half\n"
        b"2026-01-01T00:00:01Z stdout P \n"
        b"2026-01-01T00:00:02Z stdout F whole\n"
    )
    at = b"2026-01-01T02:00:00.000000000+02:00 half"
    # what an empty part says is nothing, so the line begins anew
    assert shown(lines, timestamps=True) == at + (b"2026-01-01T00:00:02.000000000Z whole\n")


def reader(path: Path, **wanted: Any) -> LogReader:
    async def running() -> bool:
        return False

    source = LogSource(str(path), RealClock(), wanted.pop("running", running), (str(path.parent),))
    chosen = LogFilter(**wanted.pop("shown", {}))
    return LogReader(source, chosen, **{"tail_lines": None, "follow": False, **wanted})


async def read(path: Path, **wanted: Any) -> bytes:
    return b"".join([chunk async for chunk in reader(path, **wanted).chunks()])


async def test_the_last_lines_SRV_020(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_bytes(LINES)
    assert await read(log) == b"one\ntwo\nthree\n"
    assert await read(log, tail_lines=2) == b"three\n"
    assert await read(log, tail_lines=3) == b"two\nthree\n"
    assert await read(log, tail_lines=99) == b"one\ntwo\nthree\n"
    assert await read(log, tail_lines=0) == b""
    log.write_bytes(LINES + b"2026-01-01T00:00:09Z stdout F cut")
    assert (await read(log)).endswith(b"cut")


async def test_big_logs_come_in_pieces_SRV_020(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    line = b"2026-01-01T00:00:01Z stdout F " + b"x" * 9_000 + b"\n"
    log.write_bytes(line * 50)
    pieces = [chunk async for chunk in reader(log).chunks()]
    assert len(pieces) > 5
    assert max(map(len, pieces)) < 80_000
    assert b"".join(pieces) == (b"x" * 9_000 + b"\n") * 50
    file = os.open(log, os.O_RDONLY)
    assert [await tail_start(file, n) for n in (0, 1, 20, 50, 51)] == [
        *(len(line) * n for n in (50, 49, 30, 0)),
        0,
    ]
    os.close(file)


async def test_links_and_fifos_are_not_read_SRV_020(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(LINES)
    (tmp_path / "0.log").symlink_to(secret)
    os.mkfifo(tmp_path / "1.log")
    for name in ("0.log", "1.log", "2.log"):
        with pytest.raises(OSError):
            await read(tmp_path / name)


def test_following_ends_with_the_container_and_sees_a_new_file_SRV_023(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    alive = True

    async def running() -> bool:
        return alive

    async def follow() -> None:
        nonlocal alive
        log.write_bytes(LINES)
        clock = asyncio.get_running_loop().clock  # type: ignore[attr-defined]
        source = LogSource(str(log), clock, running, (str(tmp_path),))
        following = LogReader(source, LogFilter(), tail_lines=1, follow=True)
        seen: list[bytes] = []

        async def collect() -> None:
            async for chunk in following.chunks():
                seen.append(chunk)

        task = asyncio.create_task(collect())
        await clock.sleep(1)
        assert seen == [b"ee\n"]
        with log.open("ab") as more:
            more.write(b"2026-01-01T00:00:04Z stdout F half")
        await clock.sleep(1)
        assert seen == [b"ee\n"]
        with log.open("ab") as more:
            more.write(b" whole\n")
        await clock.sleep(1)
        assert seen[1:] == [b"half whole\n"]
        log.rename(tmp_path / "0.log.1")
        await clock.sleep(1)
        log.write_bytes(b"2026-01-01T00:00:05Z stdout F new\n")
        await clock.sleep(1)
        assert seen[2:] == [b"new\n"]
        with log.open("ab") as more:
            more.write(b"2026-01-01T00:00:06Z stdout F last\n")
        alive = False
        await task
        assert seen[3:] == [b"last\n"]

    run_virtual(follow, seed=1)


def running_pod() -> Any:
    container = {"name": "c", "image": "", "imageID": "", "ready": True, "restartCount": 0}
    row = {**container, "state": {"running": {}}, "containerID": "x://id"}
    return make_pod("c", name="web", status={"containerStatuses": [row]})


class Runtime:
    """Knows one container."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = ContainerState.RUNNING

    async def container_status(self, container_id: str) -> ContainerRecord:
        if container_id != "id":
            raise CriCallError("ContainerStatus", "NOT_FOUND", "no such container")
        return ContainerRecord("id", "c", self.state, log_path=str(self.path))


async def test_the_order_of_checks_SRV_021(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_bytes(LINES)
    served = host(pods=(running_pod(),), client=Runtime(log), log_roots=(str(tmp_path),))
    on = port(served=served)
    path = "/containerLogs/default"
    assert (await ask(on, f"{path}/other/c?tailLines=x"))[0] == 400
    assert (await ask(on, f"{path}/other/c?tailLines=-1"))[0] == 422
    assert await ask(on, f"{path}/other/c") == (404, 'pod "other" does not exist')
    assert await ask(on, f"{path}/web/d?stream=Stdout") == (
        404,
        'container "d" not found in pod "web"',
    )
    refused = await ask(on, f"{path}/web/c?stream=Stdout")
    assert refused == (
        400,
        'unable to return the given log stream: "Stdout". Please enable '
        "PodLogsQuerySplitStreams feature gate in kubelet",
    )
    assert await ask(on, f"{path}/web/c?previous=1") == (
        400,
        'previous terminated container "c" in pod "web" not found',
    )
    assert await ask(on, f"{path}/web/c?tailLines=3") == (200, "two\nthree\n")
    assert await ask(on, f"{path}/web/c", "POST") == (405, "405: Method Not Allowed")
    log.unlink()
    code, words = await ask(on, f"{path}/web/c")
    assert code == 200
    assert words.startswith("failed to open log file")


async def test_one_stream_with_the_gate_SRV_020(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_bytes(LINES)
    served = host(
        pods=(running_pod(),),
        client=Runtime(log),
        log_roots=(str(tmp_path),),
        gates=lambda name, default: name == "PodLogsQuerySplitStreams",
    )
    assert await ask(port(served=served), "/containerLogs/default/web/c?stream=Stderr") == (
        200,
        "two\n",
    )


BEGINNING = b"2026-01-01T00:00:01Z stdout F "
LONG_BYTES = (5 << 20, 20 << 20)


def cpu_s() -> float:
    """What this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def long_line(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.write(BEGINNING)
        for _ in range(size >> 16):
            file.write(b"x" * (1 << 16))
    return path


async def test_a_line_without_an_end_takes_time_as_it_is_long_and_little_memory_SRV_020(
    tmp_path: Path,
) -> None:
    """Four times as long a line takes four times as long, sixteen times if it is put together again
    and again."""
    times_s = []
    for size in LONG_BYTES:
        log = long_line(tmp_path / f"{size}.log", size)
        began_s, read_bytes = cpu_s(), 0
        async for chunk in reader(log).chunks():
            assert len(chunk) < 1 << 20
            read_bytes += len(chunk)
        times_s.append(cpu_s() - began_s)
        assert read_bytes == size
    assert times_s[1] < 9 * times_s[0]
    tracemalloc.start()
    async for _ in reader(log).chunks():
        pass
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("tags", [b"F", b"P"])
@pytest.mark.parametrize("times", [False, True])
async def test_a_long_line_is_shown_as_any_other_SRV_020(
    tmp_path: Path, tags: bytes, times: bool
) -> None:
    """In parts as it comes; a part that the runtime has cut has no end of its own."""
    log, text = tmp_path / "0.log", bytes(range(33, 127)) * 8_000
    head = b"2026-01-01T00:00:01Z stdout "
    log.write_bytes(head + tags + b" " + text + b"\n" + head + b"F next\n")
    found = await read(log, shown={"timestamps": times})
    time = b"2026-01-01T00:00:01.000000000Z " if times else b""
    between = b"" if tags == b"P" else b"\n" + time
    assert found == time + text + between + b"next\n"


async def test_of_long_lines_only_what_was_asked_for_is_shown_SRV_020(tmp_path: Path) -> None:
    log, text = tmp_path / "0.log", b"x" * 600_000
    log.write_bytes(
        b"2026-01-01T00:00:01Z stdout F first\n"
        + b"2026-01-01T00:00:01Z stderr F " + text + b"\n"
        + b'{"log": "' + text + b'", "stream": "stdout"}\n'
        + b"2026-01-01T00:00:01Z stdout F " + text + b"\n"
        + b"2026-01-01T00:00:01Z stdout F last\n"
    )  # fmt: skip
    assert await read(log, shown={"stream": b"stdout"}) == b"first\n" + text + b"\nlast\n"
    assert await read(log, shown={"limit_bytes": 300_010}) == b"first\n" + b"x" * 300_004
    assert await read(log, tail_lines=2) == text + b"\nlast\n"


async def test_what_is_no_log_is_told_in_short_SRV_020(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_bytes(b"x" * (1 << 20))
    with pytest.raises(UnknownFormat) as told:
        _ = [c async for c in reader(log).chunks()]
    assert len(str(told.value)) < 1200
