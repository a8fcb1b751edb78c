"""One runtime for the kubelet, made of those of its tenants."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri

from fakecri import FakeCRI
from fakecri.errors import CriError
from kubelet_conformance.harness.sharing.router import CriRouter
from simclock import Ids, Rng, run_virtual

SEEN = "kubernetes.io/config.seen"


def sandbox(namespace: str, uid: str) -> Any:
    return cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(name="web", uid=uid, namespace=namespace),
        labels={"io.kubernetes.pod.uid": uid},
        annotations={SEEN: uid},
    )


class World:
    """Two tenants, each with a running container."""

    def __init__(self) -> None:
        self.fakes = {
            name: FakeCRI(ids=Ids(Rng(seed)), images=("image",))
            for seed, name in enumerate(("one", "two"))
        }
        self.router = CriRouter(FakeCRI())
        for name, fake in self.fakes.items():
            self.router.enter(name, fake)
        self.boxes: dict[str, str] = {}
        self.containers: dict[str, str] = {}

    async def fill(self) -> None:
        for name in self.fakes:
            config = sandbox(name, f"uid of {name}")
            box: Any = await self.router.call(
                "RunPodSandbox", cri.RunPodSandboxRequest(config=config)
            )
            self.boxes[name] = box.pod_sandbox_id
            made: Any = await self.router.call(
                "CreateContainer",
                cri.CreateContainerRequest(
                    pod_sandbox_id=box.pod_sandbox_id,
                    config=cri.ContainerConfig(
                        metadata=cri.ContainerMetadata(name="main"),
                        image=cri.ImageSpec(image="image"),
                    ),
                    sandbox_config=config,
                ),
            )
            self.containers[name] = made.container_id

    async def listed(self, method: str, request: Any) -> int:
        answer: Any = await self.router.call(method, request)
        return len(answer.containers if method == "ListContainers" else answer.items)


def test_each_call_goes_to_the_runtime_of_its_pod_and_lists_show_all() -> None:
    async def main() -> None:
        world = World()
        await world.fill()
        await world.router.call(
            "StartContainer", cri.StartContainerRequest(container_id=world.containers["two"])
        )
        counts = {name: fake.count("StartContainer") for name, fake in world.fakes.items()}
        assert counts == {"one": 0, "two": 1}
        assert await world.listed("ListPodSandbox", cri.ListPodSandboxRequest()) == 2
        assert await world.listed("ListContainers", cri.ListContainersRequest()) == 2
        again = await world.listed("ListContainers", cri.ListContainersRequest())
        assert again == 2  # the answers of the fakes were not added to

    run_virtual(main)


def test_a_list_for_one_pod_is_asked_of_its_runtime_alone() -> None:
    async def main() -> None:
        world = World()
        await world.fill()
        labels = {"io.kubernetes.pod.uid": "uid of two"}
        for request in (
            cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(label_selector=labels)),
            cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(id=world.boxes["two"])),
        ):
            assert await world.listed("ListPodSandbox", request) == 1
        counts = {name: fake.count("ListPodSandbox") for name, fake in world.fakes.items()}
        assert counts == {"one": 0, "two": 2}

    run_virtual(main)


def test_a_question_for_an_image_is_of_the_pod_that_its_annotations_tell() -> None:
    async def main() -> None:
        world = World()
        await world.fill()
        for uid in ("uid of one", "nobody's"):
            image = cri.ImageSpec(image="image", annotations={SEEN: uid})
            await world.router.call("ImageStatus", cri.ImageStatusRequest(image=image))
        counts = {name: fake.count("ImageStatus") for name, fake in world.fakes.items()}
        assert counts == {"one": 1, "two": 0}

    run_virtual(main)


def test_what_is_about_no_pod_reaches_no_tenant() -> None:
    async def main() -> None:
        world = World()
        await world.router.call("Version", cri.VersionRequest())
        assert [fake.count() for fake in world.fakes.values()] == [0, 0]

    run_virtual(main)


def test_the_pods_of_a_tenant_that_has_left_are_gone() -> None:
    async def main() -> None:
        world = World()
        await world.fill()
        world.router.leave("one")
        assert await world.listed("ListPodSandbox", cri.ListPodSandboxRequest()) == 1
        request = cri.StopContainerRequest(container_id=world.containers["one"])
        await world.router.call("StopContainer", request)
        assert world.fakes["one"].count("StopContainer") == 0
        status = cri.ContainerStatusRequest(container_id=world.containers["one"])
        with pytest.raises(CriError, match="not found"):
            await world.router.call("ContainerStatus", status)

    run_virtual(main)


def test_a_tenant_may_leave_while_a_sandbox_or_container_of_it_is_made() -> None:
    """Whoever asks for it later still finds it."""

    async def main() -> None:
        world = World()
        await world.fill()
        fake = world.fakes["one"]
        fake.on("RunPodSandbox").answers_late(5)
        fake.on("CreateContainer").answers_late(5)
        config = sandbox("one", "another")
        made = asyncio.ensure_future(
            world.router.call("RunPodSandbox", cri.RunPodSandboxRequest(config=config))
        )
        request = cri.CreateContainerRequest(
            pod_sandbox_id=world.boxes["one"],
            config=cri.ContainerConfig(
                metadata=cri.ContainerMetadata(name="more"), image=cri.ImageSpec(image="image")
            ),
            sandbox_config=sandbox("one", "uid of one"),
        )
        created = asyncio.ensure_future(world.router.call("CreateContainer", request))
        await asyncio.sleep(1)
        world.router.leave("one")
        box: Any = await made
        container: Any = await created
        stop = cri.StopPodSandboxRequest(pod_sandbox_id=box.pod_sandbox_id)
        await world.router.call("StopPodSandbox", stop)
        remove = cri.RemoveContainerRequest(container_id=container.container_id)
        await world.router.call("RemoveContainer", remove)
        assert (fake.count("StopPodSandbox"), fake.count("RemoveContainer")) == (1, 1)

    run_virtual(main)
