"""The contract of a CRI runtime, told once and held by the fake and by real containerd.

Every test takes `runtime` and runs unchanged on both. The real side needs Docker and
REFKUBELET_CONTAINERD=1.
"""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from contract_runtime import IMAGE, Program, Runtime
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as cri

from kubeobjects.golang.grpc_deadlines import within_deadline

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

IGNORES_TERM = Program(
    "trap '' TERM; echo set; exec sleep 1000", lambda fake: (fake.ignores("SIGTERM"),)
)

STOPS_WITH_5 = Program(
    "trap 'exit 5' TERM; echo set; while :; do sleep 0.05; done", lambda fake: (fake.stops(5),)
)
EXECS = ["sh", "-c", "echo out; echo err >&2; exit 4"]
ANSWERS_EXEC = Program(
    "exec sleep 1000",
    lambda fake: (
        fake.replies(EXECS, 4, "out\n", "err\n"),
        fake.replies(["sleep", "5"], delay_s=5),
    ),
)


def exits(code: int) -> Program:
    return Program(f"exit {code}", lambda fake: (fake.exits(code),))


UNKNOWN_ID = "f" * 64


async def test_version_CRI_002_CRI_003(runtime: Runtime) -> None:
    answer = await runtime.call("Version", cri.VersionRequest(version="0.0.7"))
    assert (answer.version, answer.runtime_api_version) == ("0.1.0", "v1")
    assert answer.runtime_name
    assert answer.runtime_version


async def test_status_has_both_conditions_CRI_130(runtime: Runtime) -> None:
    answer = await runtime.call("Status", cri.StatusRequest())
    conditions = {c.type: c.status for c in answer.status.conditions}
    assert conditions["RuntimeReady"]
    assert conditions["NetworkReady"]


