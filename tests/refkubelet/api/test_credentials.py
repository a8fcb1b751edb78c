"""Logins at the API server that fail: a plug-in, a file (NODE-007)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from process_world import POD, kubelet, until_runs, write_config

from fakecri import FakeCRI
from fakecri.machine.node import FakeNode
from fakecri.server import serve
from fakekubeapi import FakeApi
from fakekubeapi.http import serve as serve_api
from refkubelet.api.client import ApiError
from refkubelet.api.kinds import PODS
from refkubelet.api.kubeconfig import read_kubeconfig
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.api.paths import on_node
from refkubelet.config import ConfigError
from simclock import Ids, RealClock, Rng

V1 = "client.authentication.k8s.io/v1"
GOOD = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "t1"}})
BROKEN = {
    "fails": "echo no login >&2; exit 3",
    "says nothing": "true",
    "no JSON": "echo hello",
    "a list": "echo '[]'",
    "null": "echo null",
    "no token": "echo '{\"status\": {}}'",
    "no status": "echo '{\"status\": null}'",
    "an odd token": 'echo \'{"status": {"token": 7}}\'',
    "a token with a line end": r"""echo '{"status": {"token": "a\nb"}}'""",
    "a token of other letters": r"""echo '{"status": {"token": "\u4e16"}}'""",
    "no UTF-8": r"printf '\377\376'",
    "deep": "head -c 100000 /dev/zero | tr '\\0' '['",
}


def plugin(directory: Path, body: str) -> Path:
    """A program; each run adds a line to `runs`."""
    program = directory / "plugin.sh"
    new = directory / "plugin.new"
    new.write_text(f"#!/bin/sh\necho run >>{directory}/runs\n{body}\n")
    new.chmod(0o755)
    new.rename(program)
    return program


def runs(directory: Path) -> int:
    return len((directory / "runs").read_text().splitlines())


def kubeconfig(directory: Path, user: dict[str, Any], server: str = "http://nowhere") -> Path:
    file = directory / "kubeconfig"
    value = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_text(json.dumps(value))
    return file


def with_plugin(program: Path, version: str = V1) -> dict[str, Any]:
    return {"exec": {"apiVersion": version, "command": str(program), "args": ["a"]}}


@asynccontextmanager
async def client(file: Path, answer: Callable[..., httpx2.Response]) -> AsyncIterator[Any]:
    made = LightkubeApiClient.from_kubeconfig(file)
    made.wire.http._transport = httpx2.MockTransport(answer)  # type: ignore[attr-defined]
    try:
        yield made
    finally:
        await made.aclose()


def an_empty_list(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json={"items": [], "metadata": {"resourceVersion": "1"}})


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
async def test_whatever_a_plugin_does_is_an_api_error_NODE_007(body: str, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, with_plugin(plugin(tmp_path, body)))
    async with client(file, an_empty_list) as api:
        with pytest.raises(ApiError) as caught:
            await api.list(PODS, fields=on_node("n1"))
        assert caught.value.status == 0
        with pytest.raises(ApiError):
            await anext(api.watch(PODS, "1", fields=on_node("n1")))
        plugin(tmp_path, f"echo '{GOOD}'")
        assert (await api.list(PODS, fields=on_node("n1"))).items == ()


async def test_a_plugin_that_is_missing_is_an_api_error_NODE_007(tmp_path: Path) -> None:
    async with client(kubeconfig(tmp_path, with_plugin(tmp_path / "none")), an_empty_list) as api:
        with pytest.raises(ApiError, match="No such file"):
            await api.list(PODS, fields=on_node("n1"))


@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
async def test_a_plugin_is_asked_once_and_again_after_a_401_NODE_007(
    version: str, tmp_path: Path
) -> None:
    file = kubeconfig(tmp_path, with_plugin(plugin(tmp_path, f"echo '{GOOD}'"), version))
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers["Authorization"])
        if seen[-1] == "Bearer t1" and len(seen) == 4:
            return httpx2.Response(401, json={"reason": "Unauthorized"})
        return an_empty_list(request)

    async with client(file, answer) as api:
        await asyncio.gather(*(api.list(PODS, fields=on_node("n1")) for _ in range(3)))
        assert runs(tmp_path) == 1
        plugin(tmp_path, f"echo '{GOOD}' | sed s/t1/t2/")
        await api.list(PODS, fields=on_node("n1"))
    assert seen == 4 * ["Bearer t1"] + ["Bearer t2"]


async def test_a_plugin_of_an_unknown_version_is_one_clear_error_NODE_007(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, with_plugin(tmp_path / "p", "client.authentication.k8s.io/v7"))
    with pytest.raises(ConfigError, match=r"exec: apiVersion .*/v7 of a credential plug-in: want"):
        read_kubeconfig(file)


@pytest.mark.parametrize(
    ("user", "wanted"),
    [
        ({"tokenFile": "none"}, "tokenFile .*/none: No such file or directory"),
        ({"tokenFile": "empty"}, "tokenFile .*/empty: it is empty"),
        ({"client-certificate": "none", "client-key": "none"}, "cannot be used: .*No such file"),
        ({"auth-provider": {"name": "x"}}, "cannot be used: auth-provider not supported"),
    ],
)
def test_a_login_that_cannot_work_is_one_clear_error_NODE_007(
    user: dict[str, Any], wanted: str, tmp_path: Path
) -> None:
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ConfigError, match=f"^kubeconfig {tmp_path}/kubeconfig: {wanted}"):
        LightkubeApiClient.from_kubeconfig(kubeconfig(tmp_path, user))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(200):  # the kubelet's own pauses grow to half a minute
        while not condition():  # noqa: ASYNC110 (another process does it)
            await asyncio.sleep(0.05)


def fake_api() -> FakeApi:
    return FakeApi(RealClock(), Ids(Rng(1)))


async def test_a_kubelet_outlives_a_plugin_that_fails_NODE_007(tmp_path: Path) -> None:
    config, api = write_config(tmp_path, healthz_port=0), fake_api()
    (tmp_path / "manifests" / "pod.yaml").write_text(POD.format(name="web"))
    ways = "".join(f"{n}) {body};;\n" for n, body in enumerate(BROKEN.values()))
    nth = f"$(($(wc -l <{tmp_path}/runs) % {len(BROKEN)}))"
    program = plugin(tmp_path, f"case {nth} in\n{ways}esac")
    cri = FakeCRI(node=FakeNode(image_root="/"))
    async with serve(cri, f"unix://{tmp_path}/cri.sock") as server, await serve_api(api) as http:
        file = kubeconfig(tmp_path, with_plugin(program), http.url)
        async with kubelet(config, server.endpoint, "--kubeconfig", str(file)) as process:
            await until_runs(cri, "web-n1")
            await until(lambda: runs(tmp_path) > len(BROKEN))
            plugin(tmp_path, f"echo '{GOOD}'")
            await until(lambda: any(r.path.endswith("/web-n1/status") for r in api.requests()))
            process.stop()
            code, text = await process.end()
    assert (code, text.count("Traceback")) == (0, 0)


async def test_a_kubelet_outlives_a_token_file_that_is_away_NODE_007(tmp_path: Path) -> None:
    config, api = write_config(tmp_path, healthz_port=0), fake_api()
    token = tmp_path / "token"
    token.write_text("t1")
    (tmp_path / "manifests" / "pod.yaml").write_text(POD.format(name="web"))
    cri = FakeCRI(node=FakeNode(image_root="/"))
    async with serve(cri, f"unix://{tmp_path}/cri.sock") as server, await serve_api(api) as http:
        file = kubeconfig(tmp_path, {"tokenFile": "token"}, http.url)
        refused = api.fails(None, ".*", 401)
        async with kubelet(config, server.endpoint, "--kubeconfig", str(file)) as process:
            await until(lambda: refused.hits > 0)
            token.unlink()
            await until(lambda: refused.hits > 3)
            token.write_bytes(b"\xff\xfe")
            await until(lambda: refused.hits > 6)
            token.write_text("t2")
            refused.remove()
            await until(lambda: any(r.path.endswith("/web-n1/status") for r in api.requests()))
            process.stop()
            code, text = await process.end()
    assert (code, text.count("Traceback")) == (0, 0)
    assert running_names(cri) == ["web-n1"]


def running_names(cri: FakeCRI) -> list[str]:
    return [c.pod.name for c in cri.containers()]
