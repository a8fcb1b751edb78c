"""Statistics, metrics, streaming lists, checkpoints, signals, users, events: the methods that a
kubelet uses behind feature gates."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest
from criapi.v1 import api_pb2 as cri

from fakecri import FakeCRI, RegistryImage, exits, ignores, oom_kills_child, registry_of, uses
from simtime import run_virtual

T = TypeVar("T")
IMAGE = "localhost/busybox:1"
UNKNOWN_ID = "f" * 64


def virtual(main: Callable[[FakeCRI], Awaitable[T]], **options: Any) -> T:
    async def body() -> T:
        return await main(FakeCRI(**options))

    return run_virtual(body)


def pod(name: str = "web", **fields: Any) -> cri.PodSandboxConfig:
    metadata = cri.PodSandboxMetadata(name=name, uid=f"uid-{name}", namespace="ns")
    return cri.PodSandboxConfig(metadata=metadata, **fields)


async def run_pod(fake: FakeCRI, config: cri.PodSandboxConfig, handler: str = "") -> str:
    request = cri.RunPodSandboxRequest(config=config, runtime_handler=handler)
    answer: Any = await fake.call("RunPodSandbox", request)
    return str(answer.pod_sandbox_id)


async def new_container(
    fake: FakeCRI, name: str = "c", *, in_pod: str = "web", start: bool = True, **fields: Any
) -> tuple[str, str]:
    config = pod(in_pod)
    known = fake.sandboxes(pod=in_pod)
    sandbox = known[-1].id if known else await run_pod(fake, config)
    fields.setdefault("image", cri.ImageSpec(image=IMAGE))
    container = cri.ContainerConfig(metadata=cri.ContainerMetadata(name=name), **fields)
    answer: Any = await fake.call(
        "CreateContainer",
        cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=container, sandbox_config=config),
    )
    if start:
        request = cri.StartContainerRequest(container_id=answer.container_id)
        await fake.call("StartContainer", request)
    return sandbox, str(answer.container_id)


async def status(fake: FakeCRI, container: str, *, verbose: bool = False) -> Any:
    request = cri.ContainerStatusRequest(container_id=container, verbose=verbose)
    answer: Any = await fake.call("ContainerStatus", request)
    return answer if verbose else answer.status


async def refused(call: Awaitable[Any]) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as failure:
        await call
    return failure.value.code().name, failure.value.details()


async def streamed(fake: FakeCRI, method: str, request: Any) -> list[Any]:
    return [message async for message in fake.stream(method, request)]


def test_every_method_of_both_services_is_played() -> None:
    """Nothing answers UNIMPLEMENTED; the calls are empty, so most are refused otherwise."""
    from fakecri.cri.services import METHODS

    async def main(fake: FakeCRI) -> None:
        fake.streaming  # noqa: B018 (made here: it is not what is tested)
        for method in METHODS.values():
            if method.streams:
                stream = fake.stream(method.name, method.request_type())
                code = await ended(stream)
            else:
                code = await outcome(fake.call(method.name, method.request_type()))
            assert code != "UNIMPLEMENTED", method.name

    virtual(main)


async def ended(stream: Any) -> str:
    try:
        async with asyncio.timeout(1):
            async for _ in stream:
                pass
    except TimeoutError:
        return "STILL OPEN"
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


async def outcome(call: Awaitable[Any]) -> str:
    try:
        await call
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


# -- statistics --------------------------------------------------------------------------------


def test_pod_statistics_are_those_of_its_running_containers_CRI_124() -> None:
    async def main(fake: FakeCRI) -> None:
        fake.behaves(uses(memory_bytes=1000, cpu_millicores=500, pids=3), container="a")
        fake.behaves(uses(memory_bytes=20, pids=2), container="b")
        sandbox, _ = await new_container(fake, "a")
        await new_container(fake, "b")
        await new_container(fake, "c", start=False)
        await asyncio.sleep(4)
        request = cri.PodSandboxStatsRequest(pod_sandbox_id=sandbox[:6])
        stats: Any = (await fake.call("PodSandboxStats", request)).stats  # type: ignore[attr-defined]
        assert stats.attributes.metadata.name == "web"
        assert stats.linux.memory.working_set_bytes.value == 1020
        used_ns = stats.linux.cpu.usage_core_nano_seconds.value
        assert used_ns == pytest.approx(2e9)
        assert stats.linux.cpu.usage_nano_cores.value == 500_000_000
        assert stats.linux.process.process_count.value == 6  # and the sandbox itself
        assert stats.linux.network.default_interface.name == "eth0"
        assert [c.attributes.metadata.name for c in stats.linux.containers] == ["a", "b", "c"]
        assert not stats.linux.containers[2].HasField("memory")

    virtual(main)


def test_pod_statistics_of_stopped_and_unknown_pods_CRI_124() -> None:
    async def main(fake: FakeCRI) -> None:
        first = await run_pod(fake, pod("one", labels={"app": "x"}))
        await run_pod(fake, pod("two"))
        wanted = cri.PodSandboxStatsFilter(label_selector={"app": "x"})
        listed: Any = await fake.call(
            "ListPodSandboxStats", cri.ListPodSandboxStatsRequest(filter=wanted)
        )
        assert [s.attributes.id for s in listed.stats] == [first]
        await fake.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=first))
        request = cri.PodSandboxStatsRequest(pod_sandbox_id=first)
        code, text = await refused(fake.call("PodSandboxStats", request))
        assert code == "UNKNOWN"
        assert "is not in ready state" in text
        listed = await fake.call("ListPodSandboxStats", cri.ListPodSandboxStatsRequest())
        assert [s.attributes.metadata.name for s in listed.stats] == ["two"]
        request = cri.PodSandboxStatsRequest(pod_sandbox_id=UNKNOWN_ID)
        assert (await refused(fake.call("PodSandboxStats", request)))[0] == "NOT_FOUND"

    virtual(main)


def test_metrics_have_the_labels_that_their_descriptors_name_CRI_125() -> None:
    async def main(fake: FakeCRI) -> None:
        fake.behaves(uses(memory_bytes=4096))
        sandbox, container = await new_container(fake)
        described: Any = await fake.call(
            "ListMetricDescriptors", cri.ListMetricDescriptorsRequest()
        )
        keys = {d.name: list(d.label_keys) for d in described.descriptors}
        answer: Any = await fake.call("ListPodSandboxMetrics", cri.ListPodSandboxMetricsRequest())
        (of_pod,) = answer.pod_metrics
        (of_container,) = of_pod.container_metrics
        assert (of_pod.pod_sandbox_id, of_container.container_id) == (sandbox, container)
        metrics = {m.name: m for m in of_container.metrics}
        of_network = {m.name for m in of_pod.metrics}
        assert set(metrics) | of_network == set(keys)
        for metric in (*of_pod.metrics, *of_container.metrics):
            assert len(metric.label_values) == len(keys[metric.name])
        assert {"container_fs_reads_total", "container_memory_cache"} <= set(metrics)
        assert "container_network_receive_bytes_total" in of_network
        used = metrics["container_memory_working_set_bytes"]
        assert used.value.value == 4096
        labels = dict(zip(keys[used.name], used.label_values, strict=True))
        assert (labels["pod"], labels["container"], labels["id"]) == ("web", "c", container)

    virtual(main)


def test_resources_of_a_pod_are_kept_also_when_it_is_stopped_CRI_122() -> None:
    async def main(fake: FakeCRI) -> None:
        sandbox = await run_pod(fake, pod())
        await fake.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
        wanted = cri.LinuxContainerResources(cpu_shares=512)
        request = cri.UpdatePodSandboxResourcesRequest(pod_sandbox_id=sandbox, resources=wanted)
        await fake.call("UpdatePodSandboxResources", request)
        kept = fake.sandboxes(pod="web")[0].resources
        assert kept is not None
        assert kept.cpu_shares == 512
        request.pod_sandbox_id = UNKNOWN_ID
        assert await outcome(fake.call("UpdatePodSandboxResources", request)) == "NOT_FOUND"

    virtual(main)


# -- streaming lists ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "request_message", "field"),
    [
        ("StreamPodSandboxes", cri.StreamPodSandboxesRequest(), "pod_sandboxes"),
        ("StreamContainers", cri.StreamContainersRequest(), "containers"),
        ("StreamContainerStats", cri.StreamContainerStatsRequest(), "container_stats"),
        ("StreamPodSandboxStats", cri.StreamPodSandboxStatsRequest(), "pod_sandbox_stats"),
        ("StreamPodSandboxMetrics", cri.StreamPodSandboxMetricsRequest(), "pod_sandbox_metrics"),
    ],
)
def test_streaming_lists_send_each_item_once_in_batches_CRI_150(
    method: str, request_message: Any, field: str
) -> None:
    async def main(fake: FakeCRI) -> None:
        assert await streamed(fake, method, request_message) == []
        fake.limit_list_batches(2)
        for number in range(5):
            await new_container(fake, in_pod=f"p{number}")
        sizes = [len(getattr(m, field)) for m in await streamed(fake, method, request_message)]
        assert sizes == [2, 2, 1]

    virtual(main)


def test_images_are_streamed_in_batches_too_CRI_150() -> None:
    async def main(fake: FakeCRI) -> None:
        assert await streamed(fake, "StreamImages", cri.StreamImagesRequest()) == []
        fake.limit_list_batches(2)
        for number in range(3):
            fake.images.add(f"localhost/image:{number}")
        messages = await streamed(fake, "StreamImages", cri.StreamImagesRequest())
        tags = [image.repo_tags[0] for message in messages for image in message.images]
        assert tags == [f"localhost/image:{number}" for number in range(3)]
        assert len(messages) == 2

    virtual(main, images=())


def test_streaming_lists_filter_like_the_unary_ones_CRI_150() -> None:
    async def main(fake: FakeCRI) -> None:
        _, container = await new_container(fake, "a")
        await new_container(fake, "b")
        request = cri.StreamContainersRequest(filter=cri.ContainerFilter(id=container[:9]))
        (message,) = await streamed(fake, "StreamContainers", request)
        assert [c.metadata.name for c in message.containers] == ["a"]

    virtual(main)


# -- status ------------------------------------------------------------------------------------


def test_identity_and_handlers_are_programmable_CRI_003_CRI_030_CRI_132() -> None:
    async def main(fake: FakeCRI) -> None:
        version: Any = await fake.call("Version", cri.VersionRequest())
        assert (version.runtime_name, version.runtime_version) == ("containerd", "2.1.9")
        answer: Any = await fake.call("Status", cri.StatusRequest(verbose=True))
        assert [h.name for h in answer.runtime_handlers] == ["", "kata"]
        assert answer.features.supplemental_groups_policy
        assert json.loads(answer.info["config"])["runtimeName"] == "containerd"
        sandbox = await run_pod(fake, pod(), "kata")
        listed: Any = await fake.call("ListPodSandbox", cri.ListPodSandboxRequest())
        assert [(i.id, i.runtime_handler) for i in listed.items] == [(sandbox, "kata")]
        code, text = await refused(run_pod(fake, pod("other"), "gvisor"))
        assert code == "UNKNOWN"
        assert text.endswith('no runtime for "gvisor" is configured')

    virtual(main, runtime_name="containerd", runtime_version="2.1.9", runtime_handlers=("kata",))


def test_container_status_echoes_user_and_stop_signal_CRI_084() -> None:
    async def main(fake: FakeCRI) -> None:
        security = cri.LinuxContainerSecurityContext(
            run_as_user=cri.Int64Value(value=1000),
            run_as_group=cri.Int64Value(value=3000),
            supplemental_groups=[4000, 3000],
        )
        linux = cri.LinuxContainerConfig(security_context=security)
        _, container = await new_container(fake, linux=linux, stop_signal=cri.SIGINT)
        shown = await status(fake, container)
        user = shown.user.linux
        assert (user.uid, user.gid, list(user.supplemental_groups)) == (1000, 3000, [3000, 4000])
        assert shown.stop_signal == cri.SIGINT
        _, other = await new_container(fake, "other")
        shown = await status(fake, other)
        assert (shown.user.linux.uid, shown.stop_signal) == (0, cri.SIGTERM)

    virtual(main)


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
def test_the_stop_signal_is_of_the_request_then_of_the_image_CRI_061(
    of_request: Any, of_image: str, ignored: str, code: int, took_s: int
) -> None:
    async def main(fake: FakeCRI) -> None:
        image = cri.ImageSpec(image="r.io/app:1")
        await fake.call("PullImage", cri.PullImageRequest(image=image))
        fake.behaves(ignores(ignored))
        _, container = await new_container(fake, image=image, stop_signal=of_request)
        request = cri.StopContainerRequest(container_id=container, timeout=5)
        await fake.call("StopContainer", request)
        assert (await status(fake, container)).exit_code == code
        assert asyncio.get_running_loop().time() == pytest.approx(took_s)

    virtual(main, registry=registry_of({"r.io/app:1": RegistryImage(stop_signal=of_image)}))


def test_an_oom_kill_of_a_child_is_sticky_whatever_the_exit_code_CRI_071() -> None:
    async def main(fake: FakeCRI) -> None:
        fake.behaves(oom_kills_child(at_s=1), exits(4, after_s=3))
        _, container = await new_container(fake)
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

    virtual(main)


def test_verbose_statuses_carry_json_CRI_043_CRI_085() -> None:
    async def main(fake: FakeCRI) -> None:
        env = [cri.KeyValue(key="A", value=b"1")]
        sandbox, container = await new_container(fake, command=["sh"], args=["-c"], envs=env)
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

    virtual(main)


# -- checkpoint --------------------------------------------------------------------------------


def test_a_checkpoint_is_a_tar_with_configuration_and_status_CRI_135(tmp_path: Path) -> None:
    location = tmp_path / "checkpoint.tar"

    async def main(fake: FakeCRI) -> str:
        _, container = await new_container(fake, "db", command=["serve"])
        request = cri.CheckpointContainerRequest(container_id=container, location=str(location))
        await fake.call("CheckpointContainer", request)
        return container

    container = virtual(main)
    assert location.stat().st_mode & 0o777 == 0o600
    with tarfile.open(fileobj=io.BytesIO(location.read_bytes())) as tar:
        files = {m.name: json.load(tar.extractfile(m)) for m in tar}  # type: ignore[arg-type]
    assert files["config.dump"]["id"] == container
    assert files["config.dump"]["name"] == "db"
    assert files["spec.dump"]["process"]["args"] == ["serve"]
    assert files["status.dump"]["state"] == "CONTAINER_RUNNING"


def test_what_cannot_be_checkpointed_says_why_CRI_135(tmp_path: Path) -> None:
    async def main(fake: FakeCRI) -> None:
        async def attempt(container: str, location: str) -> tuple[str, str]:
            request = cri.CheckpointContainerRequest(container_id=container, location=location)
            return await refused(fake.call("CheckpointContainer", request))

        _, running = await new_container(fake, "running")
        _, created = await new_container(fake, "created", start=False)
        assert (await attempt(UNKNOWN_ID, "/x"))[0] == "NOT_FOUND"
        assert "CONTAINER_CREATED" in (await attempt(created, "/x"))[1]
        assert "no location" in (await attempt(running, ""))[1]
        code, text = await attempt(running, str(tmp_path / "none" / "x.tar"))
        assert (code, text.rpartition(": ")[2]) == ("UNKNOWN", "no such file or directory")

    virtual(main)


# -- events ------------------------------------------------------------------------------------


def test_events_tell_every_change_with_the_state_of_that_moment_CRI_140_CRI_141() -> None:
    async def main(fake: FakeCRI) -> None:
        events: list[Any] = []

        async def listen() -> None:
            async for event in fake.stream("GetContainerEvents", cri.GetEventsRequest()):
                events.append(event)

        listener = asyncio.create_task(listen())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sandbox, first = await new_container(fake, "a")
        _, second = await new_container(fake, "b")
        await fake.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
        await fake.call("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox))
        await asyncio.sleep(1)
        listener.cancel()
        names = {sandbox: "pod", first: "a", second: "b"}
        told = [
            (names[e.container_id], cri.ContainerEventType.Name(e.container_event_type)[10:-6])
            for e in events
        ]
        assert told == [
            ("pod", "CREATED"),
            ("pod", "STARTED"),
            ("a", "CREATED"),
            ("a", "STARTED"),
            ("b", "CREATED"),
            ("b", "STARTED"),
            ("a", "STOPPED"),
            ("b", "STOPPED"),
            ("pod", "STOPPED"),
            ("a", "DELETED"),
            ("b", "DELETED"),
            ("pod", "DELETED"),
        ]
        a_stopped = events[6]
        states = {s.metadata.name: s.state for s in a_stopped.containers_statuses}
        assert states == {"a": cri.CONTAINER_EXITED, "b": cri.CONTAINER_RUNNING}
        assert a_stopped.pod_sandbox_status.state == cri.SANDBOX_READY
        assert events[-1].pod_sandbox_status.id == sandbox

    virtual(main)


@pytest.mark.parametrize(("keep_s", "seen"), [(0.0, []), (5.0, ["two"]), (300.0, ["one", "two"])])
def test_events_wait_for_a_subscriber_as_long_as_told_CRI_143(
    keep_s: float, seen: list[str]
) -> None:
    async def main(fake: FakeCRI) -> None:
        await run_pod(fake, pod("one"))
        await asyncio.sleep(10)
        await run_pod(fake, pod("two"))
        for expected in (seen, []):  # a second subscriber finds nothing left
            names = []
            try:
                request = cri.GetEventsRequest()
                async for event in fake.stream("GetContainerEvents", request, timeout_s=1):
                    assert isinstance(event, cri.ContainerEventResponse)
                    if event.container_event_type == cri.CONTAINER_CREATED_EVENT:
                        names.append(event.pod_sandbox_status.metadata.name)
            except grpc.RpcError as error:
                assert "context deadline exceeded" in str(error)  # noqa: PT017
            assert names == expected

    virtual(main, keep_events_s=keep_s)


def test_all_subscribers_hear_everything_in_messages_of_their_own_CRI_143() -> None:
    async def main(fake: FakeCRI) -> None:
        heard: list[list[Any]] = [[], []]

        async def listen(events: list[Any]) -> None:
            async for event in fake.stream("GetContainerEvents", cri.GetEventsRequest()):
                events.append(event)

        listeners = [asyncio.create_task(listen(events)) for events in heard]
        await asyncio.sleep(1)
        await run_pod(fake, pod())
        await asyncio.sleep(1)
        assert len(heard[0]) == 2
        assert heard[0] == heard[1]
        heard[0][0].container_id = "changed"
        assert heard[0] != heard[1]
        for listener in listeners:
            listener.cancel()

    virtual(main)
