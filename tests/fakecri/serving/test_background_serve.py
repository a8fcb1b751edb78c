"""fakecri.serve(): a fake in a background thread, for code without an event loop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as pb
from kubecri.v1.api_pb2_grpc import RuntimeServiceStub
from runtime_calls import container_config, pod_config

import fakecri
from kubeobjects.strict.errors import ScriptError
from simclock import RealClock


class Client:
    """A blocking client of another process's kind."""

    def __init__(self, endpoint: str) -> None:
        self.channel = grpc.insecure_channel(
            endpoint.replace("unix://", "unix:"), [("grpc.default_authority", "localhost")]
        )
        self.runtime: Any = RuntimeServiceStub(self.channel)

    def start(self, name: str, cgroup_parent: str = "") -> str:
        linux = pb.LinuxPodSandboxConfig(cgroup_parent=cgroup_parent)
        config = pod_config(f"pod-{name}", linux=linux)
        sandbox = self.runtime.RunPodSandbox(pb.RunPodSandboxRequest(config=config), timeout=60)
        request = pb.CreateContainerRequest(
            pod_sandbox_id=sandbox.pod_sandbox_id,
            sandbox_config=config,
            config=container_config(name),
        )
        made: str = self.runtime.CreateContainer(request, timeout=60).container_id
        self.runtime.StartContainer(pb.StartContainerRequest(container_id=made), timeout=60)
        return made


@pytest.fixture
def client(fakecri_server: fakecri.ServedFake) -> Iterator[Client]:
    client = Client(fakecri_server.endpoint)
    yield client
    client.channel.close()


def test_the_words_of_the_fake_work_from_a_blocking_test(
    fakecri_server: fakecri.ServedFake, client: Client
) -> None:
    fake = fakecri_server
    client.start("web")
    assert fake.container("web").state.name == "RUNNING"
    assert [sandbox.config.metadata.name for sandbox in fake.sandboxes()] == ["pod-web"]
    assert fake.kill("web", exit_code=9).exit_code == 9
    fake.assert_order(["RunPodSandbox", ("StartContainer", "web")])
    fake.assert_called("StartContainer", times=1, container="web")
    assert fake.count("StartContainer") == len(fake.times_s("StartContainer")) == 1
    assert fake.calls("StartContainer")[0].request.container_id == fake.container().id
    fake.assert_not_called("StopContainer")
    with pytest.raises(AssertionError, match="expected 2 x StartContainer"):
        fake.assert_called("StartContainer", times=2)
    with pytest.raises(LookupError, match="no running container"):
        fake.exit("web")


def test_runtime_and_network_are_away_for_a_block(
    fakecri_server: fakecri.ServedFake, client: Client
) -> None:
    with fakecri_server.down(), pytest.raises(grpc.RpcError, match="UNAVAILABLE"):
        client.runtime.Version(pb.VersionRequest(), timeout=60)
    with fakecri_server.without_network():
        status = client.runtime.Status(pb.StatusRequest(), timeout=60).status
        assert [condition.status for condition in status.conditions] == [True, False]
    client.start("web")
    assert fakecri_server.stop_sandbox().ready is False


def test_a_hanging_call_is_released_from_the_test(
    fakecri_server: fakecri.ServedFake, client: Client
) -> None:
    fake = fakecri_server
    with fake.on("Version").hangs() as rule:
        call = client.runtime.Version.future(pb.VersionRequest(), timeout=30)
        fake.wait_for_calls("Version")
        assert rule.hits == 1
        assert not call.done()
        rule.release()
        assert call.result(timeout=60).runtime_name == "fakecri"
    assert fake.rules() == []


def test_rules_end_with_their_block(fakecri_server: fakecri.ServedFake, client: Client) -> None:
    with fakecri_server.on("Version").fails("UNAVAILABLE", "away"):
        with pytest.raises(grpc.RpcError, match="away"):
            client.runtime.Version(pb.VersionRequest(), timeout=10)
    assert client.runtime.Version(pb.VersionRequest(), timeout=60).version == "0.1.0"


def test_a_wait_that_runs_out_shows_the_calls(fakecri_server: fakecri.ServedFake) -> None:
    with pytest.raises(AssertionError, match="expected 3 x Version"):
        fakecri_server.wait_for_calls("Version", times=3, within_s=0.02)


def test_manual_time_passes_in_jumps() -> None:
    with fakecri.serve(clock="manual") as fake:
        client = Client(fake.endpoint)
        fake.behaves(fakecri.exits(1, after_s=3600), container="web")
        client.start("web")
        assert fake.advance(3599) == pytest.approx(3599)
        assert fake.container("web").state.name == "RUNNING"
        fake.advance(1)
        web = fake.container("web")
        assert web.finished_at_ns - web.started_at_ns == 3600 * 10**9
        client.channel.close()


