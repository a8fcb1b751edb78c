"""The images in the status of the Node."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock

import pytest
from loops import virtual_loop

from refkubelet.cri.records import ImageRecord
from refkubelet.node.images import NodeImages, images_shown

pytestmark = pytest.mark.virtual_time


def image(number: int, size_bytes: int, **more: Any) -> ImageRecord:
    return ImageRecord(f"sha256:{number}", size_bytes, **more)


def test_images_of_the_node_NODE_035() -> None:
    tags, digests = ("a:1", "a:2", "a:3", "a:4"), ("a@sha256:1", "a@sha256:2")
    big = image(1, 9, repo_tags=tags, repo_digests=digests)
    shown = images_shown([image(2, 3), image(3, 3), big], -1)
    assert shown[0] == {"names": [*digests, "a:1", "a:2", "a:3"], "sizeBytes": 9}
    assert [row["sizeBytes"] for row in shown] == [9, 3, 3]
    assert images_shown([image(2, 3, repo_tags=("x",)), image(3, 3), big], 2)[1]["names"] == []
    assert images_shown([big], 0) == []


async def test_a_runtime_that_lists_no_images_changes_nothing_NODE_035() -> None:
    answers: list[Any] = [(image(1, 9),), RuntimeError("gone"), (image(1, 9), image(2, 3))]
    images = NodeImages(AsyncMock(side_effect=answers), -1, virtual_loop().clock)
    assert images.fields() == {}
    task = asyncio.create_task(images.run())
    numbers = []
    for _ in range(3):
        await asyncio.sleep(1)
        numbers.append(len(images.fields()["images"]))
        await asyncio.sleep(29)
    assert numbers == [1, 1, 2]
    task.cancel()
