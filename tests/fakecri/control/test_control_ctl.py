"""The control socket for real: its permissions, what HTTP may do, and the command line over it."""

from __future__ import annotations

import json
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import started

import fakecri
from fakecri.cli import main
from fakecri.control.client import ControlClient, ControlError
from fakecri.control.http import MAX_BODY_BYTES, MAX_HEAD_BYTES
from fakecri.cri.endpoint import EndpointError
from fakecri.server import GrpcUpstream


@pytest.fixture(scope="module")
def shared() -> Iterator[fakecri.ServedFake]:
    with fakecri.serve(clock="manual") as fake:
        yield fake


@pytest.fixture
def fake(shared: fakecri.ServedFake) -> Iterator[fakecri.ServedFake]:
    """A served fake without rules and calls; servers start once for all tests."""
    yield shared
    shared.ctl().request("DELETE", "/v1/rules")
    shared.ctl().request("DELETE", "/v1/calls")


def ctl(fake: fakecri.ServedFake, *words: str) -> int:
    return main(["ctl", "--control", fake.control, *words])


def test_the_socket_is_the_owner_s_alone_and_goes_with_the_block(tmp_path: Path) -> None:
    listen, control = f"unix://{tmp_path}/cri", f"unix://{tmp_path}/ctl"
    with fakecri.serve(listen, control=control):
        mode = (tmp_path / "ctl").stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
    assert list(tmp_path.iterdir()) == []


def test_a_living_server_keeps_its_socket(fake: fakecri.ServedFake) -> None:
    with pytest.raises(EndpointError, match="listens there already"):
        with fakecri.serve(control=fake.control):
            pass
    assert fake.ctl().request("GET", "/v1/clock")["mode"] == "manual"


@contextmanager
def connected(fake: fakecri.ServedFake) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(10)
        sock.connect(fake.control.removeprefix("unix://"))
        yield sock


RULES = b"POST /v1/rules HTTP/1.1\r\nHost: x\r\n"
TOO_MANY_CHUNKS = (b"10000\r\n" + bytes(0x10000) + b"\r\n") * (MAX_BODY_BYTES // 0x10000 + 1)


def raw(fake: fakecri.ServedFake, data: bytes, *, end: bool = False) -> bytes:
    """All answers to some bytes; `end`: nothing more comes after them."""
    with connected(fake) as sock:
        sock.sendall(data)
        if end:
            sock.shutdown(socket.SHUT_WR)
        answer = b""
        while part := sock.recv(65536):
            answer += part
        return answer


@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        (b"hello\r\n\r\n", b"400", b"illegal request line"),
        (b"\x16\x03\x01\x02" + bytes(600), b"400", b"wanted a request in HTTP/1.1"),  # TLS
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"505", b"wanted HTTP/1.1, got HTTP/2.0"),
        (b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n", b"400", b"the target"),
        (b"GET /v1 HTTP/1.1\r\n\r\n", b"400", b"Missing mandatory Host"),
        (RULES + b"Content-Length: x\r\n\r\n", b"400", b"bad Content-Length"),
        (RULES + b"Content-Length: 9\r\n\r\nab", b"400", b"received 2 bytes, expected 9"),
        (RULES + b"Content-Length: 1\r\n\r\n\xff", b"400", b"no UTF-8"),
        (RULES + b"Transfer-Encoding: chunked\r\n\r\n2\r\na", b"400", b"incomplete chunked read"),
        (RULES + b"Transfer-Encoding: chunked\r\n\r\nx\r\n", b"400", b"illegal chunk header"),
        (RULES + b"Transfer-Encoding: gzip\r\n\r\n", b"501", b"chunked is supported"),
        (RULES + b"Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", b"415", b"got 'gzip'"),
        (RULES + b"Content-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), b"413", b"are read"),
        (
            RULES + b"Transfer-Encoding: chunked\r\n\r\n" + TOO_MANY_CHUNKS + b"0\r\n\r\n",
            b"413",
            b"are read",
        ),
        (b"GET /" + b"x" * 4 * MAX_HEAD_BYTES, b"431", b"head of the request"),
    ],
)
def test_malformed_http_is_answered(
    fake: fakecri.ServedFake, data: bytes, status: bytes, message: bytes
) -> None:
    answer = raw(fake, data, end=True)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert message in answer
    assert "error" in json.loads(answer.partition(b"\r\n\r\n")[2])