def test_a_stop_waits_for_manual_time() -> None:
    """CRI-060: the grace period is container time."""
    with fakecri.serve(clock="manual") as fake:
        client = Client(fake.endpoint)
        fake.behaves(fakecri.ignores("SIGTERM"), container="web")
        container_id = client.start("web")
        request = pb.StopContainerRequest(container_id=container_id, timeout=30)
        call = client.runtime.StopContainer.future(request, timeout=60)
        fake.wait_for_calls("StopContainer")
        fake.advance(29)
        assert not call.done()
        fake.advance(2)
        call.result(timeout=60)
        assert fake.container("web").exit_code == 137
        client.channel.close()


def test_a_predicate_may_ask_the_fake(fakecri_server: fakecri.ServedFake, client: Client) -> None:
    fake = fakecri_server
    second = fake.on("Version", where=lambda call: fake.count("Version") == 2)
    second.fails("UNAVAILABLE", "the second")
    client.runtime.Version(pb.VersionRequest(), timeout=60)
    with pytest.raises(grpc.RpcError, match="the second"):
        client.runtime.Version(pb.VersionRequest(), timeout=10)


def test_after_its_block_a_fake_says_so() -> None:
    with fakecri.serve() as fake:
        pass
    with pytest.raises(RuntimeError, match="has ended with its"):
        fake.count()


def test_real_time_cannot_be_advanced(fakecri_server: fakecri.ServedFake) -> None:
    with pytest.raises(ValueError, match=r"serve\(clock=\"manual\"\)"):
        fakecri_server.advance(1)


def test_a_script_and_options_of_the_fake(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("images: [localhost/app:1]\nfaults: [{on: Version, fails: {times: 1}}]")
    with fakecri.serve(script=script, runtime_version="9.9") as fake:
        assert [rule.what for rule in fake.rules()] == ["Version (anything) fails UNKNOWN"]
        assert [image.tags for image in fake.images.images.values()] == [("localhost/app:1",)]


def test_a_bad_script_leaves_nothing_behind(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(ScriptError, match="cannot read"):
        with fakecri.serve(f"unix://{tmp_path}/cri.sock", script=tmp_path / "none.yaml"):
            pass
    assert threading.active_count() == before
    assert list(tmp_path.iterdir()) == []


def test_threads_and_sockets_end_with_the_block() -> None:
    before = threading.active_count()
    with fakecri.serve() as fake:
        directory = Path(fake.endpoint.removeprefix("unix://")).parent
        assert sorted(path.name for path in directory.iterdir()) == ["cri.sock", "ctl.sock"]
    assert threading.active_count() == before
    assert not directory.exists()


def test_it_starts_in_less_than_150_ms_and_in_any_number() -> None:
    """The best of three: the machine may be busy. The imports are paid before."""
    clock = RealClock()
    starts = []
    for _ in range(3):
        before_s = clock.monotonic_s()
        with fakecri.serve() as one:
            starts.append(clock.monotonic_s() - before_s)
            with fakecri.serve() as other:
                assert one.endpoint != other.endpoint
    assert min(starts) < 0.15


@pytest.mark.parametrize("how", ["kill", "limit"])
def test_what_a_test_does_to_the_node_is_told_at_once(
    fakecri_server: fakecri.ServedFake, client: Client, how: str
) -> None:
    """The fake lives in another thread: nothing would wake the calls that wait there."""
    fakecri_server.behaves(fakecri.uses(memory_bytes=50 << 20), container="web")
    container = client.start("web", "/kubepods/podu1")
    events = client.runtime.GetContainerEvents(pb.GetEventsRequest(), timeout=10)
    fakecri_server.wait_for_calls("GetContainerEvents")
    node = fakecri_server.node
    if how == "kill":
        node.kill_process(fakecri_server.container("web").pid)
    else:
        (node.cgroups.path("/kubepods/podu1") / "memory.max").write_text("1M")
    event = next(events)
    assert event.container_id == container
    assert event.container_event_type == pb.CONTAINER_STOPPED_EVENT


def test_the_node_is_seen_and_changed_from_outside(
    fakecri_server: fakecri.ServedFake,
) -> None:
    node = fakecri_server.node
    node.memory_bytes = 4 << 30
    node.use_memory(1 << 30)
    assert node.memory().working_set_bytes == 1 << 30
    assert fakecri_server.node.memory().total_bytes == 4 << 30
    node.kernel_says("hello")
    assert node.log.texts == ["hello"]
    node.cgroups.path("/web").mkdir()
    process = node.cgroups.spawn("/web")
    assert node.cgroups.path("/web/cgroup.procs").read_text() == f"{process.pid}\n"
    web = node.cgroups.path("/web")
    assert [str(path) for path in node.cgroups.path("/").glob("w*")] == [str(web)] == ["/web"]
    assert web == node.cgroups.path("/web")
    assert web in {node.cgroups.path("/web")}
    with web.joinpath("cgroup.procs").open() as lines:
        assert list(lines) == [f"{process.pid}\n"]
