"""Images as volumes and pinned images: what only newer containerds have (CRI-093, CRI-099)."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import IMAGE, created, run_exec, started, status

from fakecri import FakeCRI
from fakecri.core.image_store.images import RegistryImage


async def status_of(fake: FakeCRI, mount: cri.Mount) -> cri.ContainerStatus:
    """Of a container with that mount."""
    return await status(fake, await created(fake, mounts=[mount]))


def volume(sub_path: str) -> cri.Mount:
    image = cri.ImageSpec(image=IMAGE)
    return cri.Mount(container_path="/v", image=image, image_sub_path=sub_path, readonly=True)


@pytest.mark.virtual_time
async def test_the_status_tells_the_id_of_a_mounted_image_CRI_099() -> None:
    status = await status_of(FakeCRI(), volume(""))
    assert status.mounts[0].image.image == IMAGE
    assert status.mounts[0].image.image_ref == status.image_id


@pytest.mark.virtual_time
@pytest.mark.parametrize("path", ["nono", "etc/nono", "../etc", "model"])
async def test_a_sub_path_that_is_not_in_the_image_fails_the_create_CRI_099(path: str) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        await status_of(FakeCRI(), volume(path))
    assert failure.value.code() is grpc.StatusCode.UNKNOWN
    assert failure.value.details() == (
        f'failed to mount image volume: there is no "{path}" in image "{IMAGE}"'
    )


@pytest.mark.virtual_time
@pytest.mark.parametrize("path", ["etc", "/etc/", ".", "bin/busybox", "model", "model/v1"])
async def test_sub_paths_that_are_there_CRI_099(path: str) -> None:
    fake = FakeCRI(images=())
    fake.images.add(IMAGE, RegistryImage(paths=("model/v1/weights",)))
    assert (await status_of(fake, volume(path))).mounts[0].image_sub_path == path


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("sub_path", "shown"),
    [
        ("", "bin\netc\nmodel\nroot\ntmp\nvar\n"),
        ("etc", "group\npasswd\n"),
        ("model", "v1\n"),
        ("model/v1/weights", "/v\n"),
    ],
)
async def test_a_volume_shows_what_is_in_the_image_CRI_099(sub_path: str, shown: str) -> None:
    fake = FakeCRI(images=())
    fake.images.add(IMAGE, RegistryImage(paths=("model/v1/weights",)))
    container = await started(fake, mounts=[volume(sub_path)])
    assert (await run_exec(fake, container, "ls", "/v")).stdout.decode() == shown


@pytest.mark.virtual_time
async def test_the_sandbox_image_alone_is_pinned_CRI_093() -> None:
    answer: Any = await FakeCRI().call("ListImages", cri.ListImagesRequest())
    pinned = {image.repo_tags[0]: image.pinned for image in answer.images}
    assert pinned == {
        "localhost/busybox:1": False,
        "localhost/busybox:2": False,
        "localhost/pause:1": True,
    }
