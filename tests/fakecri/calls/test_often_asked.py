"""Lists and Status in bytes, statuses of objects: the same ones while nothing changes, and never
those of before."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubecri.v1 import api_pb2 as cri
from runtime_calls import container_config, pod_config

from fakecri import FakeCRI, FakeNode, RegistryImage, exits
from fakecri.core.objects import State

EVERY_BOX = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter())
EVERY = cri.ListContainersRequest(filter=cri.ContainerFilter())


def ready_boxes() -> cri.ListPodSandboxRequest:
    wanted = cri.PodSandboxStateValue(state=cri.SANDBOX_READY)
    return cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(state=wanted))


def in_state(state: State) -> cri.ListContainersRequest:
    wanted = cri.ContainerStateValue(state=state.value)
    return cri.ListContainersRequest(filter=cri.ContainerFilter(state=wanted))


class World:
    """A fake with pods; `do` is one thing that can happen to it."""

    def __init__(self) -> None:
        self.cri = FakeCRI(node=FakeNode())
        self.cri.behaves(exits(1, after_s=3), container="short")
        self.pods = 0
        self.cgroups = False

    async def call(self, method: str, **fields: Any) -> Any:
        request = getattr(cri, f"{method}Request")(**fields)
        try:
            return await self.cri.call(method, request, timeout_s=10)
        except grpc.RpcError as error:
            return error

    def config(self) -> cri.PodSandboxConfig:
        name = f"p{self.pods}"
        config = pod_config(name, labels={"pod": name})
        if self.cgroups:
            config.linux.cgroup_parent = f"/{name}"
        return config

    async def do(self, what: str, which: int) -> None:
        boxes, runs = list(self.cri.core.sandboxes), list(self.cri.core.containers)
        box = boxes[which % len(boxes)] if boxes else "none"
        run = runs[which % len(runs)] if runs else "none"
        match what:
            case "run":
                self.pods, self.cgroups = self.pods + 1, which % 2 == 0
                await self.call("RunPodSandbox", config=self.config())
            case "create":
                await self._create(box, which)
            case "start" | "remove":
                await self.call(f"{what.capitalize()}Container", container_id=run)
            case "stop":
                await self.call("StopContainer", container_id=run, timeout=0)
            case "stop box" | "remove box":
                method = "StopPodSandbox" if what == "stop box" else "RemovePodSandbox"
                await self.call(method, pod_sandbox_id=box)
            case "limit":
                limits = cri.LinuxContainerResources(memory_limit_in_bytes=1000 * (which + 1))
                await self.call("UpdateContainerResources", container_id=run, linux=limits)
            case "tag" | "no image":
                self._change_images(what, which)
            case "wait":
                await self.cri.clock.sleep(1 + which % 3)
            case _:
                self._from_outside(what)

    async def _create(self, box: str, which: int) -> None:
        config = container_config(("short", "long")[which % 2], which)
        await self.call(
            "CreateContainer", pod_sandbox_id=box, config=config, sandbox_config=self.config()
        )

    def _change_images(self, what: str, which: int) -> None:
        images = self.cri.images
        for image in list(images.images.values())[which % 2 :]:
            if what == "no image":
                images.remove(image.id)
            else:
                images.add(f"localhost/tag{which}:1", RegistryImage(content=image.tags[0]))

    def _from_outside(self, what: str) -> None:
        world = self.cri
        try:
            match what:
                case "kill":
                    world.kill()
                case "drop":
                    world.drop()
                case "kill box":
                    world.kill_sandbox()
                case "reboot":
                    world.reboot()
                case "lose state":
                    world.crash(loses_state=True)
                    world.restart()
                case "lose exits":
                    with world.down(lost_exits=True):
                        pass
                case "oom":
                    world.oom()
        except LookupError:
            return  # there was nothing it could happen to

    async def check(self) -> None:
        """Lists tell of what there is, in order, with its states; in bytes as in messages."""
        boxes, runs = self.cri.core.sandboxes.values(), self.cri.core.containers.values()
        ready = [s.id for s in boxes if s.ready]
        assert [(i.id, i.state) for i in (await self.boxes(EVERY_BOX)).items] == [
            (s.id, cri.SANDBOX_READY if s.ready else cri.SANDBOX_NOTREADY) for s in boxes
        ]
        assert [i.id for i in (await self.boxes(ready_boxes())).items] == ready
        everything = [(c.id, c.state.value) for c in runs]
        assert [(i.id, i.state) for i in (await self.runs(EVERY)).containers] == everything
        for state in State:
            listed = (await self.runs(in_state(state))).containers
            assert [i.id for i in listed] == [c.id for c in runs if c.state is state]
        for sandbox in boxes:
            await self.check_status("PodSandboxStatus", sandbox, pod_sandbox_id=sandbox.id)
        for container in runs:
            await self.check_status("ContainerStatus", container.shown, container_id=container.id)

    async def check_status(self, method: str, keeper: Any, **which: Any) -> None:
        """What was kept is what would be told without it; callers may change what they get."""
        kept = await self.call(method, **which)
        keeper.status = None
        made = await self.call(method, **which)
        assert kept == made
        made.status.labels["of"] = "the caller"
        assert await self.call(method, **which) == kept

    async def boxes(self, request: cri.ListPodSandboxRequest) -> cri.ListPodSandboxResponse:
        data = await self.cri.call_bytes("ListPodSandbox", request)
        assert await self.cri.call_bytes("ListPodSandbox", request) is data
        answer = cri.ListPodSandboxResponse.FromString(data)
        assert await self.cri.call("ListPodSandbox", request) == answer
        assert all(call.response == answer for call in self.cri.calls("ListPodSandbox")[-3:])
        return answer

    async def runs(self, request: cri.ListContainersRequest) -> cri.ListContainersResponse:
        data = await self.cri.call_bytes("ListContainers", request)
        assert await self.cri.call_bytes("ListContainers", request) is data
        answer = cri.ListContainersResponse.FromString(data)
        assert await self.cri.call("ListContainers", request) == answer
        assert all(call.response == answer for call in self.cri.calls("ListContainers")[-3:])
        return answer


CALLS = ("run", "create", "start", "stop", "remove", "stop box", "remove box", "limit", "wait")
FROM_OUTSIDE = (
    "kill",
    "drop",
    "kill box",
    "reboot",
    "lose state",
    "lose exits",
    "oom",
    "tag",
    "no image",
)
STEPS = st.lists(
    st.tuples(st.sampled_from(CALLS + CALLS + FROM_OUTSIDE), st.integers(0, 7)), max_size=30
)
BEGIN = (("run", 0), ("create", 0), ("create", 1), ("start", 0), ("start", 1))


@settings(max_examples=60, deadline=None)
@given(STEPS)
@pytest.mark.virtual_time
async def test_whatever_happens_lists_tell_of_it_CRI_080(steps: list[tuple[str, int]]) -> None:
    world = World()
    for what, which in (*BEGIN, *steps):
        await world.do(what, which)
        await world.check()


@pytest.mark.virtual_time
@pytest.mark.parametrize("what", [*CALLS[1:], *FROM_OUTSIDE])
async def test_each_of_these_alone_shows(what: str) -> None:
    world = World()
    for step in (*BEGIN, ("create", 2)):
        await world.do(*step)
    await world.check()
    before = world.cri.core.containers.answer(EVERY.SerializeToString())
    assert before is not None
    await world.do(what, 2)
    await world.check()


async def status_of(fake: FakeCRI) -> dict[str, bool]:
    answer = cri.StatusResponse.FromString(await fake.call_bytes("Status", cri.StatusRequest()))
    return {condition.type: condition.status for condition in answer.status.conditions}


@pytest.mark.virtual_time
async def test_status_in_bytes_follows_the_network_CRI_130() -> None:
    fake = FakeCRI()
    data = await fake.call_bytes("Status", cri.StatusRequest())
    assert await fake.call_bytes("Status", cri.StatusRequest()) is data
    with fake.without_network():
        assert not (await status_of(fake))["NetworkReady"]
    assert (await status_of(fake))["NetworkReady"]
    verbose = cri.StatusRequest(verbose=True)
    answer = cri.StatusResponse.FromString(await fake.call_bytes("Status", verbose))
    assert "config" in answer.info


@pytest.mark.virtual_time
async def test_rules_and_outages_hold_for_bytes_too() -> None:
    fake = FakeCRI()
    fake.on("ListContainers", nth=2).fails("UNAVAILABLE", "no")
    await fake.call_bytes("ListContainers", EVERY)
    with pytest.raises(grpc.RpcError) as caught:
        await fake.call_bytes("ListContainers", EVERY)
    assert caught.value.details() == "no"
    with fake.down(), pytest.raises(grpc.RpcError):
        await fake.call_bytes("ListPodSandbox", EVERY_BOX)
    methods = [(call.method, call.error and call.error[0]) for call in fake.calls()]
    assert methods == [
        ("ListContainers", None),
        ("ListContainers", "UNAVAILABLE"),
        ("ListPodSandbox", "UNAVAILABLE"),
    ]


@pytest.mark.virtual_time
async def test_methods_without_kept_answers_come_as_bytes_too() -> None:
    fake = FakeCRI()
    data = await fake.call_bytes("Version", cri.VersionRequest())
    assert cri.VersionResponse.FromString(data).runtime_name == "fakecri"
    assert fake.count("Version") == 1


@pytest.mark.virtual_time
async def test_a_request_of_another_method_is_refused() -> None:
    fake = FakeCRI()
    with pytest.raises(TypeError, match="ListContainers: wanted a ListContainersRequest"):
        await fake.call_bytes("ListContainers", EVERY_BOX)
    assert fake.count() == 0


@pytest.mark.virtual_time
async def test_an_answer_of_as_of_now_stays_while_the_world_goes_on() -> None:
    world = World()
    await world.do("run", 1)
    then: Any = world.cri._programming.as_of_now("ListPodSandbox")
    await world.do("remove box", 0)
    assert (len(then(EVERY_BOX).items), len((await world.boxes(EVERY_BOX)).items)) == (1, 0)
