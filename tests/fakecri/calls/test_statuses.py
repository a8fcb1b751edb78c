"""Statuses of runtime, pods and containers, also verbose ones."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import IMAGE, UNKNOWN_ID, created, pod_config, refused, run_pod, started

from fakecri import FakeCRI, RegistryImage, exits, ignores, oom_kills_child, registry_of


async def status(fake: FakeCRI, container: str, *, verbose: bool = False) -> Any:
    request = cri.ContainerStatusRequest(container_id=container, verbose=verbose)
    answer: Any = await fake.call("ContainerStatus", request)
    return answer if verbose else answer.status


@pytest.mark.virtual_time
async def test_identity_and_handlers_are_programmable_CRI_003_CRI_030_CRI_132() -> None:
    fake = FakeCRI(runtime_name="containerd", runtime_version="2.1.9", runtime_handlers=("kata",))
    version: Any = await fake.call("Version", cri.VersionRequest())
    assert (version.runtime_name, version.runtime_version) == ("containerd", "2.1.9")
    answer: Any = await fake.call("Status", cri.StatusRequest(verbose=True))
    assert [h.name for h in answer.runtime_handlers] == ["", "kata"]
    assert answer.features.supplemental_groups_policy
    assert json.loads(answer.info["config"])["runtimeName"] == "containerd"
    sandbox = await run_pod(fake, handler="kata")
    listed: Any = await fake.call("ListPodSandbox", cri.ListPodSandboxRequest())
    assert [(i.id, i.runtime_handler) for i in listed.items] == [(sandbox, "kata")]
    code, text = await refused(run_pod(fake, pod_config("other"), "gvisor"))
    assert code == "UNKNOWN"
    assert text.endswith('no runtime for "gvisor" is configured')


@pytest.mark.virtual_time
async def test_container_status_echoes_user_and_stop_signal_CRI_084() -> None:
    fake = FakeCRI()
    security = cri.LinuxContainerSecurityContext(
        run_as_user=cri.Int64Value(value=1000),
        run_as_group=cri.Int64Value(value=3000),
        supplemental_groups=[4000, 3000],
    )
    linux = cri.LinuxContainerConfig(security_context=security)
    container = await started(fake, linux=linux, stop_signal=cri.SIGINT)
    shown = await status(fake, container)
    user = shown.user.linux
    assert (user.uid, user.gid, list(user.supplemental_groups)) == (1000, 3000, [3000, 4000])
    assert shown.stop_signal == cri.SIGINT
    other = await started(fake, "other")
    shown = await status(fake, other)
    assert (shown.user.linux.uid, shown.stop_signal) == (0, cri.SIGTERM)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("of_request", "of_image", "ignored", "code", "took_s"),
    [
        (cri.RUNTIME_DEFAULT, "", "SIGINT", 143, 0),
        (cri.RUNTIME_DEFAULT, "SIGINT", "SIGTERM", 130, 0),
        (cri.RUNTIME_DEFAULT, "int", "SIGINT", 137, 5),
        (cri.SIGHUP, "SIGINT", "SIGINT", 129, 0),
        (cri.SIGKILL, "SIGINT", "SIGKILL", 137, 0),
    ],
)
async def test_the_stop_signal_is_of_the_request_then_of_the_image_CRI_061(
    of_request: Any, of_image: str, ignored: str, code: int, took_s: int
) -> None:
    fake = FakeCRI(registry=registry_of({"r.io/app:1": RegistryImage(stop_signal=of_image)}))
    image = "r.io/app:1"
    await fake.call("PullImage", cri.PullImageRequest(image=cri.ImageSpec(image=image)))
    fake.behaves(ignores(ignored))
    container = await started(fake, image=image, stop_signal=of_request)
    request = cri.StopContainerRequest(container_id=container, timeout=5)
    await fake.call("StopContainer", request)
    assert (await status(fake, container)).exit_code == code
    assert asyncio.get_running_loop().time() == pytest.approx(took_s)


@pytest.mark.virtual_time
async def test_an_oom_kill_of_a_child_is_sticky_whatever_the_exit_code_CRI_071() -> None:
    fake = FakeCRI()
    fake.behaves(oom_kills_child(at_s=1), exits(4, after_s=3))
    container = await started(fake)
    seen = []
    for wait_s in (0.5, 1, 2):
        await asyncio.sleep(wait_s)
        shown = await status(fake, container)
        seen.append((shown.state, shown.reason, shown.exit_code))
    assert seen == [
        (cri.CONTAINER_RUNNING, "", 0),
        (cri.CONTAINER_RUNNING, "OOMKilled", 0),
        (cri.CONTAINER_EXITED, "OOMKilled", 4),
    ]


@pytest.mark.virtual_time
async def test_verbose_statuses_carry_json_CRI_043_CRI_085() -> None:
    fake = FakeCRI()
    env = [cri.KeyValue(key="A", value=b"1")]
    sandbox = await run_pod(fake)
    container = await started(fake, command=["sh"], args=["-c"], envs=env)
    info = json.loads((await status(fake, container, verbose=True)).info["info"])
    assert info["sandboxID"] == sandbox
    assert info["runtimeSpec"]["process"]["args"] == ["sh", "-c"]
    assert info["runtimeSpec"]["process"]["env"] == ["A=1"]
    request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox, verbose=True)
    of_pod: Any = await fake.call("PodSandboxStatus", request)
    assert json.loads(of_pod.info["info"])["config"]["metadata"]["name"] == "web"
    image = cri.ImageStatusRequest(image=cri.ImageSpec(image=IMAGE), verbose=True)
    of_image: Any = await fake.call("ImageStatus", image)
    assert "imageSpec" in json.loads(of_image.info["info"])


@pytest.mark.virtual_time
async def test_a_checkpoint_is_a_tar_with_configuration_and_status_CRI_135(tmp_path: Path) -> None:
    location = tmp_path / "checkpoint.tar"
    fake = FakeCRI()
    container = await started(fake, "db", command=["serve"])
    request = cri.CheckpointContainerRequest(container_id=container, location=str(location))
    await fake.call("CheckpointContainer", request)
    assert location.stat().st_mode & 0o777 == 0o600
    with tarfile.open(fileobj=io.BytesIO(location.read_bytes())) as tar:
        files = {m.name: json.load(tar.extractfile(m)) for m in tar}  # type: ignore[arg-type]
    assert files["config.dump"]["id"] == container
    assert files["config.dump"]["name"] == "db"
    assert files["spec.dump"]["process"]["args"] == ["serve"]
    assert files["status.dump"]["state"] == "CONTAINER_RUNNING"


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("name", "location", "code", "words"),
    [
        ("nope", "/x", "NOT_FOUND", "not found"),
        ("created", "/x", "UNKNOWN", "CONTAINER_CREATED"),
        ("running", "", "UNKNOWN", "no location"),
        ("running", "none/x.tar", "UNKNOWN", ": no such file or directory"),
    ],
)
async def test_what_cannot_be_checkpointed_says_why_CRI_135(
    name: str, location: str, code: str, words: str, tmp_path: Path
) -> None:
    fake = FakeCRI()
    containers = {"created": await created(fake, "created"), "running": await started(fake)}
    if location.startswith("none"):
        location = str(tmp_path / location)
    request = cri.CheckpointContainerRequest(
        container_id=containers.get(name, UNKNOWN_ID), location=location
    )
    found, text = await refused(fake.call("CheckpointContainer", request))
    assert found == code
    assert words in text
