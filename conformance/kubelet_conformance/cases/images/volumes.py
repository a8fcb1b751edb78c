"""Images as volumes: pulled before the containers start, and mounted by the runtime."""

from typing import Any

from kubelet_conformance.cases.images.seen import (
    error_of,
    expect_about,
    pulls,
    wait_event,
    wait_running,
    wait_waiting,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import Exec, PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS = Feature.API, Feature.STATUS
NEEDS = [STATUS, Feature.REGISTRY, Feature.IMAGE_VOLUMES]
MOUNTED = [{"name": "data", "mountPath": "/data"}]


def with_volume(
    image: str, *others: Any, policy: str = "IfNotPresent", beside: bool = False, **fields: Any
) -> PodPlan:
    """A pod with a container that mounts the image at /data, and the containers `others` that do
    not. `beside`: with an emptyDir before that volume, which is mounted after it."""
    volume = {"name": "data", "image": {"reference": image, "pullPolicy": policy}}
    scratch = [{"name": "scratch", "emptyDir": {}}] if beside else []
    mounts = [*MOUNTED, *({"name": v["name"], "mountPath": "/scratch"} for v in scratch)]
    main = container("main", volumeMounts=mounts, **fields)
    return pod("web", main, *others, volumes=[*scratch, volume])


def mount_of(node: Node, path: str) -> Any:
    """The mount at that path in the container's request."""
    mounts = node.calls("CreateContainer", pod="web")[0].request.config.mounts
    mounts_there = [mount for mount in mounts if mount.container_path == path]
    expect_equal(node, len(mounts_there), 1, f"mounts at {path}")
    return mounts_there[0]


@conformance(
    id="image-volume",
    rules=["LIFE-130", "CRI-099", "LIFE-130.5"],
    needs=[API, *NEEDS],
    since="1.35",
)
async def an_image_can_be_mounted(node: Node) -> None:
    """The image of a volume is pulled with the pod's sandbox configuration, and CreateContainer
    asks the runtime to mount it, read-only and without a host path, whatever volumes are before and
    after it."""
    registry = await node.runtime.registry()
    await registry.add("data:1")
    image = f"{registry.open_host}/data:1"
    look = Exec(("test", "-e", "/data/bin/busybox"))
    plan = with_volume(image, beside=True, hooks={"postStart": look})
    await node.api.create_pod(plan)
    await wait_running(node, "web")
    mount = mount_of(node, "/data")
    pulled = pulls(node, image)[0].response.image_ref
    named = (mount.image.image, mount.image.user_specified_image)
    expect_equal(node, named, (pulled, image), "image of the mount")
    expect_equal(node, (mount.host_path, mount.readonly), ("", True), "host path, readonly")
    beside = mount_of(node, "/scratch")
    expect(node, beside.host_path and not beside.readonly, "the mount after it", beside)
    event = await wait_event(node, "web", "Pulling", f'Pulling image "{image}"')
    expect_equal(node, event["involvedObject"].get("fieldPath"), None, "field of the event")


@conformance(
    id="image-volume-missing", rules=["LIFE-130", "BACK-204"], needs=[API, *NEEDS], since="1.35"
)
async def a_missing_image_fails_the_containers_that_mount_it(node: Node) -> None:
    """A container that mounts an image that cannot be pulled waits with that reason; a container
    that does not mount it runs."""
    registry = await node.runtime.registry()
    image = f"{registry.open_host}/data:1"
    await node.api.create_pod(with_volume(image, container("fine")))
    await wait_running(node, "web", "fine")
    message = await wait_waiting(node, "web", "ErrImagePull")
    expect_equal(node, message, error_of(pulls(node, image)[0]), "message")
    expect_about(node, await wait_event(node, "web", "Failed", "Error: ErrImagePull"), "Warning")
    await registry.add("data:1")
    await node.run_until(
        lambda: node.running("web"),
        within_s=40 + 2 * limits.SYNC_ERROR_S,
        what="the container runs once the image is there",
    )


@conformance(id="image-volume-never", rules=["LIFE-130", "BACK-202"], needs=NEEDS, since="1.35")
async def a_volume_has_a_pull_policy_of_its_own(node: Node) -> None:
    """With policy Never the image of a volume is not pulled, whatever the policies of the
    containers."""
    registry = await node.runtime.registry()
    await registry.add("data:1")
    image = f"{registry.open_host}/data:1"
    await node.apply_static(with_volume(image, policy="Never"))
    text = f'Container image "{image}" is not present with pull policy of Never'
    expect_equal(node, await wait_waiting(node, "web", "ErrImageNeverPull"), text, "message")
    expect(node, not pulls(node, image), "no pull", pulls(node, image))


@conformance(
    id="image-volume-beside-missing", rules=["LIFE-130", "BACK-204"], needs=NEEDS, since="1.35"
)
async def one_missing_image_keeps_no_other_from_being_mounted(node: Node) -> None:
    """Of two volumes with images the first of which cannot be pulled the second is mounted all the
    same, in a container that wants no other."""
    registry = await node.runtime.registry()
    await registry.add("there:1")
    names = ("missing", "there")
    images = {name: f"{registry.open_host}/{name}:1" for name in names}
    volumes = [{"name": name, "image": {"reference": images[name]}} for name in names]
    users = [container(name, volumeMounts=[{"name": name, "mountPath": "/data"}]) for name in names]
    await node.apply_static(pod("web", *users, volumes=volumes))
    await wait_running(node, "web", "there")
    made = [call.container for call in node.calls("CreateContainer", pod="web")]
    expect_equal(node, made, ["there"], "containers made")


@conformance(
    id="image-volume-two-missing", rules=["LIFE-130", "BACK-204"], needs=NEEDS, since="1.35"
)
async def of_two_missing_images_the_last_is_told(node: Node) -> None:
    """A container that mounts two images that are both missing waits for the reason of the last
    one."""
    registry = await node.runtime.registry()
    images = {name: f"{registry.open_host}/{name}:1" for name in ("pulled", "never")}
    policies = {"pulled": "IfNotPresent", "never": "Never"}
    volumes = [
        {"name": name, "image": {"reference": image, "pullPolicy": policies[name]}}
        for name, image in images.items()
    ]
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in images]
    await node.apply_static(pod("web", container("main", volumeMounts=mounts), volumes=volumes))
    text = f'Container image "{images["never"]}" is not present with pull policy of Never'
    expect_equal(node, await wait_waiting(node, "web", "ErrImageNeverPull"), text, "message")
