"""Malformed requests: each has a clear error, most in containerd's words (heard from 1.6.20)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc
import pytest
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as cri
from runtime_calls import UNKNOWN_ID, container_config, pod_config, run_pod

from fakecri import FakeCRI, replies

T = TypeVar("T")
MEBIBYTE = "a" * (1 << 20)


async def outcome(call: Awaitable[Any]) -> tuple[str, str]:
    """Code and text, of a call that need not fail."""
    try:
        await call
    except grpc.RpcError as error:
        return error.code().name, error.details()
    return "OK", ""


class World:
    """A fake with one pod and a container in each state."""

    def __init__(self, fake: FakeCRI) -> None:
        self.fake = fake
        self.sandbox = ""
        self.created = self.running = self.exited = ""

    async def set_up(self) -> World:
        self.sandbox = await run_pod(self.fake)
        self.created, self.running, self.exited = [await self.create(n) for n in "abc"]
        for container in (self.running, self.exited):
            await self.call("StartContainer", cri.StartContainerRequest(container_id=container))
        await self.call("StopContainer", cri.StopContainerRequest(container_id=self.exited))
        return self

    async def call(self, method: str, request: Message) -> Any:
        return await self.fake.call(method, request)

    async def create(self, name: str = "c", **fields: Any) -> str:
        return str((await self.call("CreateContainer", self.request(name, **fields))).container_id)

    def request(self, name: str = "new", **fields: Any) -> cri.CreateContainerRequest:
        return cri.CreateContainerRequest(
            pod_sandbox_id=self.sandbox,
            config=container_config(name, **fields),
            sandbox_config=pod_config(),
        )


Make = Callable[[World], tuple[str, Message]]


def of_run(config: cri.PodSandboxConfig | None, handler: str = "") -> Make:
    request = cri.RunPodSandboxRequest(config=config, runtime_handler=handler)
    return lambda world: ("RunPodSandbox", request)


def of_create(change: Callable[[Any], None], **fields: Any) -> Make:
    def make(world: World) -> tuple[str, Message]:
        request = world.request(**fields)
        change(request)
        return "CreateContainer", request

    return make


def of_container(method: str, state: str, **fields: Any) -> Make:
    def make(world: World) -> tuple[str, Message]:
        request_type = getattr(cri, f"{method}Request")
        return method, request_type(container_id=getattr(world, state), **fields)

    return make


def just(method: str, request: Message) -> Make:
    return lambda world: (method, request)


def nothing(request: Any) -> None:
    pass


NO_METADATA = "sandbox config must include metadata"
TOO_LONG = "label key and value greater than maximum size (4096 bytes), key: k: invalid argument"


def _security(request: Any) -> Any:
    return request.config.linux.security_context


SHARED_MOUNT = cri.Mount(
    container_path="/x",
    readonly=True,
    recursive_read_only=True,
    propagation=cri.PROPAGATION_BIDIRECTIONAL,
)
REFUSED: list[tuple[str, Make, str, str]] = [
    # missing parts
    ("run without config", of_run(None), "UNKNOWN", NO_METADATA),
    ("run without metadata", of_run(cri.PodSandboxConfig()), "UNKNOWN", NO_METADATA),
    (
        "create without config",
        of_create(lambda r: r.ClearField("config")),
        "UNKNOWN",
        "container config must include metadata",
    ),
    (
        "create without metadata",
        of_create(lambda r: r.config.ClearField("metadata")),
        "UNKNOWN",
        "container config must include metadata",
    ),
    (
        "create without sandbox config",  # kills containerd up to 2.1 (CRI-052)
        of_create(lambda r: r.ClearField("sandbox_config")),
        "UNKNOWN",
        "pod sandbox config must include metadata",
    ),
    (
        "create without image",
        of_create(nothing, image=""),
        "UNKNOWN",
        'failed to resolve image "": ambiguous digest string',
    ),
    (
        "create with a group and no user",
        of_create(lambda r: _security(r).run_as_group.CopyFrom(cri.Int64Value(value=7))),
        "UNKNOWN",
        'failed to generate user string: user group "7" is specified without user',
    ),
    (
        "create with a recursive read-only mount that is not read-only",  # CRI-054
        of_create(nothing, mounts=[cri.Mount(container_path="/x", recursive_read_only=True)]),
        "UNKNOWN",
        'failed to mount "/x": recursive read-only needs a read-only mount',
    ),
    (
        "create with a recursive read-only mount that others see",  # CRI-054
        of_create(nothing, mounts=[SHARED_MOUNT]),
        "UNKNOWN",
        'failed to mount "/x": recursive read-only needs private propagation',
    ),
    (
        "create of an unknown image",
        of_create(nothing, image="nope:1"),
        "NOT_FOUND",
        'failed to resolve image "nope:1": not found',
    ),
    (
        "create without sandbox id",
        of_create(lambda r: r.ClearField("pod_sandbox_id")),
        "UNKNOWN",
        'failed to find sandbox id "": Prefix can\'t be empty',
    ),
    (
        "exec without command",
        of_container("ExecSync", "running"),
        "UNKNOWN",
        "args must not be empty",
    ),
    (
        "exec without id",
        just("ExecSync", cri.ExecSyncRequest(cmd=["true"])),
        "UNKNOWN",
        'failed to exec in container: failed to find container "" in store: Prefix can\'t be',
    ),
    (
        "status of the empty image",
        just("ImageStatus", cri.ImageStatusRequest()),
        "UNKNOWN",
        'can not resolve "" locally: ambiguous digest string',
    ),
    (
        "pull of nothing",
        just("PullImage", cri.PullImageRequest()),
        "UNKNOWN",
        'failed to parse image reference "": invalid reference format',
    ),
    (
        "streams: none",
        of_container("Attach", "running"),
        "INVALID_ARGUMENT",
        "one of stdin, stdout, or stderr must be set",
    ),
    (
        "streams: tty and stderr",
        of_container("Exec", "running", cmd=["sh"], tty=True, stderr=True),
        "INVALID_ARGUMENT",
        "tty and stderr cannot both be true",
    ),
    # too much
    ("run with a 1 MiB name", of_run(pod_config(MEBIBYTE)), "UNKNOWN", "argument list too long"),
    (
        "run with a 1 MiB label",
        of_run(pod_config("x", labels={"k": MEBIBYTE})),
        "INVALID_ARGUMENT",
        TOO_LONG,
    ),
    (
        "run with a 1 MiB handler",
        of_run(pod_config("x"), MEBIBYTE),
        "UNKNOWN",
        '... (1048576 characters)" is configured',
    ),
    (
        "create with a 1 MiB label",
        of_create(nothing, labels={"k": MEBIBYTE}),
        "INVALID_ARGUMENT",
        TOO_LONG,
    ),
    (
        "create of a 1 MiB image name",
        of_create(nothing, image=MEBIBYTE),
        "NOT_FOUND",
        '... (1048576 characters)": not found',
    ),
    (
        "status of a 1 MiB id",
        just("ContainerStatus", cri.ContainerStatusRequest(container_id=MEBIBYTE)),
        "NOT_FOUND",
        '... (1048576 characters)": not found',
    ),
    (
        "pull of a 1 MiB name",
        just("PullImage", cri.PullImageRequest(image=cri.ImageSpec(image=MEBIBYTE + "A"))),
        "UNKNOWN",
        "... (1048577 characters)",
    ),
    # wrong state
    (
        "start of a running container",
        of_container("StartContainer", "running"),
        "UNKNOWN",
        "container is in CONTAINER_RUNNING state",
    ),
    (
        "start of an exited container",
        of_container("StartContainer", "exited"),
        "UNKNOWN",
        "container is in CONTAINER_EXITED state",
    ),
    (
        "exec in a created container",
        of_container("ExecSync", "created", cmd=["true"]),
        "UNKNOWN",
        "failed to exec in container: container is in CONTAINER_CREATED state",
    ),
    (
        "exec streams of an exited container",
        of_container("Exec", "exited", cmd=["true"], stdout=True),
        "UNKNOWN",
        "container is in CONTAINER_EXITED state",
    ),
    (
        "statistics of an exited container",
        of_container("ContainerStats", "exited"),
        "UNKNOWN",
        "unexpected metrics response: []",
    ),
    (
        "log of a created container",
        of_container("ReopenContainerLog", "created"),
        "UNKNOWN",
        "container is not running",
    ),
    (
        "checkpoint of a created container",
        of_container("CheckpointContainer", "created", location="/x"),
        "UNKNOWN",
        "only CONTAINER_RUNNING containers can be checkpointed",
    ),
]


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("make", "code", "text"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
async def test_malformed_requests_get_a_clear_error(make: Make, code: str, text: str) -> None:
    """CRI-022, CRI-030, CRI-051, CRI-052, CRI-055, CRI-096, CRI-104, CRI-111, CRI-116, CRI-123."""

    fake = FakeCRI()
    world = await World(fake).set_up()
    before = (len(fake.sandboxes()), len(fake.containers()))
    with pytest.raises(grpc.RpcError) as failure:
        await world.call(*make(world))
    assert failure.value.code().name == code
    assert text in failure.value.details()
    assert len(failure.value.details()) < 2000
    assert (len(fake.sandboxes()), len(fake.containers())) == before


UNKNOWN_IDS = [
    ("StopPodSandbox", "OK", ""),
    ("RemovePodSandbox", "OK", ""),
    ("PodSandboxStatus", "NOT_FOUND", "an error occurred when try to find sandbox: not found"),
    ("PodSandboxStats", "NOT_FOUND", f"when trying to find sandbox {UNKNOWN_ID}: not found"),
    ("PortForward", "NOT_FOUND", f'failed to find sandbox "{UNKNOWN_ID}": not found'),
    ("UpdatePodSandboxResources", "NOT_FOUND", "not found"),
    ("StopContainer", "OK", ""),
    ("RemoveContainer", "OK", ""),
    ("StartContainer", "NOT_FOUND", f'when try to find container "{UNKNOWN_ID}": not found'),
    ("ContainerStatus", "NOT_FOUND", f'when try to find container "{UNKNOWN_ID}": not found'),
    ("ReopenContainerLog", "NOT_FOUND", f'when try to find container "{UNKNOWN_ID}": not found'),
    ("ExecSync", "NOT_FOUND", f'failed to find container "{UNKNOWN_ID}" in store: not found'),
    ("Exec", "NOT_FOUND", f'failed to find container "{UNKNOWN_ID}" in store: not found'),
    ("Attach", "NOT_FOUND", "failed to find container in store: not found"),
    ("ContainerStats", "NOT_FOUND", "failed to find container: not found"),
    ("UpdateContainerResources", "NOT_FOUND", "failed to find container: not found"),
]


@pytest.mark.virtual_time
@pytest.mark.parametrize(("method", "code", "text"), UNKNOWN_IDS, ids=[r[0] for r in UNKNOWN_IDS])
async def test_unknown_ids_in_the_words_of_every_method_CRI_023(
    method: str, code: str, text: str
) -> None:
    fake = FakeCRI()
    request = getattr(cri, f"{method}Request")()
    of_pod = "pod_sandbox_id" in request.DESCRIPTOR.fields_by_name
    setattr(request, "pod_sandbox_id" if of_pod else "container_id", UNKNOWN_ID)
    seen = await outcome(fake.call(method, request))
    assert seen[0] == code
    assert text in seen[1]


@pytest.mark.virtual_time
async def test_an_ambiguous_prefix_is_an_error_and_selects_nothing_CRI_022() -> None:
    fake = FakeCRI()
    for number in range(17):  # two of 17 ids begin with the same digit
        await run_pod(fake, pod_config(f"p{number}"))
    digits = [s.id[0] for s in fake.sandboxes()]
    twice = next(d for d in digits if digits.count(d) > 1)
    request = cri.PodSandboxStatusRequest(pod_sandbox_id=twice)
    with pytest.raises(grpc.RpcError, match="Multiple IDs found with provided prefix"):
        await fake.call("PodSandboxStatus", request)
    wanted = cri.PodSandboxFilter(id=twice)
    listed: Any = await fake.call("ListPodSandbox", cri.ListPodSandboxRequest(filter=wanted))
    assert not listed.items


@pytest.mark.virtual_time
async def test_unknown_enum_values_are_taken_as_containerd_takes_them() -> None:
    """A filter's state selects nothing; a namespace mode, a signal, a propagation is a default."""

    fake = FakeCRI()
    world = await World(fake).set_up()
    state: Any = 99
    await world.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=world.sandbox))
    pods = cri.PodSandboxFilter(state=cri.PodSandboxStateValue(state=state))
    listed = await world.call("ListPodSandbox", cri.ListPodSandboxRequest(filter=pods))
    assert not listed.items
    wanted = cri.ContainerFilter(state=cri.ContainerStateValue(state=state))
    listed = await world.call("ListContainers", cri.ListContainersRequest(filter=wanted))
    assert not listed.containers
    odd = pod_config("odd")
    odd.linux.security_context.namespace_options.network = state
    world.sandbox = await run_pod(fake, odd)
    mount = cri.Mount(container_path="/x", host_path="/tmp", propagation=state)
    container = await world.create("odd", mounts=[mount], stop_signal=state)
    request = cri.ContainerStatusRequest(container_id=container)
    status = (await world.call("ContainerStatus", request)).status
    assert status.stop_signal == cri.SIGTERM
    assert status.mounts[0].propagation == state


@pytest.mark.virtual_time
async def test_negative_time_outs_are_none_CRI_060_CRI_112() -> None:
    """StopContainer kills at once, ExecSync has no limit."""

    fake = FakeCRI()
    fake.behaves(replies(["slow"], delay_s=30))
    world = await World(fake).set_up()
    slow = cri.ExecSyncRequest(container_id=world.running, cmd=["slow"], timeout=-5)
    await world.call("ExecSync", slow)
    assert asyncio.get_running_loop().time() == pytest.approx(30)
    stop = cri.StopContainerRequest(container_id=world.running, timeout=-3)
    await world.call("StopContainer", stop)
    request = cri.ContainerStatusRequest(container_id=world.running)
    status = (await world.call("ContainerStatus", request)).status
    assert (status.exit_code, status.state) == (137, cri.CONTAINER_EXITED)


@pytest.mark.virtual_time
async def test_long_container_names_and_annotations_are_fine() -> None:
    fake = FakeCRI()
    world = await World(fake).set_up()
    await world.create(MEBIBYTE, annotations={"k": MEBIBYTE})
    with pytest.raises(grpc.RpcError, match="failed to reserve container name") as failure:
        await world.create(MEBIBYTE)
    assert len(failure.value.details()) < 2000
