"""Faults that are more than a failed call: late answers, held names, lists that lie, streams that
break, a runtime that goes down."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import container_config, now_s, pod_config, refused, run_pod, started

from fakecri import FakeCRI, exits
from fakecri.proxy import RecordingProxy

LIST = cri.ListContainersRequest()


def create_request(sandbox: str, name: str) -> cri.CreateContainerRequest:
    return cri.CreateContainerRequest(
        pod_sandbox_id=sandbox, config=container_config(name), sandbox_config=pod_config()
    )


async def names(fake: Any) -> list[str]:
    return [c.metadata.name for c in (await fake.call("ListContainers", LIST)).containers]


# -- late answers and held names ---------------------------------------------------------------


@pytest.mark.virtual_time
async def test_a_late_answer_has_its_effect_and_misses_the_deadline() -> None:
    fake = FakeCRI()
    with fake.on("RunPodSandbox").answers_late():
        code, _ = await refused(run_pod(fake, pod_config("web"), timeout_s=3))
        assert (code, now_s()) == ("DEADLINE_EXCEEDED", 3)
        assert len(fake.sandboxes(pod="web")) == 1
    with fake.on("Version").answers_late(2):
        await fake.call("Version", cri.VersionRequest(), timeout_s=5)
        assert now_s() == 5


@pytest.mark.virtual_time
async def test_a_create_that_times_out_keeps_its_name_until_released_CRI_025() -> None:
    fake = FakeCRI()
    sandbox = await run_pod(fake, pod_config("web"))
    request = create_request(sandbox, "c")
    with fake.on("CreateContainer", container="c").holds_name() as rule:
        code, _ = await refused(fake.call("CreateContainer", request, timeout_s=4))
        assert code == "DEADLINE_EXCEEDED"
        code, text = await refused(fake.call("CreateContainer", request))
        assert code == "UNKNOWN"
        assert text.startswith('failed to reserve container name "c_web_default_uid-web_0": name ')
        other = create_request(sandbox, "other")
        await fake.call("CreateContainer", other)
    assert rule.hits == 2
    await fake.call("CreateContainer", request)
    assert await names(fake) == ["other", "c"]


@pytest.mark.virtual_time
async def test_a_held_sandbox_name_is_free_again_after_its_release_CRI_025() -> None:
    fake = FakeCRI()
    rule = fake.on("RunPodSandbox").holds_name(times=1)
    waiting = asyncio.create_task(run_pod(fake, pod_config("web")))
    await asyncio.sleep(1)
    assert "is reserved for" in (await refused(run_pod(fake, pod_config("web"))))[1]
    rule.release()
    assert await waiting == fake.sandboxes()[0].id


# -- lists that lie ----------------------------------------------------------------------------


@pytest.mark.virtual_time
async def test_a_stale_list_is_that_of_the_moment_of_the_rule() -> None:
    fake = FakeCRI()
    first = await started(fake, "a", "one")
    with fake.on("ListContainers").goes_stale():
        await started(fake, "b", "two")
        await fake.call("StopContainer", cri.StopContainerRequest(container_id=first))
        assert await names(fake) == ["a"]
        running = cri.ContainerStateValue(state=cri.CONTAINER_RUNNING)
        request = cri.ListContainersRequest(filter=cri.ContainerFilter(state=running))
        listed: Any = await fake.call("ListContainers", request)
        assert [c.id for c in listed.containers] == [first]  # filters work on the old state
    assert await names(fake) == ["a", "b"]


@pytest.mark.virtual_time
async def test_in_front_of_a_real_runtime_the_first_answer_goes_stale() -> None:
    fake = FakeCRI()
    proxy = RecordingProxy(fake, clock=fake.clock)
    await started(proxy, "a", "one")
    with proxy.on("ListContainers").goes_stale():
        assert await names(proxy) == ["a"]
        await started(proxy, "b", "two")
        assert await names(proxy) == ["a"]
    assert await names(proxy) == ["a", "b"]


@pytest.mark.virtual_time
async def test_items_can_be_missing_or_there_twice() -> None:
    fake = FakeCRI()
    for name, in_pod in (("a", "one"), ("b", "two"), ("c", "two2")):
        await started(fake, name, in_pod)
    with fake.on("ListContainers").leaves_out(container="b"):
        assert await names(fake) == ["a", "c"]
    with fake.on("ListContainers").leaves_out(pod="two*", keep=1):
        assert await names(fake) == ["a", "b"]
    with fake.on("ListContainers").leaves_out():
        assert await names(fake) == []
    with fake.on("ListContainers").repeats(pod="one"):
        assert await names(fake) == ["a", "b", "c", "a"]
        with fake.on("ListContainers").leaves_out(container="a", times=1):
            assert await names(fake) == ["b", "c"]  # rules add up, the newest is outermost
    with fake.on("ListImages").leaves_out(image="*busybox:1"):
        images: Any = await fake.call("ListImages", cri.ListImagesRequest())
        assert "localhost/busybox:1" not in [t for i in images.images for t in i.repo_tags]
    with fake.on("StreamContainers").leaves_out(container="a"):
        stream = fake.stream("StreamContainers", cri.StreamContainersRequest())
        assert [len(m.containers) async for m in stream] == [2]


@pytest.mark.virtual_time
async def test_an_error_can_be_in_the_status_of_one_item_only() -> None:
    fake = FakeCRI()
    good, bad = await started(fake, "a", "one"), await started(fake, "b", "two")
    with fake.on("ContainerStatus", container="b").fails("INTERNAL", "broken"):
        await fake.call("ContainerStatus", cri.ContainerStatusRequest(container_id=good))
        request = cri.ContainerStatusRequest(container_id=bad)
        assert await refused(fake.call("ContainerStatus", request)) == ("INTERNAL", "broken")
        assert await names(fake) == ["a", "b"]


@pytest.mark.virtual_time
async def test_time_can_go_backwards() -> None:
    fake = FakeCRI()
    container = await started(fake, "a", "one")
    request = cri.ContainerStatusRequest(container_id=container)
    before: Any = await fake.call("ContainerStatus", request)
    with fake.on("ContainerStatus").turns_back_time(60):
        after: Any = await fake.call("ContainerStatus", request)
    assert before.status.created_at - after.status.created_at == 60_000_000_000
    assert before.status.started_at - after.status.started_at == 60_000_000_000
    assert after.status.finished_at == 0
    with fake.on("ListContainers").turns_back_time(1):
        listed: Any = await fake.call("ListContainers", LIST)
        assert before.status.created_at - listed.containers[0].created_at == 1_000_000_000


# -- streams -----------------------------------------------------------------------------------


class Listener:
    """Reads GetContainerEvents until it ends."""

    def __init__(self, fake: FakeCRI, timeout_s: float | None = None) -> None:
        self.seen = 0
        self.task = asyncio.create_task(self._read(fake, timeout_s))

    async def _read(self, fake: FakeCRI, timeout_s: float | None) -> str:
        try:
            request = cri.GetEventsRequest()
            async for _ in fake.stream("GetContainerEvents", request, timeout_s=timeout_s):
                self.seen += 1
        except grpc.RpcError as error:
            return str(error.code().name)
        return "EOF"


@pytest.mark.virtual_time
async def test_an_open_stream_can_be_cut_at_once_and_reopened() -> None:
    fake = FakeCRI()
    listener = Listener(fake)
    await asyncio.sleep(1)
    await run_pod(fake, pod_config("web"))
    await asyncio.sleep(1)
    with fake.on("GetContainerEvents").cuts_stream(times=1) as rule:
        assert (await listener.task, now_s(), listener.seen) == ("UNAVAILABLE", 2, 2)
        assert rule.hits == 1
        listener = Listener(fake)  # the rule is used up
        await asyncio.sleep(1)
        await run_pod(fake, pod_config("db"))
        await asyncio.sleep(1)
    assert listener.seen == 2
    listener.task.cancel()


@pytest.mark.virtual_time
async def test_a_stream_can_end_in_good_order_after_some_messages() -> None:
    fake = FakeCRI()
    fake.on("GetContainerEvents").cuts_stream(after=1, code=None)
    listener = Listener(fake)
    await asyncio.sleep(1)
    await run_pod(fake, pod_config("web"))
    assert (await listener.task, listener.seen) == ("EOF", 1)
    (call,) = fake.calls("GetContainerEvents")
    assert (call.messages, call.error) == (1, None)


@pytest.mark.virtual_time
async def test_a_silent_stream_stays_open_and_loses_events() -> None:
    fake = FakeCRI()
    listener = Listener(fake, timeout_s=10)
    await asyncio.sleep(1)
    with fake.on("GetContainerEvents").goes_silent() as rule:
        await run_pod(fake, pod_config("web"))
        await asyncio.sleep(1)
        assert (listener.seen, rule.hits) == (0, 2)
    await run_pod(fake, pod_config("db"))
    assert await listener.task == "DEADLINE_EXCEEDED"
    assert (now_s(), listener.seen) == (10, 2)


# -- the runtime goes down ---------------------------------------------------------------------


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("options", "shown"),
    [({}, (3, "Error")), ({"lost_exits": True}, (255, "Unknown"))],
)
async def test_exits_while_the_runtime_is_down_CRI_161(
    options: dict[str, bool], shown: tuple[int, str]
) -> None:
    fake = FakeCRI()
    fake.behaves(exits(3, after_s=5))
    container = await started(fake, "a", "one")
    with fake.down(**options):
        assert fake.is_down
        assert (await refused(names(fake)))[0] == "UNAVAILABLE"
        await asyncio.sleep(10)
    assert not fake.is_down
    request = cri.ContainerStatusRequest(container_id=container)
    status: Any = (await fake.call("ContainerStatus", request)).status
    assert (status.exit_code, status.reason) == shown


@pytest.mark.virtual_time
async def test_a_crash_that_loses_the_state_frees_the_names() -> None:
    fake = FakeCRI()
    await started(fake, "a", "one")
    with fake.down(loses_state=True):
        pass
    assert await names(fake) == []
    images: Any = await fake.call("ListImages", cri.ListImagesRequest())
    assert len(images.images) == 3
    await started(fake, "a", "one")


# -- which rules there are ---------------------------------------------------------------------


@pytest.mark.virtual_time
async def test_rules_are_listed_and_the_unused_are_known() -> None:
    fake = FakeCRI()
    behavior = fake.behaves(exits(1), container="web")
    fault = fake.on("Version").fails(times=1)
    with fake.on("PullImage", image="x").delays(1) as scoped:
        assert fake.rules() == [behavior, fault, scoped]
    assert (fault.left, fault.hits, fault.active) == (1, 0, True)
    assert fake.unused_rules() == [behavior, scoped, fault]
    await refused(fake.call("Version", cri.VersionRequest()))
    assert not fault.active
    assert fake.rules() == [behavior]
    assert fake.unused_rules() == [behavior, scoped]
    assert "PullImage" in repr(scoped)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (lambda fake: fake.on("Version").cuts_stream(), "Version is no stream"),
        (lambda fake: fake.on("Version").goes_silent(), "Version is no stream"),
        (lambda fake: fake.on("Version").leaves_out(), "Version answers no list"),
        (lambda fake: fake.on("Version").holds_name(), "Version takes no name"),
        (lambda fake: fake.on("StopContainer").goes_stale(), "cannot be stale"),
    ],
)
async def test_a_verb_that_cannot_act_on_the_method_says_so(rule: Any, text: str) -> None:
    fake = FakeCRI()
    with pytest.raises(ValueError, match=text):
        rule(fake)
    assert fake.rules() == []
    with pytest.raises(ValueError, match="in a fake runtime only"):
        RecordingProxy(fake).on("CreateContainer").holds_name()


# -- the record --------------------------------------------------------------------------------


@pytest.mark.virtual_time
async def test_a_mistake_of_a_rule_ends_the_call_in_the_record() -> None:
    def wrong(answer: Any) -> None:
        raise KeyError("oops")

    fake = FakeCRI()
    with fake.on("Version").changes_answer(wrong), pytest.raises(KeyError):
        await fake.call("Version", cri.VersionRequest())
    (call,) = fake.calls("Version")
    assert call.ended_s is not None
    assert call.error == ("INTERNAL", "KeyError: 'oops'")


@pytest.mark.virtual_time
async def test_failures_point_at_the_users_line_and_count_from_the_start() -> None:
    fake = FakeCRI()
    await asyncio.sleep(2.5)
    await fake.call("Version", cri.VersionRequest())
    with pytest.raises(AssertionError) as failed:
        fake.assert_not_called("Version")
    assert "     2.500 s  Version" in str(failed.value)
    last = failed.traceback.filter(failed)[-1]
    assert str(last.path).endswith("test_call_faults.py")


async def test_in_real_time_texts_count_from_the_making_of_the_fake() -> None:
    fake = FakeCRI()
    await fake.call("Version", cri.VersionRequest())
    assert float(str(fake.calls()[0]).split()[0]) < 5
