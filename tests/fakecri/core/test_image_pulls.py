"""Images of the fake: their names, pulls, removal."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import now_s, refused

from fakecri import (
    FakeCRI,
    RegistryImage,
    registry_of,
)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "written", ["busybox", "docker.io/library/busybox:latest", "busybox:latest"]
)
async def test_image_names_are_one_after_normalisation_CRI_090(written: str) -> None:
    fake = FakeCRI(images=())
    await fake.call("PullImage", cri.PullImageRequest(image=cri.ImageSpec(image="busybox")))
    request = cri.ImageStatusRequest(image=cri.ImageSpec(image=written))
    answer: Any = await fake.call("ImageStatus", request)
    assert list(answer.image.repo_tags) == ["docker.io/library/busybox:latest"]
    assert answer.image.size > 0


@pytest.mark.virtual_time
async def test_pulls_take_their_time_and_can_fail_CRI_092_CRI_096() -> None:
    registry = registry_of(
        {"r.io/slow:1": RegistryImage(pull_s=30), "r.io/bad:1": RegistryImage(error="no disk")}
    )
    fake = FakeCRI(registry=registry)

    def pull(name: str) -> Awaitable[Any]:
        return fake.call("PullImage", cri.PullImageRequest(image=cri.ImageSpec(image=name)))

    answer = await pull("r.io/slow:1")
    assert now_s() == pytest.approx(30)
    request = cri.ImageStatusRequest(image=cri.ImageSpec(image=answer.image_ref))
    found: Any = await fake.call("ImageStatus", request)
    assert found.image.id == answer.image_ref
    assert await refused(pull("r.io/bad:1")) == ("UNKNOWN", "no disk")
    assert (await refused(pull("r.io/none:1")))[0] == "NOT_FOUND"
    assert "invalid reference format" in (await refused(pull("UPPER CASE")))[1]


@pytest.mark.virtual_time
async def test_removing_an_image_by_one_name_removes_all_CRI_095() -> None:
    content = RegistryImage(content="same")
    registry = registry_of({"r.io/a:1": content, "r.io/b:1": content})

    fake = FakeCRI(images=(), registry=registry)
    for name in ("r.io/a:1", "r.io/b:1"):
        await fake.call("PullImage", cri.PullImageRequest(image=cri.ImageSpec(image=name)))
    listed: Any = await fake.call("ListImages", cri.ListImagesRequest())
    assert [list(i.repo_tags) for i in listed.images] == [["r.io/a:1", "r.io/b:1"]]
    request = cri.RemoveImageRequest(image=cri.ImageSpec(image="r.io/b:1"))
    for _ in range(2):
        await fake.call("RemoveImage", request)
    listed = await fake.call("ListImages", cri.ListImagesRequest())
    assert not listed.images
