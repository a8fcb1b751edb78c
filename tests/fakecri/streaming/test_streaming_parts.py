"""The parts of the streaming server that need no socket: tokens, statuses, heads, rules."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from loops import virtual_loop
from runtime_calls import run_pod

from fakecri import CriError, FakeCRI
from fakecri.behaviors.matching import Subject
from fakecri.fakesh import PROGRAMS
from fakecri.streaming.http_head import negotiate, parse_head
from fakecri.streaming.session import Outcome
from fakecri.streaming.stream_rules import Programs
from fakecri.streaming.tokens import LIFE_S, MAX_WAITING, Tokens
from simclock import Rng

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def tokens() -> Tokens:
    return Tokens(virtual_loop().clock, Rng(1))


async def test_a_token_is_eight_url_safe_characters_and_serves_once_CRI_115(tokens: Tokens) -> None:
    request = cri.ExecRequest(cmd=["a"])
    token = tokens.put(request)
    assert re.fullmatch(r"[A-Za-z0-9_-]{8}", token)
    assert tokens.take(token) is request
    assert tokens.take(token) is None
    assert tokens.take("") is None


async def test_nobody_can_foresee_the_tokens_of_a_real_server_CRI_115(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They come from the operating system, not from numbers that follow from earlier ones."""
    monkeypatch.setattr("simclock.dice.secrets.token_bytes", lambda count: b"\xff" * count)
    assert Tokens(virtual_loop().clock).put(cri.ExecRequest()) == "________"


async def test_a_token_lives_for_a_minute_CRI_115(tokens: Tokens) -> None:
    early, late = tokens.put(cri.ExecRequest()), tokens.put(cri.ExecRequest())
    await asyncio.sleep(LIFE_S)
    assert tokens.take(early) is not None
    await asyncio.sleep(0.001)
    assert tokens.take(late) is None


async def test_a_thousand_requests_wait_at_most_CRI_115(tokens: Tokens) -> None:
    for _ in range(MAX_WAITING):
        tokens.put(cri.ExecRequest())
    with pytest.raises(CriError) as caught:
        tokens.put(cri.ExecRequest())
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert caught.value.details() == "maximum number of in-flight requests exceeded"
    await asyncio.sleep(LIFE_S + 1)
    tokens.put(cri.ExecRequest())


def test_the_status_of_an_end() -> None:
    """metav1.Status as v4 and v5 send it."""
    assert json.loads(Outcome().to_json()) == {"metadata": {}, "status": "Success"}
    failed = json.loads(Outcome(3).to_json())
    assert (failed["status"], failed["reason"]) == ("Failure", "NonZeroExitCode")
    assert failed["details"] == {"causes": [{"reason": "ExitCode", "message": "3"}]}
    broken = json.loads(Outcome(failure="no such thing").to_json())
    assert (broken["reason"], broken["code"]) == ("InternalError", 500)
    assert broken["message"] == "Internal error occurred: no such thing"


def test_heads_of_requests() -> None:
    head = parse_head(
        b"POST /exec/ab?x=1 HTTP/1.1\r\nConnection: keep-alive, Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        b"X-Stream-Protocol-Version: v5.x\r\nx-stream-protocol-version: v4.x, v3.x"
    )
    assert head is not None
    assert head.path == "/exec/ab"
    assert head.wants_spdy
    asked = head.values("X-Stream-Protocol-Version")
    assert asked == ["v5.x", "v4.x", "v3.x"]
    assert negotiate(asked, ("v3.x", "v4.x")) == "v4.x"
    assert negotiate(asked, ()) is None
    assert parse_head(b"hello") is None
    websocket = parse_head(b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket")
    assert websocket is not None
    assert not websocket.wants_spdy


def test_the_newest_rule_that_fits_wins_and_goes_with_its_block() -> None:
    programs = Programs()
    web = Subject(pod="web", container="c")
    programs.forward(80, to=8080)
    with programs.forward(0, to="10.0.0.1:81", pod="web*") as rule:
        assert programs.port_of(web, 80) == "10.0.0.1:81"
        assert rule.hits == 1
        assert programs.port_of(Subject(pod="db"), 80) == 8080
    assert programs.port_of(web, 80) == 8080
    assert programs.port_of(web, 81) is None
    program = PROGRAMS["true"]
    with programs.command("greet", program, container="c"), programs.attach(program, pod="db"):
        assert "greet" in programs.commands_of(web)
        assert "greet" not in programs.commands_of(Subject(container="d"))
        assert programs.attach_of(web) is None
        assert programs.attach_of(Subject(pod="db")) is not None
    assert "greet" not in programs.commands_of(web)


@pytest.mark.parametrize("to", [0, 70000, "8080", "host:x", "host:0"])
def test_targets_that_are_none(to: Any) -> None:
    with pytest.raises(ValueError, match="to: wanted a port"):
        Programs().forward(80, to=to)
    with pytest.raises(ValueError, match="port: wanted 0 to 65535, got -1"):
        Programs().forward(-1, to=1)


async def test_virtual_time_has_no_streams_and_says_so() -> None:
    fake = FakeCRI()
    request = cri.PortForwardRequest(pod_sandbox_id=await run_pod(fake))
    with pytest.raises(CriError, match="real time") as caught:
        await fake.call("PortForward", request)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