def test_a_refused_body_is_read_so_that_its_sender_reads_why(fake: fakecri.ServedFake) -> None:
    """http.client, as most, sends all of it before it reads anything; and it goes on with a new
    connection."""
    with pytest.raises(ControlError, match="at most"):
        fake.ctl().request("POST", "/v1/rules", "x" * (MAX_BODY_BYTES + 1))


ADVANCE = b'{"advance_s": 1}'
CHUNKS = b"5\r\n" + ADVANCE[:5] + b"\r\nB;why=not\r\n" + ADVANCE[5:] + b"\r\n0\r\nT: 1\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: 16\r\n\r\n" + ADVANCE,
        b"content-length:16\r\nCONTENT-TYPE: application/json; charset=utf-8\r\n\r\n" + ADVANCE,
        b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS,
        b"Transfer-Encoding: Chunked\r\nExpect: 100-continue\r\n\r\n" + CHUNKS,
        b"Content-Length: 19\r\n\r\n\xef\xbb\xbf" + ADVANCE,  # with a byte order mark
        b"Content-Encoding: identity\r\nContent-Length: 16\r\n\r\n" + ADVANCE,
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n"
        b"Content-Length: 16\r\n\r\n" + ADVANCE,
        b"Connection: keep-alive\r\nKeep-Alive: 5\r\nContent-Length: 16\r\n\r\n" + ADVANCE,
    ],
    ids=["length", "case", "chunks", "expect", "mark", "identity", "h2c", "keep-alive"],
)
@pytest.mark.parametrize(
    "line",
    [
        b"POST /v1/clock HTTP/1.1",
        b"POST http://fake/v1/clock?a=1 HTTP/1.1",
        b"POST /v1/clock HTTP/1.0",
    ],
    ids=["origin", "absolute", "1.0"],
)
def test_bodies_of_every_kind_arrive(fake: fakecri.ServedFake, line: bytes, data: bytes) -> None:
    if b"hunked" in data:  # HTTP/1.0 has none
        line = line.replace(b"/1.0", b"/1.1")
    before = fake.ctl().request("GET", "/v1/clock")["since_start_s"]
    answer = raw(fake, line + b"\r\nHost: fake\r\n" + data, end=True)
    assert b"HTTP/1.1 200 OK" in answer
    assert fake.ctl().request("GET", "/v1/clock")["since_start_s"] == pytest.approx(before + 1)


def test_a_body_may_be_announced_first(fake: fakecri.ServedFake) -> None:
    head = (
        b"POST /v1/clock HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 16\r\n\r\n"
    )
    with connected(fake) as sock:
        sock.sendall(head)
        assert sock.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(ADVANCE)
        assert sock.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_a_connection_takes_one_request_after_another(fake: fakecri.ServedFake) -> None:
    """Also those sent before their turn; an advance of an hour in between ends none."""
    hour = b'POST /v1/clock HTTP/1.1\r\nHost: x\r\nContent-Length: 19\r\n\r\n{"advance_s": 3600}'
    get = b"GET /v1/clock HTTP/1.1\r\nHost: x\r\n\r\n"
    missing = b"GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /v1/clock HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    statuses = re.findall(rb"HTTP/1.1 (\d+)", raw(fake, hour + get + missing + last))
    assert statuses == [b"200", b"200", b"404", b"200"]