@pytest.mark.parametrize(
    ("method", "request_message"),
    [
        ("PodSandboxStatus", cri.PodSandboxStatusRequest(pod_sandbox_id=UNKNOWN_ID)),
        ("ContainerStatus", cri.ContainerStatusRequest(container_id=UNKNOWN_ID)),
        ("StartContainer", cri.StartContainerRequest(container_id=UNKNOWN_ID)),
        ("ExecSync", cri.ExecSyncRequest(container_id=UNKNOWN_ID, cmd=["true"])),
        ("Exec", cri.ExecRequest(container_id=UNKNOWN_ID, cmd=["true"], stdout=True)),
        ("Attach", cri.AttachRequest(container_id=UNKNOWN_ID, stdout=True)),
        ("PortForward", cri.PortForwardRequest(pod_sandbox_id=UNKNOWN_ID)),
        ("ReopenContainerLog", cri.ReopenContainerLogRequest(container_id=UNKNOWN_ID)),
        ("UpdateContainerResources", cri.UpdateContainerResourcesRequest(container_id=UNKNOWN_ID)),
        ("ContainerStats", cri.ContainerStatsRequest(container_id=UNKNOWN_ID)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_unknown_ids_are_not_found_CRI_023(
    runtime: Runtime, method: str, request_message: Message
) -> None:
    code, _ = await runtime.refused(method, request_message)
    assert code == "NOT_FOUND"


async def test_create_in_an_unknown_sandbox_is_not_found_CRI_023(runtime: Runtime) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        await runtime.create(UNKNOWN_ID, runtime.pod())
    assert failure.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    ("method", "request_message"),
    [
        ("RemoveContainer", cri.RemoveContainerRequest(container_id=UNKNOWN_ID)),
        ("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=UNKNOWN_ID)),
        ("RemoveImage", cri.RemoveImageRequest(image=cri.ImageSpec(image="localhost/no:1"))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_removing_unknown_ids_succeeds_CRI_023(
    runtime: Runtime, method: str, request_message: Message
) -> None:
    for _ in range(2):
        assert (await runtime.call(method, request_message)).ByteSize() == 0


async def test_a_missing_image_is_an_empty_answer_CRI_091(runtime: Runtime) -> None:
    request = cri.ImageStatusRequest(image=cri.ImageSpec(image="localhost/no:1"))
    assert not (await runtime.call("ImageStatus", request)).HasField("image")


async def test_ids_are_64_hex_digits_and_prefixes_find_them_CRI_020_CRI_021(
    runtime: Runtime,
) -> None:
    sandbox, container = await runtime.running()
    for identity in (sandbox, container):
        assert len(identity) == 64
        assert set(identity) <= set("0123456789abcdef")
    assert (await runtime.status(container[:20])).id == container
    assert (await runtime.sandbox_status(sandbox[:20])).id == sandbox


async def test_an_empty_id_is_refused_CRI_022(runtime: Runtime) -> None:
    code, text = await runtime.refused("ContainerStatus", cri.ContainerStatusRequest())
    assert code == "UNKNOWN"
    assert "prefix can't be empty" in text.lower()  # 1.6 writes a capital P


async def test_a_sandbox_name_is_reserved_until_removed_CRI_024_CRI_025(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    code, text = await runtime.refused("RunPodSandbox", cri.RunPodSandboxRequest(config=config))
    name = f"{config.metadata.name}_default_{config.metadata.uid}_0"
    assert code in ("UNKNOWN", "FAILED_PRECONDITION")
    assert f'failed to reserve sandbox name "{name}": name "{name}" is reserved for' in text
    assert sandbox in text
    await runtime.call("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox))
    await runtime.run_sandbox(config)


async def test_a_container_name_is_reserved_across_sandboxes_CRI_024(runtime: Runtime) -> None:
    config = runtime.pod()
    first = await runtime.run_sandbox(config)
    container = await runtime.create(first, config)
    await runtime.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=first))
    again = runtime.pod(config.metadata.name, attempt=1)
    second = await runtime.run_sandbox(again)
    with pytest.raises(grpc.RpcError) as failure:
        await runtime.create(second, again)
    assert "failed to reserve container name" in failure.value.details()
    assert container in failure.value.details()
    await runtime.create(second, again, attempt=1)


async def test_a_running_sandbox_has_an_address_CRI_030_CRI_034(runtime: Runtime) -> None:
    config = runtime.pod()
    status = await runtime.sandbox_status(await runtime.run_sandbox(config))
    assert status.state == cri.SANDBOX_READY
    assert status.network.ip.count(".") == 3
    assert status.metadata == config.metadata
    assert status.labels == config.labels
    assert status.created_at > 0


async def test_labels_come_back_as_given_up_to_4096_bytes_CRI_026(runtime: Runtime) -> None:
    config = runtime.pod()
    config.labels.update({"a/b.c": "x y\nz", "empty": "", "k": "v" * 4095})
    config.annotations.update({"long": "v" * 9000, "ü": "ß"})
    sandbox = await runtime.run_sandbox(config)
    status = await runtime.sandbox_status(sandbox)
    listed = await runtime.listed_sandbox(sandbox)
    assert status.labels == listed.labels == config.labels
    assert status.annotations == listed.annotations == config.annotations
    too_long = runtime.pod()
    too_long.labels["k"] = "v" * 4096
    code, _ = await runtime.refused("RunPodSandbox", cri.RunPodSandboxRequest(config=too_long))
    assert code == "INVALID_ARGUMENT"


async def test_a_listed_sandbox_is_told_in_short_CRI_041(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    status, listed = await runtime.sandbox_status(sandbox), await runtime.listed_sandbox(sandbox)
    assert (listed.id, listed.metadata) == (sandbox, config.metadata)
    assert (listed.state, listed.created_at) == (cri.SANDBOX_READY, status.created_at)
    assert listed.runtime_handler == status.runtime_handler
    told = {field.name for field, _ in listed.ListFields()}
    assert told <= {"id", "metadata", "state", "created_at", "labels", "runtime_handler"}


async def test_stopping_a_sandbox_kills_running_containers_CRI_036(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    running = await runtime.create(sandbox, config)
    await runtime.start(running)
    created = await runtime.create(sandbox, config, attempt=1)
    for _ in range(2):
        await runtime.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
    status = await runtime.status(running)
    assert (status.state, status.exit_code) == (cri.CONTAINER_EXITED, 137)
    assert (await runtime.status(created)).state == cri.CONTAINER_CREATED
    after = await runtime.sandbox_status(sandbox)
    assert (after.state, after.network.ip) == (cri.SANDBOX_NOTREADY, "")


async def test_removing_a_sandbox_removes_its_containers_CRI_038(runtime: Runtime) -> None:
    sandbox, container = await runtime.running()
    remove = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox)
    await runtime.call("RemovePodSandbox", remove)
    code, _ = await runtime.refused(
        "ContainerStatus", cri.ContainerStatusRequest(container_id=container)
    )
    assert code == "NOT_FOUND"
    await runtime.call("RemovePodSandbox", remove)


async def test_states_follow_timestamps_CRI_050(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    container = await runtime.create(sandbox, config)
    created = await runtime.status(container)
    assert (created.state, created.started_at, created.finished_at) == (cri.CONTAINER_CREATED, 0, 0)
    await runtime.start(container)
    started = await runtime.status(container)
    assert (started.state, started.finished_at) == (cri.CONTAINER_RUNNING, 0)
    await runtime.stop(container)
    ended = await runtime.status(container)
    assert ended.state == cri.CONTAINER_EXITED
    assert 0 < ended.created_at < ended.started_at < ended.finished_at


async def test_create_never_pulls_CRI_051(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    with pytest.raises(grpc.RpcError) as failure:
        await runtime.create(sandbox, config, image=cri.ImageSpec(image="localhost/no:1"))
    assert failure.value.code() is grpc.StatusCode.NOT_FOUND
    assert 'failed to resolve image "localhost/no:1": not found' in failure.value.details()


async def test_metadata_is_required_CRI_030_CRI_052(runtime: Runtime) -> None:
    _, text = await runtime.refused("RunPodSandbox", cri.RunPodSandboxRequest())
    assert "sandbox config must include metadata" in text
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    request = cri.CreateContainerRequest(pod_sandbox_id=sandbox, sandbox_config=config)
    _, text = await runtime.refused("CreateContainer", request)
    assert "container config must include metadata" in text


async def test_a_container_starts_once_CRI_055(runtime: Runtime) -> None:
    _, container = await runtime.running()
    request = cri.StartContainerRequest(container_id=container)
    code, text = await runtime.refused("StartContainer", request)
    assert code == "UNKNOWN"
    assert "container is in CONTAINER_RUNNING state" in text
    await runtime.stop(container)
    _, text = await runtime.refused("StartContainer", request)
    assert "container is in CONTAINER_EXITED state" in text


async def test_a_failed_start_is_exit_128_CRI_056(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    program = Program("", lambda fake: (fake.start_fails("exec: /no/such: not found"),))
    container = await runtime.create(sandbox, config, program, command=["/no/such"])
    code, _ = await runtime.refused(
        "StartContainer", cri.StartContainerRequest(container_id=container)
    )
    assert code == "UNKNOWN"
    status = await runtime.status(container)
    assert (status.state, status.exit_code, status.reason, status.started_at) == (
        cri.CONTAINER_EXITED,
        128,
        "StartError",
        0,
    )
    assert status.message
    assert status.finished_at > 0


async def test_a_start_succeeds_whatever_comes_of_the_process_CRI_057(runtime: Runtime) -> None:
    """OK, though the process is over at once; its run is told like any other."""
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    container = await runtime.create(sandbox, config, exits(7))
    await runtime.start(container)
    status = await runtime.exited(container)
    assert status.exit_code == 7
    assert min(status.started_at, status.finished_at) > 0  # in either order (CRI-050)


@pytest.mark.parametrize(("code", "reason"), [(0, "Completed"), (1, "Error"), (3, "Error")])
async def test_exit_codes_and_reasons_CRI_070_CRI_072(
    runtime: Runtime, code: int, reason: str
) -> None:
    _, container = await runtime.running(exits(code))
    status = await runtime.exited(container)
    assert (status.exit_code, status.reason, status.message) == (code, reason, "")


async def test_stop_with_timeout_zero_kills_CRI_060(runtime: Runtime) -> None:
    _, container = await runtime.running(IGNORES_TERM)
    await runtime.stop(container, 0)
    status = await runtime.status(container)
    assert (status.state, status.exit_code, status.reason) == (cri.CONTAINER_EXITED, 137, "Error")


async def test_stop_waits_for_the_handler_of_the_signal_CRI_060(runtime: Runtime) -> None:
    _, container = await runtime.running(STOPS_WITH_5)
    await runtime.stop(container, 20)
    status = await runtime.status(container)
    assert (status.exit_code, status.reason) == (5, "Error")


async def test_stop_kills_after_its_timeout_CRI_060(runtime: Runtime) -> None:
    _, container = await runtime.running(IGNORES_TERM)
    before = (await runtime.status(container)).started_at
    await runtime.stop(container, 1)
    status = await runtime.status(container)
    assert status.exit_code == 137
    assert status.finished_at - before >= 1_000_000_000


async def test_stop_is_idempotent_CRI_062(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    container = await runtime.create(sandbox, config)
    await runtime.stop(container, 1)
    await runtime.start(container)
    await runtime.stop(container)
    await runtime.stop(container)
    assert (await runtime.status(container)).state == cri.CONTAINER_EXITED


async def test_a_deadline_before_the_timeout_leaves_it_running_CRI_064(runtime: Runtime) -> None:
    _, container = await runtime.running(IGNORES_TERM)
    request = cri.StopContainerRequest(container_id=container, timeout=20)
    with pytest.raises(grpc.RpcError) as failure:
        await within_deadline(runtime.target.call("StopContainer", request, timeout_s=0.5), 0.5)
    assert failure.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert (await runtime.status(container)).state == cri.CONTAINER_RUNNING


async def test_removing_a_running_container_kills_it_CRI_066(runtime: Runtime) -> None:
    _, container = await runtime.running(IGNORES_TERM)
    remove = cri.RemoveContainerRequest(container_id=container)
    await runtime.call("RemoveContainer", remove)
    code, _ = await runtime.refused(
        "ContainerStatus", cri.ContainerStatusRequest(container_id=container)
    )
    assert code == "NOT_FOUND"
    await runtime.call("RemoveContainer", remove)


async def test_list_filters_are_anded_CRI_080(runtime: Runtime) -> None:
    sandbox, container = await runtime.running()

    async def listed(**filters: Any) -> list[str]:
        request = cri.ListContainersRequest(
            filter=cri.ContainerFilter(pod_sandbox_id=sandbox, **filters)
        )
        return [c.id for c in (await runtime.call("ListContainers", request)).containers]

    running = cri.ContainerStateValue(state=cri.CONTAINER_RUNNING)
    exited = cri.ContainerStateValue(state=cri.CONTAINER_EXITED)
    assert await listed() == [container]
    assert await listed(state=running) == [container]
    assert await listed(state=exited) == []
    assert await listed(state=running, label_selector={"no": "such"}) == []


async def test_image_fields_of_list_and_status_CRI_083(runtime: Runtime) -> None:
    sandbox, container = await runtime.running()
    image = (
        await runtime.call("ImageStatus", cri.ImageStatusRequest(image=cri.ImageSpec(image=IMAGE)))
    ).image
    listing = await runtime.call(
        "ListContainers",
        cri.ListContainersRequest(filter=cri.ContainerFilter(pod_sandbox_id=sandbox)),
    )
    assert listing.containers[0].image.image == IMAGE
    assert listing.containers[0].image_ref == image.id
    status = await runtime.status(container)
    assert status.image.image == IMAGE
    assert status.image_ref == (image.repo_digests[0] if image.repo_digests else image.id)


async def test_exec_answers_code_and_output_CRI_111(runtime: Runtime) -> None:
    _, container = await runtime.running(ANSWERS_EXEC)
    answer = await runtime.call("ExecSync", cri.ExecSyncRequest(container_id=container, cmd=EXECS))
    assert (answer.exit_code, answer.stdout, answer.stderr) == (4, b"out\n", b"err\n")


async def test_exec_ends_at_its_timeout_CRI_112(runtime: Runtime) -> None:
    _, container = await runtime.running(ANSWERS_EXEC)
    request = cri.ExecSyncRequest(container_id=container, cmd=["sleep", "5"], timeout=1)
    code, text = await runtime.refused("ExecSync", request)
    assert code == "DEADLINE_EXCEEDED"
    assert "timeout 1s exceeded" in text


async def test_exec_needs_a_running_container_CRI_111(runtime: Runtime) -> None:
    _, container = await runtime.running()
    await runtime.stop(container)
    code, text = await runtime.refused(
        "ExecSync", cri.ExecSyncRequest(container_id=container, cmd=["true"])
    )
    assert code == "UNKNOWN"
    assert "container is in CONTAINER_EXITED state" in text


async def test_reopening_a_log_needs_a_running_container_CRI_104(runtime: Runtime) -> None:
    _, container = await runtime.running()
    request = cri.ReopenContainerLogRequest(container_id=container)
    await runtime.call("ReopenContainerLog", request)
    await runtime.stop(container)
    code, text = await runtime.refused("ReopenContainerLog", request)
    assert code == "UNKNOWN"
    assert "container is not running" in text


async def test_stats_of_an_exited_container_fail_CRI_123(runtime: Runtime) -> None:
    _, container = await runtime.running()
    request = cri.ContainerStatsRequest(container_id=container)
    assert (await runtime.call("ContainerStats", request)).stats.attributes.id == container
    await runtime.stop(container)
    code, text = await runtime.refused("ContainerStats", request)
    assert code == "UNKNOWN"
    assert "unexpected metrics response" in text
