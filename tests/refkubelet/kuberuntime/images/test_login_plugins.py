"""Credential provider plug-ins: what they are told, what is kept, for whom (BACK-214..216)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from image_bench import ABSENT, Bench, login, only
from lightkube.models.core_v1 import ServiceAccount
from lightkube.models.meta_v1 import ObjectMeta
from loops import virtual_loop
from pods import make_pod
from runtime_doubles import IMAGE_ID

from refkubelet.api.client import ApiError
from refkubelet.api.kinds import Kind
from refkubelet.config.credentials.providers import (
    PROTOCOL_V1,
    CredentialProvider,
    ExecEnvVar,
    TokenAttributes,
)
from refkubelet.host.programs import Finished, Program, ProgramError
from refkubelet.kuberuntime.images.callers import Callers
from refkubelet.kuberuntime.images.keyring import ServiceAccountSource
from refkubelet.kuberuntime.images.plugin_wire import (
    Answer,
    AnswerError,
    Caller,
    looked_for,
    read_answer,
)
from refkubelet.kuberuntime.images.plugins import CredentialPlugins, PluginDeps
from refkubelet.model.objects import Pod

IMAGE = "reg.io/team/app"
ANN = ServiceAccountSource("default", "ann", "uid-ann")


def answer(user: str = "ann", *, place: str = "reg.io", **fields: Any) -> bytes:
    auth = {place: {"username": user, "password": "pass"}}
    value = {
        "apiVersion": PROTOCOL_V1,
        "kind": "CredentialProviderResponse",
        "cacheKeyType": "Image",
        "auth": auth,
        **fields,
    }
    return json.dumps(value).encode()


class Scripts:
    """`Programs` that answer by name; a function is called, a number waited for first."""

    def __init__(
        self, **answers: bytes | Finished | Exception | Callable[[Program], bytes]
    ) -> None:
        self.answers = answers
        self.runs: list[Program] = []
        self.takes_s = 0.0
        self.ended = 0

    async def run(self, program: Program) -> Finished:
        self.runs.append(program)
        try:
            await asyncio.sleep(self.takes_s)
        except asyncio.CancelledError:
            self.ended += 1
            raise
        said = self.answers[Path(program.command[0]).name]
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Finished):
            return said
        return Finished(0, said(program) if callable(said) else said)

    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(run.stdin) for run in self.runs]


class Server:
    """Service accounts."""

    def __init__(self) -> None:
        self.annotations: dict[str, str] = {}
        self.refused = False

    async def get(self, kind: Kind[Any], name: str, namespace: str = "") -> Any:
        if self.refused:
            raise ApiError(403, "Forbidden", "not yours")
        meta = ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}")
        meta.annotations = self.annotations
        return ServiceAccount(metadata=meta)


class Tokens:
    """Tokens of every pod."""

    async def get(self, pod: Pod, audience: str, expiration_s: int | None) -> str:
        assert expiration_s is None
        return f"token of {pod.metadata.name} for {audience}"


def provider(name: str = "cloud", **fields: Any) -> CredentialProvider:
    given = {"match_images": ("reg.io",), "default_cache_s": 0.0, "api_version": PROTOCOL_V1}
    return CredentialProvider(name=name, **{**given, **fields})


def plugins(
    scripts: Scripts, *providers: CredentialProvider, server: Server | None = None
) -> CredentialPlugins:
    callers = Callers(server, Tokens() if server else None)
    clock = virtual_loop().clock
    deps = PluginDeps(scripts, clock, callers, bin_dir=Path("/bin"), environment={"A": "1"})
    return CredentialPlugins(providers or (provider(),), deps)


def of_account(name: str = "web", account: str = "ann") -> Pod:
    return make_pod(name=name, namespace="default", uid=f"u-{name}", serviceAccountName=account)


async def users(found: CredentialPlugins, image: str = IMAGE, pod: Pod | None = None) -> list[str]:
    return [c.username for c in await found.lookup(pod or make_pod(), image)]


@pytest.mark.virtual_time
async def test_what_a_plugin_is_told_BACK_214() -> None:
    scripts = Scripts(cloud=answer())
    told = provider(args=("get", "it"), env=(ExecEnvVar("A", "2"), ExecEnvVar("B", "3")))
    assert await users(plugins(scripts, told)) == ["ann"]
    (run,) = scripts.runs
    assert run.command == ("/bin/cloud", "get", "it")
    assert run.environment == {"A": "2", "B": "3"}
    assert json.loads(run.stdin) == {
        "kind": "CredentialProviderRequest",
        "apiVersion": PROTOCOL_V1,
        "image": IMAGE,
    }


@pytest.mark.virtual_time
async def test_a_plugin_is_asked_for_its_images_only_BACK_214() -> None:
    scripts = Scripts(cloud=answer(place="*.io"))
    found = plugins(scripts, provider(match_images=("a.io", "reg.io:5000", "*.io/team")))
    assert await users(found, "reg.io/other") == []
    assert await users(found, "reg.io/team/app") == ["ann"]
    assert len(scripts.runs) == 1


@pytest.mark.virtual_time
async def test_logins_of_plugins_are_in_order_BACK_214() -> None:
    scripts = Scripts(one=answer("one"), two=answer("two"), path=answer("path", place="reg.io/te"))
    found = plugins(scripts, provider("two"), provider("one"), provider("path"))
    assert await users(found) == ["path", "two", "one"]


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("said", "told"),
    [
        (Finished(3, answer(), b"no\n way"), "exit code 3: no way"),
        (ProgramError("it printed too much"), "it printed too much"),
        (b"pass", "it printed 4 bytes that are no JSON object on stdout"),
        (b"[" * 100_000, "no JSON object"),
        (answer(apiVersion="v2"), "did not match expected apiVersion"),
        (answer(kind="Pod"), "error decoding credential provider plugin response from stdout"),
        (answer(comment="pass"), "error decoding"),
        (answer(cacheDuration=5), "error decoding"),
        (answer(auth=["pass"]), "error decoding"),
        (answer(auth={"reg.io": {"username": 1}}), "error decoding"),
        (answer(auth={"reg.io": {"token": "pass"}}), "error decoding"),
        (answer(cacheKeyType=None), 'did not return a valid cacheKeyType: ""'),
        (answer(cacheKeyType="Planet"), 'did not return a valid cacheKeyType: "Planet"'),
        (KeyError("pass"), "unexpected error"),
    ],
)
async def test_a_plugin_that_fails_gives_none_and_is_told_BACK_214(
    said: Any, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = plugins(Scripts(bad=said, good=answer("good")), provider("bad"), provider("good"))
    for _ in range(3):
        assert await users(found) == ["good"]
    (record,) = caplog.records
    assert record.levelno >= logging.WARNING
    assert record.getMessage().startswith(f"no logins of the plug-in bad for {IMAGE}: ")
    assert told in record.getMessage()
    assert "pass" not in record.getMessage()


@pytest.mark.virtual_time
async def test_a_plugin_has_a_minute_BACK_214(caplog: pytest.LogCaptureFixture) -> None:
    scripts = Scripts(cloud=answer())
    found = plugins(scripts)
    scripts.takes_s = 59.9
    assert await users(found) == ["ann"]
    scripts.takes_s = 61
    began_s = virtual_loop().clock.monotonic_s()
    assert await users(found) == []
    assert virtual_loop().clock.monotonic_s() - began_s == pytest.approx(60)
    assert "did not end within 60 s, and was ended" in caplog.text
    assert scripts.ended == 1
    assert found.metrics.errors["cloud"] == 1
    assert found.metrics.durations["cloud"].sum_s == pytest.approx(119.9)


@pytest.mark.virtual_time
async def test_a_token_in_a_complaint_is_not_told_BACK_216(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scripts = Scripts(cloud=Finished(1, b"", b"refused: token of web for aud"))
    attributes = TokenAttributes("aud", "ServiceAccount", require_account=True)
    found = plugins(scripts, provider(token_attributes=attributes), server=Server())
    assert await users(found, pod=of_account()) == []
    assert "exit code 1: refused: (the token)" in caplog.text
    assert "token of web" not in caplog.text + repr(scripts.runs)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("kind", "runs"), [("Image", [1, 2, 3]), ("Registry", [1, 1, 2]), ("Global", [1, 1, 1])]
)
async def test_answers_are_kept_by_their_kind_BACK_215(kind: str, runs: list[int]) -> None:
    scripts = Scripts(cloud=answer(place="*.io", cacheKeyType=kind, cacheDuration="1m"))
    found = plugins(scripts, provider(match_images=("*.io", "*.io:80")))
    counts = []
    for image in (IMAGE, "reg.io/b", "reg.io:80/b"):
        await users(found, image)
        await users(found, image)
        counts.append(len(scripts.runs))
    assert counts == runs


def test_the_closest_answer_is_looked_for_first_BACK_215() -> None:
    keys = looked_for("reg.io:80/a/b", Caller())
    assert keys == (("Image", "reg.io:80/a/b"), ("Registry", "reg.io:80"), ("Global", ""))


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("told", "default_s", "kept_s"), [("90s", 30, 90), (None, 30, 30), (None, 0, 0), ("0s", 30, 0)]
)
async def test_answers_are_kept_so_long_BACK_215(
    told: str | None, default_s: float, kept_s: float
) -> None:
    scripts = Scripts(cloud=answer(cacheDuration=told))
    found = plugins(scripts, provider(default_cache_s=default_s))
    await users(found)
    await asyncio.sleep(kept_s)
    assert await users(found) == ["ann"]
    assert len(scripts.runs) == (1 if kept_s else 2)
    await asyncio.sleep(0.001)
    await users(found)
    assert len(scripts.runs) == (2 if kept_s else 3)


@pytest.mark.virtual_time
async def test_lookups_at_the_same_time_share_a_run_BACK_215() -> None:
    scripts = Scripts(cloud=answer())
    scripts.takes_s = 5
    found = plugins(scripts)
    lookups = [asyncio.create_task(users(found)) for _ in range(3)]
    other = asyncio.create_task(users(found, "reg.io/b"))
    await asyncio.sleep(1)
    lookups[0].cancel()  # the others go on
    assert await asyncio.gather(*lookups[1:], other) == [["ann"]] * 3
    assert [r["image"] for r in scripts.requests()] == [IMAGE, "reg.io/b"]
    last = [asyncio.create_task(users(found)) for _ in range(2)]
    await asyncio.sleep(1)
    for lookup in last:
        lookup.cancel()
    await asyncio.gather(*last, return_exceptions=True)
    await asyncio.sleep(0)
    assert scripts.ended == 1  # nobody waits for it any more
    assert await users(found) == ["ann"]


@pytest.mark.virtual_time
async def test_a_plugin_gets_a_token_and_annotations_BACK_216() -> None:
    scripts, server = Scripts(cloud=answer(cacheDuration="1h")), Server()
    server.annotations = {"a": "1", "b": "2", "c": "3"}
    attributes = TokenAttributes("aud", "ServiceAccount", True, ("a",), ("b", "z"))
    found = plugins(scripts, provider(token_attributes=attributes), server=server)
    (credential,) = await found.lookup(of_account(), IMAGE)
    assert credential.source == ANN
    assert scripts.requests()[0] == {
        "kind": "CredentialProviderRequest",
        "apiVersion": PROTOCOL_V1,
        "image": IMAGE,
        "serviceAccountToken": "token of web for aud",
        "serviceAccountAnnotations": {"a": "1", "b": "2"},
    }
    await users(found, pod=of_account("other"))
    server.annotations["c"] = "4"
    await users(found, pod=of_account())
    assert len(scripts.runs) == 1
    await users(found, pod=of_account(account="bob"))
    server.annotations["b"] = "4"
    await users(found, pod=of_account())
    assert len(scripts.runs) == 3


@pytest.mark.virtual_time
async def test_answers_for_tokens_are_kept_for_each_BACK_216() -> None:
    scripts = Scripts(cloud=answer(cacheDuration="1h"))
    attributes = TokenAttributes("aud", "Token", require_account=True)
    found = plugins(scripts, provider(token_attributes=attributes), server=Server())
    for name in ("one", "two", "one"):
        await users(found, pod=of_account(name))
    assert len(scripts.runs) == 2


@pytest.mark.virtual_time
async def test_for_whom_a_plugin_is_not_asked_BACK_216(caplog: pytest.LogCaptureFixture) -> None:
    scripts, server = Scripts(cloud=answer()), Server()
    needs_key = TokenAttributes("aud", "Token", True, required_keys=("a",))
    found = plugins(scripts, provider(token_attributes=needs_key), server=server)
    assert await users(found, pod=of_account(account="")) == []
    assert await users(found, pod=of_account()) == []
    assert caplog.records == []
    server.refused = True
    assert await users(found, pod=of_account()) == []
    assert "service account default/ann: 403 Forbidden: not yours" in caplog.text
    free = TokenAttributes("aud", "Token", require_account=False)
    found = plugins(scripts, provider(token_attributes=free))
    assert await users(found, pod=of_account()) == []  # standalone
    assert scripts.runs == []
    (credential,) = await found.lookup(of_account(account=""), IMAGE)
    assert credential.source is None
    assert "serviceAccountToken" not in scripts.requests()[0]


@pytest.mark.virtual_time
async def test_images_are_pulled_with_logins_of_plugins_BACK_209(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ImageStatus=ABSENT, PullImage=only("plug"))
    scripts = Scripts(cloud=answer("plug", place="index.docker.io"))
    bench.plugins = plugins(scripts, provider(match_images=("docker.io",)))
    bench.restart()
    assert await bench.ensure(login("ann"), image="app:1") == IMAGE_ID
    assert bench.users() == ["ann", "plug"]
    assert [r["image"] for r in scripts.requests()] == ["docker.io/library/app"]


@pytest.mark.parametrize("data", [b"", b"null", b"\xff", b'{"auth": 1}', b"1" * 100])
def test_nonsense_is_an_answer_error_BACK_214(data: bytes) -> None:
    with pytest.raises(AnswerError):
        read_answer(data, PROTOCOL_V1)


def test_an_answer_hides_its_logins_BACK_214() -> None:
    assert read_answer(answer(auth=None), PROTOCOL_V1) == Answer("Image")
    assert "pass" not in repr(read_answer(answer("x"), PROTOCOL_V1))
    assert "hidden" not in repr(Caller("n", "a", "u", token="hidden"))
