"""Images as volumes and pinned images: what only newer containerds have (CRI-093, CRI-099)."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from criapi.v1 import api_pb2 as cri

from fakecri import FakeCRI
from fakecri.core.images import RegistryImage

POD = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="web", uid="u"))
BUSYBOX = "localhost/busybox:1"


async def created(fake: FakeCRI, mount: cri.Mount) -> Any:
    made = await fake.call("RunPodSandbox", cri.RunPodSandboxRequest(config=POD))
    config = cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name="c"), image=cri.ImageSpec(image=BUSYBOX), mounts=[mount]
    )
    request = cri.CreateContainerRequest(
        pod_sandbox_id=made.pod_sandbox_id, config=config, sandbox_config=POD
    )
    container = await fake.call("CreateContainer", request)
    request = cri.ContainerStatusRequest(container_id=container.container_id)
    return (await fake.call("ContainerStatus", request)).status


def volume(sub_path: str) -> cri.Mount:
    image = cri.ImageSpec(image=BUSYBOX)
    return cri.Mount(container_path="/v", image=image, image_sub_path=sub_path, readonly=True)


@pytest.mark.virtual_time
async def test_the_status_tells_the_digest_of_a_mounted_image_CRI_084() -> None:
    status = await created(FakeCRI(), volume(""))
    assert status.mounts[0].image.image == BUSYBOX
    assert status.mounts[0].image.image_ref == status.image_ref


@pytest.mark.virtual_time
@pytest.mark.parametrize("path", ["nono", "etc/nono", "../etc", "model"])
async def test_a_sub_path_that_is_not_in_the_image_fails_the_create_CRI_099(path: str) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        await created(FakeCRI(), volume(path))
    assert failure.value.code() is grpc.StatusCode.UNKNOWN
    assert failure.value.details() == (
        f'failed to mount image volume: there is no "{path}" in image "{BUSYBOX}"'
    )


@pytest.mark.virtual_time
@pytest.mark.parametrize("path", ["etc", "/etc/", ".", "bin/busybox", "model", "model/v1"])
async def test_sub_paths_that_are_there_CRI_099(path: str) -> None:
    fake = FakeCRI(images=())
    fake.images.add(BUSYBOX, RegistryImage(paths=("model/v1/weights",)))
    assert (await created(fake, volume(path))).mounts[0].image_sub_path == path


@pytest.mark.virtual_time
async def test_the_sandbox_image_alone_is_pinned_CRI_093() -> None:
    answer: Any = await FakeCRI().call("ListImages", cri.ListImagesRequest())
    pinned = {image.repo_tags[0]: image.pinned for image in answer.images}
    assert pinned == {
        "localhost/busybox:1": False,
        "localhost/busybox:2": False,
        "localhost/pause:1": True,
    }
