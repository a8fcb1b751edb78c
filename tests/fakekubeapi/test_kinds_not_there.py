"""A kind that fakekubeapi does not have (a Deployment, a custom resource) is refused in a sentence
that clients show: what is not there, and what to use instead. Asked as kubectl asks, and by it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from fakekubeapi import FakeApi
from fakekubeapi.http import HttpServer, serve

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
TYPED: Final = f"{PROTOBUF},application/json"
"""What kubectl's typed commands accept."""
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
OPENAPI: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
KUBECTL: Final = os.environ.get("REFKUBELET_KUBECTL") or shutil.which("kubectl") or ""
INSTEAD: Final = "use a real API server, such as setup-envtest brings"
NAMESPACED: Final = "/apis/apps/v1/namespaces/default/deployments"
OTHERS: Final = {
    NAMESPACED: "fakekubeapi has no deployments of apps/v1: ",
    f"{NAMESPACED}/web": "fakekubeapi has no deployments of apps/v1: ",
    f"{NAMESPACED}/web/scale": "fakekubeapi has no deployments of apps/v1: ",
    "/apis/apps/v1/deployments": "fakekubeapi has no deployments of apps/v1: ",
    "/apis/batch/v1/namespaces/default/jobs": "fakekubeapi has no jobs of batch/v1: ",
    "/apis/policy/v1/poddisruptionbudgets": "has no poddisruptionbudgets of policy/v1: ",
    "/apis/example.com/v1/foos": "fakekubeapi has no foos of example.com/v1: ",
    "/api/v1/namespaces/default/replicationcontrollers": "no replicationcontrollers of v1: ",
}


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    async with await serve(FakeApi()) as server:
        yield server


async def asked(server: HttpServer, method: str, path: str, **how: Any) -> tuple[int, bytes, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, server.url + path, **how) as answer,
    ):
        return answer.status, await answer.read(), answer.content_type


@pytest.mark.parametrize("accept", ["application/json", TABLE, TYPED, "*/*", ""])
@pytest.mark.parametrize("path", OTHERS)
async def test_each_request_is_told_what_is_not_there(
    server: HttpServer, path: str, accept: str
) -> None:
    body = b"k8s\0\x0a\x15\x0a\x07apps/v1\x12\x0aDeployment\x12\0"  # as `kubectl create deployment`
    for method, sent in (("GET", None), ("POST", body), ("POST", b'{"kind": "Deployment"}')):
        headers = {
            "Accept": accept,
            "Content-Type": PROTOBUF if sent == body else "application/json",
        }
        status, answer, kind = await asked(server, method, path, data=sent, headers=headers)
        assert (status, kind) == (404, PROTOBUF if accept == TYPED else "application/json")
        assert OTHERS[path].encode() in answer
        assert INSTEAD.encode() in answer
        if kind != PROTOBUF:
            refused = json.loads(answer)
            assert (refused["kind"], refused["reason"]) == ("Status", "NotFound")


async def test_other_paths_that_there_are_not_are_told_as_before(server: HttpServer) -> None:
    for path in ("/nothing", "/api/v1/pods/a/b/c/d", "/apis/apps", "/api/v1/namespaces/d/nodes"):
        status, answer, _ = await asked(server, "GET", path)
        assert (status, b"could not find the requested resource" in answer) == (404, True)


async def test_kubectls_search_for_the_types_of_a_kind_ends_in_text_that_it_shows(
    server: HttpServer,
) -> None:
    """It has not found the kind in /openapi/v3, asks here for protobuf, and shows text of a 406."""
    status, answer, kind = await asked(server, "GET", "/openapi/v2", headers={"Accept": OPENAPI})
    assert (status, kind) == (406, "text/plain")
    assert answer.startswith(b"fakekubeapi does not have this kind: ")
    assert INSTEAD.encode() in answer
    status, _, kind = await asked(server, "GET", "/openapi/v2")
    assert (status, kind) == (200, "application/json")


async def test_a_wrong_body_for_a_kind_that_there_is_is_still_what_is_told(
    server: HttpServer,
) -> None:
    path = "/api/v1/namespaces/default/pods"
    headers = {"Content-Type": "application/json"}
    status, answer, _ = await asked(server, "POST", path, data=b"{", headers=headers)
    assert (status, b"fakekubeapi has no" in answer) == (400, False)


DEPLOYMENT: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
"""
FOO: Final = "apiVersion: example.com/v1\nkind: Foo\nmetadata: {name: a}\n"


@pytest.mark.slow
@pytest.mark.skipif(not KUBECTL, reason="REFKUBELET_KUBECTL names no kubectl")
@pytest.mark.parametrize(
    ("words", "manifest", "told"),
    [
        (["create", "deployment", "web", "--image=web"], "", "has no deployments of apps/v1"),
        (["create", "job", "one", "--image=web"], "", "has no jobs of batch/v1"),
        (["apply", "-f", "-"], DEPLOYMENT, "fakekubeapi does not have this kind"),
        (["apply", "--server-side", "-f", "-"], DEPLOYMENT, "does not have this kind"),
        (["create", "-f", "-"], FOO, "fakekubeapi does not have this kind"),
        (["get", "--raw", "/apis/apps/v1/deployments"], "", "has no deployments of apps/v1"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
async def test_kubectl_prints_it(
    server: HttpServer, words: list[str], manifest: str, told: str, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(KUBECTL, "--server", server.url, "--cache-dir", str(tmp_path), *words),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(manifest.encode()), 120)
    assert process.returncode == 1
    assert told in said.decode()
    assert INSTEAD in said.decode()
