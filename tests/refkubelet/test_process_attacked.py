"""`refkubelet run` as a process, and what containers, users and a runtime do against it: other
pods run, nothing of the node is given away, and what is wrong is told without a traceback."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from pods import container, manifest
from process_world import free_port, running, write_config
from test_process_survives import Running, kubelet, until, with_events

from fakecri import FakeCRI, exits
from fakecri.calls.events import EventStreams
from fakecri.core.runtime import News
from fakecri.machine.node import FakeNode
from fakecri.server import serve
from kubeobjects.structs import replace
from refkubelet.volumes.mounting import RealMounts

SECRET = "line of a file of the node"
OWN_WORDS = "of the container itself"
LOG_PATH = "/dev/termination-log"
LIMIT_S = 120.0
"""Much longer than anything here takes; a busy machine is no failure."""
SWAPS = 1000
"""Of a manifest: a name that is looked at before it is opened is met in between by the 300th."""
LATE_S = 0.02


def pod(name: str, *, uid: str = "", **main: Any) -> dict[str, Any]:
    """A manifest; `main`: more of its container."""
    return manifest(container(**main), name=name, uid=uid, terminationGracePeriodSeconds=1)


def with_volume(name: str, where: str, sub_path: str | None = None) -> dict[str, Any]:
    """A pod with an emptyDir `v` at `where`; its UID is its name."""
    mount = {"name": "v", "mountPath": where} | ({"subPath": sub_path} if sub_path else {})
    found = pod(name, uid=name, volumeMounts=[mount])
    found["spec"] |= {"volumes": [{"name": "v", "emptyDir": {}}], "restartPolicy": "Never"}
    return found


def volume_of(directory: Path, name: str) -> Path:
    """The emptyDir of that pod, as an earlier container left it."""
    path = directory / "root/pods" / name / "volumes/kubernetes.io~empty-dir/v"
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o777)
    return path


def messages(pods: str) -> dict[str, str]:
    """Name of a pod -> why its container waits, or what its last words were."""
    found = {}
    for shown in json.loads(pods)["items"]:
        for row in shown["status"].get("containerStatuses", ()):
            state = row["state"].get("waiting") or row["state"].get("terminated") or {}
            found[shown["metadata"]["name"].removesuffix("-n1")] = state.get("message", "")
    return found


@dataclass
class Attacked:
    """A kubelet and its runtime. `url`: where it shows its pods."""

    cri: FakeCRI
    directory: Path
    process: Running
    url: str

    def apply(self, *pods: dict[str, Any]) -> None:
        for found in pods:
            name = found["metadata"]["name"]
            (self.directory / "manifests" / f"{name}.yaml").write_text(yaml.safe_dump(found))

    def remove(self, *names: str) -> None:
        for name in names:
            (self.directory / "manifests" / f"{name}.yaml").unlink()

    def count(self, method: str, name: str) -> int:
        return self.cri.count(method, pod=f"{name}-n1")

    async def until(self, condition: Callable[[], object]) -> None:
        """At once an error when the kubelet has ended."""
        await until(lambda: condition() or self.process.has_ended(), LIMIT_S)
        assert not self.process.has_ended(), self.process.log()

    async def runs(self, *names: str) -> None:
        await self.until(lambda: {f"{name}-n1" for name in names} <= set(running(self.cri)))

    async def another_runs(self, name: str) -> None:
        """The kubelet still does its work."""
        self.apply(pod(name))
        await self.runs(name)

    async def shown(self) -> str:
        """What the kubelet answers when it is asked for its pods."""
        whole = aiohttp.ClientTimeout(LIMIT_S)
        async with aiohttp.ClientSession(timeout=whole) as http, http.get(self.url) as answer:
            return await answer.text()

    async def first_words(self, names: Collection[str]) -> dict[str, str]:
        """What is told of the containers of those pods, once there is something about each."""
        await self.until(lambda: all(self.count("RunPodSandbox", name) for name in names))
        async with asyncio.timeout(LIMIT_S):
            found: dict[str, str] = {}
            while [name for name in names if not found.get(name)]:
                assert not self.process.has_ended(), self.process.log()
                await asyncio.sleep(0.1)
                found = messages(await self.shown())
        return {name: found[name] for name in names}


@asynccontextmanager
async def attacked(
    directory: Path, cri: FakeCRI, *, events: bool = False
) -> AsyncIterator[Attacked]:
    config, port = write_config(directory, healthz_port=0), free_port()
    with config.open("a") as file:
        file.write(f"address: 127.0.0.1\nreadOnlyPort: {port}\n")
    if events:
        with_events(config)
    async with (
        serve(cri, f"unix://{directory}/cri.sock") as server,
        kubelet(config, server.endpoint) as process,
    ):
        yield Attacked(cri, directory, process, f"http://127.0.0.1:{port}/pods")
    assert "Traceback" not in process.log()


@pytest.fixture
def cri() -> FakeCRI:
    return FakeCRI(node=FakeNode(image_root="/"))


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """What the kubelet mounts below it is undone."""
    yield tmp_path
    if os.geteuid() == 0:
        RealMounts().unmount_below(str(tmp_path))


NAMES = ("link", "below", "reads", "file", "message")
REFUSED = 'failed to prepare subPath for volumeMount "v" of container "main"'


def put_links(directory: Path, host: Path) -> None:
    """What containers left in the volumes of those pods: ways to files of the node."""
    (host / "etc").mkdir(parents=True)
    (host / "secret").write_text(f"line={SECRET}\n")
    for name in NAMES:
        (volume_of(directory, name) / "link").symlink_to(host)
    (volume_of(directory, "message") / "message").symlink_to(host / "secret")


async def test_links_in_volumes_give_nothing_away_NODE_211_LIFE_145_LIFE_137(
    directory: Path, cri: FakeCRI
) -> None:
    host = directory / "host"
    put_links(directory, host)
    reads = with_volume("reads", "/v")
    ref = {"volumeName": "v", "path": "link/secret", "key": "line"}
    reads["spec"]["containers"][0]["env"] = [{"name": "A", "valueFrom": {"fileKeyRef": ref}}]
    for name in ("file", "message"):
        cri.behaves(exits(1), pod=f"{name}-n1")
    async with attacked(directory, cri) as node:
        node.apply(
            *(with_volume("link", "/v", "link"), with_volume("below", "/v", "link/x/y"), reads),
            with_volume("file", LOG_PATH, "link/secret"),
            with_volume("message", LOG_PATH, "message"),
        )
        await node.until(lambda: all(node.count("RunPodSandbox", name) for name in NAMES))
        await node.another_runs("other")
        assert SECRET not in await node.shown()
        assert {c.subject.pod for c in cri.calls("CreateContainer")} == {"other-n1"}
        assert sorted(os.listdir(host)) == ["etc", "secret"]
        told = dict.fromkeys(NAMES, REFUSED) | {"reads": "couldn't parse env file"}
        assert await node.first_words(NAMES) == told


async def test_a_message_that_becomes_a_link_gives_nothing_away_LIFE_145(
    directory: Path, cri: FakeCRI
) -> None:
    (directory / "secret").write_text(SECRET)
    message = volume_of(directory, "message") / "message"
    message.write_text(OWN_WORDS)
    async with attacked(directory, cri) as node:
        node.apply(with_volume("message", LOG_PATH, "message"))
        await node.runs("message")
        message.unlink()
        message.symlink_to(directory / "secret")
        cri.kill("main", pod="message-n1")
        (words,) = (await node.first_words(["message"])).values()
    assert words == OWN_WORDS or words.startswith("Error on reading termination log")


async def test_what_a_container_was_given_cannot_be_exchanged_NODE_211(
    directory: Path, cri: FakeCRI, real_mounts: RealMounts
) -> None:
    host = directory / "host"
    host.mkdir()
    part = volume_of(directory, "web") / "part"
    async with attacked(directory, cri) as node:
        node.apply(with_volume("web", "/v", "part"))
        await node.runs("web")
        (created,) = cri.calls("CreateContainer")
        given = next(m for m in created.request.config.mounts if m.container_path == "/v")
        assert os.path.samefile(given.host_path, part)
        part.rename(part.with_name("away"))
        part.symlink_to(host)
        assert not os.path.samefile(given.host_path, host)


async def test_fifos_of_containers_and_users_hold_nobody_up_LIFE_137_LIFE_145_SRC_003(
    directory: Path, cri: FakeCRI
) -> None:
    os.mkfifo(volume_of(directory, "reads") / "env")
    os.mkfifo(volume_of(directory, "ends") / "message")
    ref = {"volumeName": "v", "path": "env", "key": "line"}
    reads = with_volume("reads", "/v")
    reads["spec"]["containers"][0]["env"] = [{"name": "A", "valueFrom": {"fileKeyRef": ref}}]
    cri.behaves(exits(1), pod="ends-n1")
    async with attacked(directory, cri) as node:
        node.apply(reads, with_volume("ends", LOG_PATH, "message"))
        assert await node.first_words(["reads"]) == {"reads": "couldn't parse env file"}
        (words,) = (await node.first_words(["ends"])).values()
        assert "Not a regular file" in words
        await node.another_runs("other")


async def test_a_manifest_that_is_now_a_file_now_a_fifo_holds_nobody_up_SRC_003(
    directory: Path, cri: FakeCRI
) -> None:
    """A FIFO that takes the name between a look at it and its opening."""
    async with attacked(directory, cri) as node:
        await node.another_runs("first")
        new, name = directory / "new", directory / "manifests" / "flickers.yaml"
        for _ in range(SWAPS):
            new.write_text(yaml.safe_dump(pod("flickers")))
            new.rename(name)
            os.mkfifo(new)
            new.rename(name)
            await asyncio.sleep(0)
        await node.another_runs("other")


HOSTS = {"dots": "a..b", "label": "a" * 64 + ".b", "letters": "\u200d", "port": "127.0.0.1:99"}


async def test_probes_of_hosts_that_cannot_be_fail_PROBE_071(directory: Path, cri: FakeCRI) -> None:
    once = {"periodSeconds": 1, "failureThreshold": 1}
    async with attacked(directory, cri) as node:
        for name, host in HOSTS.items():
            probe = {"tcpSocket": {"port": 80, "host": host}, **once}
            node.apply(pod(name, livenessProbe=probe))
        await node.until(lambda: all(node.count("StartContainer", name) > 1 for name in HOSTS))
        await node.another_runs("other")


async def test_pods_with_odd_hooks_and_probes_can_be_stopped_LIFE_143_LIFE_142_PROBE_066(
    directory: Path, cri: FakeCRI
) -> None:
    ask = {"httpGet": {"port": 80, "host": "127.0.0.1:99"}}
    async with attacked(directory, cri) as node:
        node.apply(
            pod("before", lifecycle={"preStop": ask}),
            pod("after", lifecycle={"postStart": ask}),
            pod("probed", livenessProbe={**ask, "periodSeconds": 1}),
        )
        await node.until(lambda: node.count("StopContainer", "after"))  # its hook failed
        await node.runs("before", "probed")
        node.remove("before", "after", "probed")
        await node.until(lambda: node.count("StopContainer", "before"))
        await node.until(lambda: node.count("StopContainer", "probed"))
        await node.another_runs("other")


async def test_events_after_a_failed_sandbox_are_no_reason_to_hurry_PLEG_302(
    directory: Path, cri: FakeCRI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what a failed RunPodSandbox did the runtime tells a moment after its answer: each event is
    newer than the step that failed."""
    loop, publish = asyncio.get_running_loop(), EventStreams.publish

    def late(streams: EventStreams, news: News) -> None:
        def tell() -> None:
            publish(streams, replace(news, time_ns=streams._core.now_ns()))

        loop.call_later(LATE_S, tell)

    monkeypatch.setattr(EventStreams, "publish", late)
    cri.on("RunPodSandbox", pod="web-n1").fails_halfway()
    async with attacked(directory, cri, events=True) as node:
        node.apply(pod("web"))
        await node.until(lambda: node.count("RunPodSandbox", "web") > 5)
        began_s = [c.started_s for c in cri.calls("RunPodSandbox", pod="web-n1")]
        assert [b - a for a, b in pairwise(began_s) if b - a < 0.9] == []
        await node.another_runs("other")
