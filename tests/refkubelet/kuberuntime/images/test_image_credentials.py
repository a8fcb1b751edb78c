"""With which credentials images are pulled: BACK-209."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from image_bench import ABSENT, HUB, Bench, login, only
from kubecri.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Secret
from pods import IMAGE, make_pod
from runtime_doubles import IMAGE_ID, Events

from refkubelet.api.client import ApiError
from refkubelet.api.kinds import Kind
from refkubelet.kuberuntime.common.runtime_options import (
    ImageOptions,
)
from refkubelet.kuberuntime.images.node_credentials import LoginDirs, docker_config_files
from refkubelet.kuberuntime.images.pull_secrets import PullSecrets

pytestmark = pytest.mark.virtual_time


async def test_credentials_are_tried_until_one_succeeds_BACK_209(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ImageStatus=ABSENT, PullImage=only("bob"))
    assert await bench.ensure(login("ann"), login("bob"), login("cid")) == IMAGE_ID
    assert bench.users() == ["ann", "bob"]
    assert bench.target.requests("PullImage")[1].auth == cri.AuthConfig(
        username="bob", password="p"
    )


async def test_all_errors_are_told_equal_ones_once_BACK_209(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ImageStatus=ABSENT, PullImage=only())
    told = await bench.reason(login("ann"), login("bob"), login("ann", name="again"))
    assert told == ("ErrImagePull", "[no entry for ann, no entry for bob]")
    assert ("Warning", "Failed", f'Failed to pull image "{IMAGE}": {told[1]}', "") in (
        bench.events.seen
    )


async def test_without_credentials_there_is_one_anonymous_try_BACK_209(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ImageStatus=ABSENT, PullImage=only())
    assert await bench.reason(login("ann", "reg.io")) == (
        "ErrImagePull",
        "no entry for nobody",
    )
    (request,) = bench.target.requests("PullImage")
    assert not request.HasField("auth")


async def test_credentials_of_the_node_come_last_BACK_209(tmp_path: Path) -> None:
    def write(file: str, user: str) -> None:
        content: dict[str, Any] = {HUB: {"username": user}}
        whole = {"auths": content} if file == "config.json" else content
        (tmp_path / file).write_text(json.dumps(whole))

    elsewhere = LoginDirs(tmp_path / "none", tmp_path / "nobody")
    options = ImageOptions(docker_config_files=docker_config_files(tmp_path, elsewhere))
    bench = Bench(tmp_path, options, ImageStatus=ABSENT, PullImage=only("old", "new"))
    write(".dockercfg", "old")
    assert await bench.ensure(login("ann"), policy="Always") == IMAGE_ID
    write("config.json", "new")
    await bench.ensure(policy="Always")  # the files are read every 5 minutes
    await asyncio.sleep(300)
    await bench.ensure(policy="Always")
    (tmp_path / "config.json").write_text("{")
    await asyncio.sleep(300)
    await bench.ensure(policy="Always")
    assert bench.users() == ["ann", "old", "old", "new", "old"]


async def test_an_unreadable_secret_fails_the_step_BACK_209(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ImageStatus=ABSENT)
    bad = login("ann")
    bad.data = {".dockerconfigjson": base64.b64encode(b'{"auths":{"a":{"auth":"!"}}}').decode()}
    text = "illegal base64 data at input byte 0"
    assert await bench.reason(bad) == (text, text)
    assert bench.target.methods() == ["ImageStatus"]


class Api:
    def __init__(self, **secrets: Secret) -> None:
        self._secrets = secrets

    async def get(self, kind: Kind[Any], name: str, namespace: str = "") -> Any:
        if name not in self._secrets:
            raise ApiError(404, "NotFound", f'secrets "{name}" not found')
        return self._secrets[name]


@pytest.mark.parametrize("api", [Api(b=login("b")), None])
async def test_missing_secrets_are_one_event_BACK_209(api: Api | None) -> None:
    events = Events()
    names = [{"name": "a"}, {"name": ""}, {"name": "b"}, {"name": "c"}]
    found = await PullSecrets(api, events).of(make_pod(imagePullSecrets=names))
    missing = "a, c" if api else "a, b, c"
    assert [s.metadata.name for s in found if s.metadata] == (["b"] if api else [])
    text = (
        f"Unable to retrieve some image pull secrets ({missing}); attempting to pull the image may "
        "not succeed."
    )
    assert events.seen == [("Warning", "FailedToRetrieveImagePullSecret", text, "")]


class Server:
    """Answers with its secret or error; without any it never answers."""

    secret: Secret | Exception | None = login("ann")

    async def get(self, kind: Kind[Any], name: str, namespace: str = "") -> Any:
        if self.secret is None:
            await asyncio.sleep(3600)
        if not isinstance(self.secret, Secret):
            raise self.secret or TimeoutError
        return self.secret


async def test_a_secret_is_what_it_last_was_while_the_server_is_away_BACK_209() -> None:
    api, events = Server(), Events()
    secrets = PullSecrets(api, events)
    pod = make_pod(imagePullSecrets=[{"name": "ann"}])
    first = await secrets.of(pod)
    for away in (ApiError(0, "ConnectError", "refused"), ApiError(500, "", ""), None):
        api.secret = away
        assert await secrets.of(pod) == first
    assert asyncio.get_running_loop().time() <= 2
    assert events.seen == []
    api.secret = ApiError(404, "NotFound", "gone")
    assert await secrets.of(pod) == ()
    api.secret = ApiError(500, "", "")
    assert await secrets.of(pod) == ()
    assert len(events.seen) == 2


async def test_a_pod_without_references_asks_for_nothing() -> None:
    events = Events()
    assert await PullSecrets(None, events).of(make_pod()) == ()
    assert events.seen == []
