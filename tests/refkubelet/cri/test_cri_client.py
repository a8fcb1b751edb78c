"""The CRI client: deadlines, checks, conversion (CRI-001..009, CRI-034, CRI-081..086)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc
import pytest
from golden_recording import Recording
from google.protobuf.json_format import ParseDict
from kubecri.v1 import api_pb2 as cri
from runtime_doubles import UID, Failure, ScriptedTarget, box_status

from refkubelet.config import KubeletConfiguration
from refkubelet.cri.client import CriClient
from refkubelet.cri.convert import container_record, sandbox_record
from refkubelet.cri.labels import POD_UID
from refkubelet.cri.records import ContainerState, NetworkMode, RuntimeUser, SandboxState
from refkubelet.cri.target import CriCallError
from refkubelet.cri.transport import (
    EndpointError,
    GrpcTarget,
    connect,
    handshake,
    socket_path,
)
from refkubelet.daemon import with_cgroup_driver
from refkubelet.kuberuntime.reading.pod_reader import PodReader
from refkubelet.model.hashes import container_hash
from refkubelet.model.objects import Container
from simclock import Clock, RealClock

Call = Callable[[CriClient], Coroutine[Any, Any, object]]

VERSION = cri.VersionResponse(
    version="0.1.0", runtime_name="r", runtime_version="1", runtime_api_version="v1"
)


def run(call: Call, **answers: Any) -> tuple[Any, ScriptedTarget]:
    """What the call returns, and the target that gave the answers."""
    target = ScriptedTarget(**answers)
    return asyncio.run(call(CriClient(target, request_timeout_s=10))), target


CONFIG, BOX = cri.ContainerConfig(), cri.PodSandboxConfig()


@pytest.mark.parametrize(
    ("call", "deadline_s"),
    [
        (lambda c: c.run_pod_sandbox(BOX), 20),
        (lambda c: c.stop_container("x", 30), 40),
        (lambda c: c.exec_sync("x", ["a"], 5), 15),
        (lambda c: c.exec_sync("x", ["a"]), None),
        (lambda c: c.pull_image("i", BOX), None),
        (lambda c: c.list_containers(), 10),
        (lambda c: c.create_container("s", CONFIG, BOX), 10),
    ],
)
def test_deadlines_CRI_006(call: Call, deadline_s: float | None) -> None:
    _, target = run(call, PullImage=cri.PullImageResponse(image_ref="r"))
    assert target.calls[0][2] == deadline_s


@pytest.mark.parametrize(
    ("call", "answers", "missing"),
    [
        (lambda c: c.run_pod_sandbox(BOX), {"RunPodSandbox": None}, "pod_sandbox_id"),
        (lambda c: c.create_container("s", CONFIG, BOX), {"CreateContainer": None}, "container_id"),
        (lambda c: c.pull_image("i", BOX), {}, "image_ref"),
        (lambda c: c.version(), {"Version": cri.VersionResponse(version="1")}, "runtime_name"),
        (lambda c: c.container_status("c"), {}, "id"),
        (
            lambda c: c.pod_sandbox_status("s"),
            {"PodSandboxStatus": cri.PodSandboxStatusResponse(status=cri.PodSandboxStatus(id="s"))},
            "metadata.name",
        ),
        (
            lambda c: c.image_status("i"),
            {"ImageStatus": cri.ImageStatusResponse(image=cri.Image(id="x"))},
            "size",
        ),
        (lambda c: c.status(), {}, "RuntimeReady and NetworkReady are required"),
    ],
)
def test_answers_are_checked_CRI_008(call: Call, answers: dict[str, Any], missing: str) -> None:
    with pytest.raises(CriCallError, match=missing) as caught:
        run(call, **answers)
    assert caught.value.code == "INVALID_ANSWER"


def test_not_found_means_stopped_CRI_009() -> None:
    gone = Failure(grpc.StatusCode.NOT_FOUND, "gone")
    run(lambda c: c.stop_container("x", 2), StopContainer=gone)
    run(lambda c: c.stop_pod_sandbox("x"), StopPodSandbox=gone)
    with pytest.raises(CriCallError) as caught:
        run(lambda c: c.start_container("x"), StartContainer=gone)
    assert caught.value.text == "rpc error: code = NotFound desc = gone"


def test_missing_runtime_config_falls_back_CRI_004_CRI_009() -> None:
    missing = Failure(grpc.StatusCode.UNIMPLEMENTED, "unknown method")
    assert run(lambda c: c.cgroup_driver(), RuntimeConfig=missing)[0] is None


def linux(driver: Any) -> cri.RuntimeConfigResponse:
    return cri.RuntimeConfigResponse(linux=cri.LinuxRuntimeConfiguration(cgroup_driver=driver))


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (linux(cri.SYSTEMD), "systemd"),
        (linux(cri.CGROUPFS), "cgroupfs"),
        (cri.RuntimeConfigResponse(), "configured"),
        (Failure(grpc.StatusCode.UNIMPLEMENTED, "unknown method"), "configured"),
    ],
)
def test_the_runtimes_cgroup_driver_counts_CRI_133_CG_013(answer: Any, wanted: str) -> None:
    """CG-013.1, CG-013.2."""
    config = KubeletConfiguration(cgroup_driver="configured")
    found, _ = run(lambda c: with_cgroup_driver(config, c, RealClock()), RuntimeConfig=answer)
    assert found[0].cgroup_driver == wanted
    assert found[1] is not isinstance(answer, Failure)


@pytest.mark.virtual_time
async def test_a_runtime_that_does_not_tell_its_driver_is_asked_three_times_CG_013(
    clock: Clock,
) -> None:
    target = ScriptedTarget(RuntimeConfig=Failure(grpc.StatusCode.UNKNOWN, "boom"))
    config = KubeletConfiguration(container_runtime_endpoint="unix:///x")
    with pytest.raises(EndpointError) as caught:
        await with_cgroup_driver(config, CriClient(target), clock)
    assert str(caught.value) == (
        "the runtime at unix:///x does not tell its cgroup driver: "
        "rpc error: code = Unknown desc = boom"
    )
    assert clock.monotonic_s() == 4.0
    assert target.methods() == ["RuntimeConfig"] * 3


def test_filters_CRI_082() -> None:
    _, target = run(lambda c: c.list_containers(uid="u", running_only=True))
    wanted = target.requests("ListContainers")[0].filter
    assert dict(wanted.label_selector) == {POD_UID: "u"}
    assert wanted.HasField("state")
    assert wanted.state.state == cri.CONTAINER_RUNNING
    _, target = run(lambda c: c.list_pod_sandboxes())
    assert not target.requests("ListPodSandbox")[0].filter.HasField("state")


# -- conversion ----------------------------------------------------------------------------------


def recorded(method: str, scenario: str) -> list[dict[str, Any]]:
    rows = Recording(scenario).rows("cri.jsonl")
    answers = [r["response"] for r in rows if r.get("method") == method and "response" in r]
    return [a for a in answers if isinstance(a, dict)]


def test_recorded_container_statuses_convert_CRI_083() -> None:
    answers = recorded("ContainerStatus", "s01")
    records = [
        container_record(ParseDict(a, cri.ContainerStatusResponse()).status, "box") for a in answers
    ]
    assert [r.state for r in records] == [ContainerState.RUNNING, ContainerState.EXITED]
    last = records[-1]
    assert (last.name, last.reason, last.hash, last.restart_count) == (
        "main",
        "Completed",
        "c97bf8df",
        0,
    )
    assert last.termination_log_host_path.endswith("/containers/main/8afefc36")
    assert last.image_id.startswith("sha256:335a")
    assert last.sandbox_id == "box"


@pytest.mark.parametrize(
    ("image", "digest"),
    [("a\u2028b", "3b3b5294"), ("a\u2029b", "f6a3f555"), ("<&>", "a447dd06")],
)
def test_the_hash_of_a_container_is_the_kubelets_own_LIFE_116(image: str, digest: str) -> None:
    assert container_hash(Container(name="main", image=image)) == digest


def test_a_container_status_tells_image_and_user_CRI_083_CRI_084() -> None:
    """The image by its digest, also where the runtime has an id of its own for it."""
    answer = cri.ContainerStatus(id="c", created_at=1, image_ref="img@sha256:1", image_id="2")
    answer.metadata.name, answer.image.image = "main", "img"
    assert container_record(answer).user is None
    answer.user.linux.uid, answer.user.linux.gid = 5, 6
    answer.user.linux.supplemental_groups.extend([6, 7])
    found = container_record(answer)
    assert found.image_id == "img@sha256:1"
    assert found.user == RuntimeUser(5, 6, (6, 7))


def test_recorded_sandbox_statuses_convert_CRI_034() -> None:
    answers = recorded("PodSandboxStatus", "s01")
    first, last = (
        sandbox_record(ParseDict(a, cri.PodSandboxStatusResponse()).status) for a in answers
    )
    assert (first.state, first.ips, first.has_network) == (SandboxState.READY, ("10.99.0.6",), True)
    assert (last.state, last.ips) == (SandboxState.NOTREADY, ())
    assert first.network_mode is NetworkMode.POD


def test_ips_that_do_not_parse_are_none_CRI_035() -> None:
    found = sandbox_record(box_status("s", ip="not-an-ip"))
    assert (found.ips, found.has_network) == ((), False)
    assert sandbox_record(box_status("s", ip="")).has_network


def item(name: str, created: int, **fields: Any) -> Any:
    return cri.Container(
        id=name,
        metadata=cri.ContainerMetadata(name=name),
        created_at=created,
        pod_sandbox_id="s",
        labels={POD_UID: UID},
        **fields,
    )


async def status_of_pod(client: CriClient) -> Any:
    reader = PodReader(client)
    pod = await reader.pod(UID)
    assert pod is not None
    return await reader.status_of(pod)


def test_vanished_objects_are_skipped_and_the_newest_come_first_CRI_081_CRI_086() -> None:
    def describe(request: Any) -> Any:
        if request.container_id == "gone":
            return Failure(grpc.StatusCode.NOT_FOUND, "gone")
        return cri.ContainerStatusResponse(
            status=cri.ContainerStatus(
                id=request.container_id,
                metadata=cri.ContainerMetadata(name=request.container_id),
                created_at={"old": 1, "new": 2}[request.container_id],
                image=cri.ImageSpec(image="i"),
                image_ref="r",
            )
        )

    containers = [item("old", 1), item("gone", 3), item("new", 2)]
    boxes = [cri.PodSandbox(id="s", labels={POD_UID: UID}, created_at=1)]
    answers = {
        "ListContainers": cri.ListContainersResponse(containers=containers),
        "ListPodSandbox": cri.ListPodSandboxResponse(items=boxes),
        "ContainerStatus": describe,
    }
    status, _ = run(status_of_pod, **answers)
    assert [c.name for c in status.containers] == ["new", "old"]
    assert status.ips == ("10.0.0.1",)
    with pytest.raises(CriCallError):
        run(status_of_pod, **{**answers, "ContainerStatus": Failure(grpc.StatusCode.UNKNOWN, "x")})


# -- transport -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoint", "text"),
    [
        ("tcp://127.0.0.1:1", "wanted unix:///path/to/socket"),
        (
            "unix:///no/such/x.sock",
            "cannot connect to the runtime at unix:///no/such/x.sock: no such",
        ),
    ],
)
def test_wrong_endpoints_say_what_to_do(endpoint: str, text: str) -> None:
    with pytest.raises(EndpointError, match=text):
        socket_path(endpoint)


def test_missing_socket_names_the_command_to_start_one() -> None:
    with pytest.raises(EndpointError) as caught:
        socket_path("unix:///run/x.sock")
    assert str(caught.value) == (
        "cannot connect to the runtime at unix:///run/x.sock: no such file\n"
        "  start one: fakecri serve --listen unix:///run/x.sock"
    )


def test_file_that_is_no_socket(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(EndpointError, match="it is not a socket"):
        socket_path(f"unix://{tmp_path}/f")


def test_handshake_asks_for_version_0_1_0_CRI_002() -> None:
    def shake(client: CriClient) -> Coroutine[Any, Any, object]:
        return handshake(client, "unix:///x")

    _, target = run(shake, Version=VERSION)
    assert target.methods() == ["Version", "ImageFsInfo", "Version"]
    assert [r.version for r in target.requests("Version")] == ["", "0.1.0"]
    other = cri.VersionResponse()
    other.CopyFrom(VERSION)
    other.version = "0.2.0"
    with pytest.raises(EndpointError, match=r"speaks kubelet runtime API '0\.2\.0'"):
        run(shake, Version=other)
    with pytest.raises(EndpointError, match="is not a CRI v1 runtime"):
        run(shake, Version=Failure(grpc.StatusCode.UNIMPLEMENTED, "unknown service"))


async def test_calls_over_a_real_socket_CRI_001(tmp_path: Path) -> None:
    from fakecri.server import serve

    target = ScriptedTarget(Version=VERSION)
    endpoint = f"unix://{tmp_path}/cri.sock"
    async with serve(target, endpoint):
        client, transport, version = await connect(endpoint, 5)
        assert isinstance(transport, GrpcTarget)
        assert version.runtime_name == "r"
        target.answers["StartContainer"] = Failure(grpc.StatusCode.UNKNOWN, "boom")
        with pytest.raises(CriCallError, match="code = Unknown desc = boom"):
            await client.start_container("c")
        await transport.close()


async def test_calls_are_plaintext_and_for_localhost_CRI_001(tmp_path: Path) -> None:
    """The first bytes on the socket are those of HTTP/2 without TLS, and name the authority."""
    pytest.importorskip("h2")
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    from h2.events import RequestReceived

    seen: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = H2Connection(H2Configuration(client_side=False))
        server.initiate_connection()
        writer.write(server.data_to_send())
        while not seen.done() and (data := await reader.read(65536)):
            for event in server.receive_data(data):  # raises where this is no HTTP/2
                if isinstance(event, RequestReceived):
                    seen.set_result(dict(event.headers)[b":authority"])
            writer.write(server.data_to_send())
        writer.close()

    async with await asyncio.start_unix_server(listen, str(tmp_path / "x.sock")):
        target = GrpcTarget(f"unix://{tmp_path}/x.sock")
        call = asyncio.create_task(target.call("Version", cri.VersionRequest(), timeout_s=10))
        async with asyncio.timeout(10):
            assert await seen == b"localhost"
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await target.close()


async def test_a_runtime_that_comes_late_is_soon_connected_to_CRI_001(tmp_path: Path) -> None:
    from fakecri.server import serve

    endpoint = f"unix://{tmp_path}/cri.sock"
    target = GrpcTarget(endpoint)
    with pytest.raises(grpc.aio.AioRpcError):
        await target.call("Version", cri.VersionRequest(), timeout_s=5)
    async with serve(ScriptedTarget(Version=VERSION), endpoint), asyncio.timeout(8):
        while True:
            try:
                await target.call("Version", cri.VersionRequest(), timeout_s=5)
                break
            except grpc.aio.AioRpcError:
                await asyncio.sleep(0.1)
        await target.close()


def test_a_runtime_that_takes_calls_and_never_answers_is_given_up_CRI_002() -> None:
    late = Failure(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
    with pytest.raises(EndpointError) as caught:
        run(lambda client: handshake(client, "unix:///x"), Version=late)
    assert str(caught.value) == (
        "cannot connect to the runtime at unix:///x: it takes calls and does not answer them "
        "within 10 s\n  give --container-runtime-endpoint the socket of a runtime that serves "
        "runtime.v1 (containerd 1.6 or newer, CRI-O, fakecri)"
    )


def test_the_image_service_is_blamed_for_its_own_answers_CRI_002() -> None:
    with pytest.raises(EndpointError, match="what answers at unix:///images is not a CRI v1"):
        run(
            lambda client: handshake(client, "unix:///x", "unix:///images"),
            Version=VERSION,
            ImageFsInfo=Failure(grpc.StatusCode.UNIMPLEMENTED, "unknown service"),
        )


async def test_garbage_on_the_socket_is_no_cri(tmp_path: Path) -> None:
    def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 hello\r\n")
        writer.close()

    server = await asyncio.start_unix_server(talk, str(tmp_path / "x.sock"))
    async with server:
        with pytest.raises(EndpointError, match="cannot connect to the runtime"):
            await connect(f"unix://{tmp_path}/x.sock", 2)
