"""Mistakes of tests: refused where they are written, in words that say what was wanted."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import started

import fakecri
from fakecri import FakeCRI
from fakecri.scripts.script import ScriptError, apply_script, load_script


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("method", "request_", "error", "words"),
    [
        ("Versoin", cri.VersionRequest(), ValueError, "did you mean Version"),
        (
            "RunPodSandbox",
            cri.VersionRequest(),
            TypeError,
            "wanted a RunPodSandboxRequest, got Ver",
        ),
        ("RemoveContainer", cri.StopContainerRequest(), TypeError, "wanted a RemoveContainerReq"),
        ("Version", None, TypeError, "Version: wanted a VersionRequest, got NoneType"),
        ("Version", {}, TypeError, "wanted a VersionRequest, got dict"),
        ("StreamContainers", cri.VersionRequest(), TypeError, "wanted a StreamContainersRequest"),
    ],
)
async def test_a_wrong_call_is_refused_and_not_recorded(
    method: str, request_: Any, error: type[Exception], words: str
) -> None:
    runtime = FakeCRI()
    stream = method.startswith("Stream")
    with pytest.raises(error, match=words):
        await (
            anext(runtime.stream(method, request_)) if stream else runtime.call(method, request_)
        )
    assert runtime.calls() == []


loose: Any = fakecri  # as a test without types sees it


def fake() -> Any:
    return FakeCRI()


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        # rules
        (lambda: fake().on("Version", attempt="0"), "attempt: wanted a whole number, got '0'"),
        (lambda: fake().on("Version", nth=1.5), "nth: wanted 1 or more, got 1.5"),
        (lambda: fake().on("Version", nth="2"), "nth: wanted 1 or more, got '2'"),
        (lambda: fake().on("Version", where=3), "where: wanted a function of the call, got 3"),
        (lambda: fake().on("Version").fails(times=1.5), "times: wanted 1 or more, got 1.5"),
        (lambda: fake().on("Version").fails(times=True), "times: wanted 1 or more, got True"),
        (lambda: fake().on("Version").fails("OK"), "'OK' is no gRPC status code of an error"),
        (lambda: fake().on("Version").fails(14), "14 is no gRPC status code"),
        (lambda: fake().on("Version").fails(message=5), "message: wanted a text, got 5"),
        (lambda: fake().on("Version").loses_answer(message=5), "message: wanted a text, got 5"),
        (lambda: fake().on("StopContainer").fails_halfway(message=5), "message: wanted a text"),
        (lambda: fake().on("GetContainerEvents").cuts_stream("2"), "after: wanted a number of mes"),
        (lambda: fake().on("GetContainerEvents").answers(None), "answers with a stream, not with"),
        (lambda: fake().on("StreamImages").loses_answer(), "StreamImages answers with a stream"),
        (lambda: fake().on("StreamImages").answers_late(1), "StreamImages answers with a stream"),
        (lambda: fake().on("Version").answers(3), "wanted a VersionResponse as answer, got int"),
        (
            lambda: fake().on("Version").answers(cri.StatusResponse()),
            "wanted a VersionResponse as answer, got StatusResponse",
        ),
        (lambda: fake().on("Version").changes_answer(3), "change: wanted a function"),
        (lambda: fake().on("ListImages").leaves_out(keep=-1), "keep: wanted a number of items"),
        # behaviours
        (lambda: loose.replies(answers=[1]), "replies.answers: wanted Reply(...) values, got (1,)"),
        (lambda: loose.replies(answers=3), "replies.answers: wanted a list of Reply(...), got 3"),
        (lambda: loose.replies(handler=3), "replies.handler: wanted a function, got 3"),
        (lambda: loose.replies(["sleep", 5]), "command: wanted words that are texts"),
        (lambda: loose.runs([1]), "command: wanted words that are texts, got [1]"),
        (lambda: loose.serves("80"), "serves.port: wanted a whole number, got '80'"),
        (lambda: loose.serves(80, status="200"), "serves.status: wanted a whole number"),
        (lambda: loose.serves(80, body=3), "serves.body: wanted a text, got 3"),
        (lambda: loose.serves(80, path=3), "serves.path: wanted a text or None, got 3"),
        (lambda: loose.ignores(15), "ignores.signal: wanted a text, got 15"),
        # options
        (lambda: loose.FakeCRI(images="busybox"), "images: wanted a list of names, got 'busybox'"),
        (lambda: loose.FakeCRI(images=["A/b"]), "'A/b': invalid reference format"),
        (lambda: loose.FakeCRI(runtime_handlers="runc"), "runtime_handlers: wanted a list of"),
        (lambda: loose.FakeCRI(registry={}), "registry: wanted a function such as registry_of"),
        (
            lambda: loose.FakeCRI(keep_events_s=-1),
            "keep_events_s: wanted seconds from 0 to 1e9, got",
        ),
        (lambda: loose.FakeCRI(call_limit=0), "call_limit: wanted 1 or more, got 0"),
        (lambda: loose.RegistryImage(pull_s=-1), "pull_s: wanted seconds from 0, got -1"),
        (lambda: loose.RegistryImage(size_bytes=0), "size_bytes: wanted 1 or more, got 0"),
        # questions
        (lambda: fake().assert_not_called("Verison"), "no method 'Verison'; did you mean Version?"),
        (lambda: fake().count("startContainer"), "did you mean StartContainer?"),
        (lambda: fake().assert_order(["Verison"]), "did you mean Version?"),
        (lambda: fake().assert_order("Version"), "wanted a list of methods, got the text"),
        (lambda: fake().assert_order([("StopContainer", "a", 0)]), "a step is a method or (method"),
    ],
)
def test_a_wrong_word_is_refused_where_it_is_written(
    sentence: Callable[[], Any], words: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        sentence()


def test_a_rule_that_was_refused_is_no_rule() -> None:
    runtime = fake()
    with pytest.raises(ValueError, match="message"):
        runtime.on("Version").fails(message=5)
    assert runtime.rules() == []


@pytest.mark.virtual_time
async def test_wrong_answers_of_functions_are_mistakes_of_the_call() -> None:
    runtime = fake()
    runtime.on("Version").answers(lambda _: None)
    with pytest.raises(TypeError, match="wanted a VersionResponse as answer, got NoneType"):
        await runtime.call("Version", cri.VersionRequest())
    runtime.behaves(loose.replies(handler=lambda _: None), container="web")
    container = await started(runtime, "web", "shop")
    with pytest.raises(TypeError, match="gave None; wanted a Reply or an exit code"):
        await runtime.call("ExecSync", cri.ExecSyncRequest(container_id=container, cmd=["x"]))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("images: [a/b, UP/x]", r":1:15: images\[1\]: 'UP/x': invalid reference format"),
        (
            "registry:\n  x: {pull_s: -1}",
            r":2:15: registry.x.pull_s: wanted seconds from 0 to 1e9, got the number -1",
        ),
        (
            "faults:\n- on: Version\n  fails: {code: OK}",
            r":3:17: faults\[0\].fails.code: 'OK' is no",
        ),
        ("faults:\n- {on: GetContainerEvents, answers_late: {}}", "answers with a stream, not"),
    ],
)
def test_wrong_scripts_name_the_line(script: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(script)
    with pytest.raises(ScriptError, match=words):
        apply_script(load_script(path), fake())


def test_a_script_that_is_refused_leaves_no_rule_that_was_never_hit(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("faults:\n- {on: Version, fails: {}}\n- {on: Version, holds_name: {}}\n")
    runtime = fake()
    with pytest.raises(ScriptError, match="Version takes no name"):
        apply_script(load_script(path), runtime)
    assert (runtime.rules(), runtime.unused_rules()) == ([], [])