def test_head_is_get_without_the_body(fake: fakecri.ServedFake) -> None:
    heads = {}
    for method in (b"GET", b"HEAD"):
        answer = raw(fake, method + b" /v1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        heads[method], _, body = answer.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}".encode() in heads[method] or method == b"HEAD"
        assert bool(body) == (method == b"GET")
    assert heads[b"GET"] == heads[b"HEAD"]


def test_a_body_nested_without_end_is_refused(fake: fakecri.ServedFake) -> None:
    with pytest.raises(ControlError, match="nested too deeply"):
        fake.ctl().request("POST", "/v1/rules", "[" * 20_000)


def test_a_connection_that_ends_early_disturbs_nobody(fake: fakecri.ServedFake) -> None:
    assert raw(fake, b"", end=True) == b""
    assert raw(fake, b"GET /v1/clo", end=True).startswith(b"HTTP/1.1 400")
    assert fake.ctl().request("GET", "/v1/clock")["mode"] == "manual"


async def test_ctl_programs_drives_and_questions_a_fake(
    fake: fakecri.ServedFake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ctl(fake, "behave", "--container", "web", "exits: {code: 3, after_s: 60}") == 0
    assert ctl(fake, "fault", "Status", "--nth", "2", "fails: {code: UNAVAILABLE}") == 0
    assert (
        "containers (container='web'): exits(code=3, after_s=60) (0 hits)"
        in capsys.readouterr().out
    )
    async with GrpcUpstream(fake.endpoint) as client:
        await started(client, "web", "shop")
        sandbox = fake.sandboxes()[0].id
        assert ctl(fake, "wait", "StartContainer", "--container", "web") == 0
        assert ctl(fake, "containers", "--container", "web") == 0
        assert capsys.readouterr().out.endswith("/shop/web#0  RUNNING\n")
        assert ctl(fake, "advance", "61") == 0
        assert ctl(fake, "--json", "containers") == 0
        rows = json.loads(capsys.readouterr().out.partition("\n")[2])
        assert [(row["state"], row["exit_code"]) for row in rows] == [("EXITED", 3)]
        assert ctl(fake, "--json", "calls", "StartContainer") == 0
        assert json.loads(capsys.readouterr().out)["container"] == "web"
        assert ctl(fake, "calls", "--limit", "1") == 0
        assert "StartContainer shop/web#0" in capsys.readouterr().out
        assert ctl(fake, "assert", "order", "RunPodSandbox", "StartContainer") == 0
        assert ctl(fake, "assert", "called", "StartContainer", "--times", "2") == 1
        assert "expected 2 x StartContainer" in capsys.readouterr().err
        assert ctl(fake, "drop", "--container", "web") == 0
        assert ctl(fake, "node", "--memory-used", "6Gi", "--disk-used", "1Gi") == 0
        assert ctl(fake, "node", "--pid-limit", "99", "--pids-used", "9", "--swap", "1Gi") == 0
        assert (fake.node.pid_limit, fake.node.swap_total_bytes) == (99, 2**30)
        assert ctl(fake, "node", "--cpus", "3", "--image-root", "/i", "--inodes", "7") == 0
        assert (fake.node.cpus, fake.node.image_root) == (3, "/i")
        assert fake.node.filesystems["/"].inodes == 7
        assert ctl(fake, "oom", "--process", "java") == 0
        assert ctl(fake, "kernel-says", "hello") == 0
        assert fake.node.log.texts[-1] == "hello"
        assert fake.node.base_memory_used_bytes == 6 * 2**30
        assert fake.node.filesystems["/"].base_used_bytes == 2**30
        remove = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox)
        await client.call("RemovePodSandbox", remove, timeout_s=10)


MISTAKES = [
    (
        ["fault", "Verion", "hangs: {}"],
        "faults[0].on: CRI v1 has no method 'Verion'; did you mean Version?",
    ),
    (["fault", "Version", "hang: {}"], "unknown key 'hang'"),
    (
        ["behave", "exits: {code: x}"],
        "exits.code: wanted a whole number from 0 to 255, got the text 'x'",
    ),
    (["kill", "--container", "nobody"], "no running container (container='nobody')"),
    (["release", "77"], "no rule '77'; GET /v1/rules (ctl rules) shows them"),
    (["add", "/nowhere.yaml"], "cannot read /nowhere.yaml"),
    (["assert", "called", "Version", "Status"], "wanted one method"),
    (["advance", "-5"], "advance_s: wanted seconds from 0"),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES)
def test_mistakes_are_one_line_and_code_2(
    fake: fakecri.ServedFake, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ctl(fake, *words) == 2
    error = capsys.readouterr().err
    assert error.startswith("fakecri ctl: error: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_script_of_ctl_add_is_named_in_errors(
    fake: fakecri.ServedFake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("faults:\n- {on: Version, delays: {}}\n")
    assert ctl(fake, "add", str(file)) == 2
    assert f"{file}:2:25: faults[0].delays: key 'delay_s' is missing" in capsys.readouterr().err
    file.write_text("faults:\n- {on: Version, delays: {delay_s: 1}}\n")
    assert ctl(fake, "add", str(file)) == 0


def test_a_wait_that_runs_out_is_code_1(
    fake: fakecri.ServedFake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ctl(fake, "wait", "Attach", "--timeout", "0.05") == 1
    assert "expected 1 x Attach within 0.05 s, got 0" in capsys.readouterr().err


def test_without_a_socket_ctl_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAKECRI_CONTROL", raising=False)
    assert main(["ctl", "rules"]) == 2
    assert "give --control unix:///PATH or set FAKECRI_CONTROL" in capsys.readouterr().err
    assert main(["ctl", "--control", "unix:///nowhere/ctl.sock", "rules"]) == 2
    error = capsys.readouterr().err
    assert "unix:///nowhere/ctl.sock: no such file" in error
    assert "fakecri serve --control" in error
    assert main(["ctl", "--control", "ctl.sock", "rules"]) == 2
    assert "wanted unix:///absolute/path.sock" in capsys.readouterr().err


def test_ctl_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom fakecri.cli import main\n"
        "main(['ctl', '--control', 'unix:///nowhere', 'rules'])\n"
        "print([m for m in ('grpc', 'google.protobuf', 'aiohttp', 'yaml') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_cri_socket_is_no_control_socket(fake: fakecri.ServedFake) -> None:
    client = ControlClient(fake.endpoint)
    with pytest.raises(EndpointError, match="is no control socket; give the path"):
        client.request("GET", "/v1/rules")


def test_a_proxy_process_is_controlled_too(fake: fakecri.ServedFake, tmp_path: Path) -> None:
    listen, control = f"unix://{tmp_path}/front", f"unix://{tmp_path}/ctl"
    command = [sys.executable, "-m", "fakecri", "proxy", "--upstream", fake.endpoint]
    with subprocess.Popen(
        [*command, "--listen", listen, "--control", control], stdout=subprocess.PIPE, text=True
    ) as proxy:
        assert proxy.stdout is not None
        lines = [proxy.stdout.readline() for _ in range(2)]
        assert lines == [
            f"fakecri proxy: listening on {listen}\n",
            f"fakecri proxy: control on {control}\n",
        ]
        client = ControlClient(control, timeout_s=10)
        client.request("POST", "/v1/rules", "faults: [{on: Version, hangs: {}}]")
        with pytest.raises(ControlError, match="its runtime is a real one"):
            client.request("GET", "/v1/node")
        proxy.terminate()
        assert proxy.wait(20) == 0
    assert list(tmp_path.iterdir()) == []


def test_standing_time_needs_somebody_to_advance_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--listen", f"unix://{tmp_path}/cri", "--clock", "manual"]) == 2
    assert "time would stand still for ever; give --control too" in capsys.readouterr().err


def test_a_control_socket_that_cannot_be_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["serve", "--listen", f"unix://{tmp_path}/cri", "--control"]
    assert main([*words, f"unix://{tmp_path}/nowhere/ctl"]) == 2
    assert f"the directory {tmp_path}/nowhere does not exist" in capsys.readouterr().err
    assert main([*words, f"unix://{tmp_path}/cri"]) == 2
    assert "listen and control are both" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_clients_get_the_words_of_the_server(fake: fakecri.ServedFake) -> None:
    client = ControlClient(fake.control, timeout_s=10)
    with pytest.raises(ControlError, match="there is no '/v2'") as failure:
        client.request("GET", "/v2")
    assert failure.value.status == 404
    assert client.request("GET", "/v1/calls", query={"limit": 1, "method": None}) == []


def test_several_behaviours_ports_and_first_attempts_in_one_line(
    fake: fakecri.ServedFake, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("behave", "--container", "web", "--first-attempts", "2")
    assert ctl(fake, *words, "exits: {code: 1}", "prints: {text: 'a, b'}") == 0
    assert ctl(fake, "forward", "--pod", "shop", "80", "8080") == 0
    shown = capsys.readouterr().out
    assert "in their first 2 attempts: exits(code=1)" in shown
    assert "port 80 of pods (pod='shop')" in shown
    assert ctl(fake, "forward", "80", "nowhere") == 2
    assert "forwards[0].to: wanted a port" in capsys.readouterr().err


def test_the_spacing_of_calls_is_an_assertion(
    fake: fakecri.ServedFake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ctl(fake, "assert", "series", "Version") == 2
    assert "--at is missing" in capsys.readouterr().err
    assert ctl(fake, "assert", "series", "Version", "--at", "0,10", "--slack", "1") == 1
    assert "expected 2 times, got 0" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        ctl(fake, "assert", "series", "Version", "--at", "soon")
    assert "wanted seconds like 0,10,30, got 'soon'" in capsys.readouterr().err


def test_the_network_goes_and_comes_back(fake: fakecri.ServedFake) -> None:
    assert ctl(fake, "lose-network") == 0
    assert fake.ctl().request("GET", "/v1/state")["runtime"] == {"up": True, "network": False}
    assert ctl(fake, "restore-network") == 0
    assert fake.ctl().request("GET", "/v1/state")["runtime"] == {"up": True, "network": True}
