"""Which pods may use an image that is on the node: BACK-202, BACK-203, BACK-210..212."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from image_bench import ABSENT, PULLED, Bench, login, only
from kubecri.v1 import api_pb2 as cri
from pods import IMAGE
from runtime_doubles import IMAGE_ID, Slow

from refkubelet.config.schema.image_policies import ALWAYS_VERIFY, VerificationPolicy
from refkubelet.kuberuntime.common.runtime_options import ImageOptions

pytestmark = pytest.mark.virtual_time


class Registry:
    """A runtime that has the image once it was pulled; `open_to`: users that may."""

    def __init__(self, *open_to: str) -> None:
        self.open_to = open_to
        self.there = False

    def look(self, request: Any) -> Any:
        image = cri.Image(id=IMAGE_ID, size=5, repo_tags=[IMAGE])
        return cri.ImageStatusResponse(image=image if self.there else None)

    def pull(self, request: Any) -> Any:
        answer = only(*self.open_to)(request)
        self.there = self.there or answer is PULLED
        return answer

    def answers(self) -> dict[str, Any]:
        images = cri.ListImagesResponse(images=[cri.Image(id=IMAGE_ID, size=5, repo_tags=[IMAGE])])
        return {"ImageStatus": self.look, "PullImage": self.pull, "ListImages": images}


async def test_who_may_use_a_pulled_image_BACK_210(tmp_path: Path) -> None:
    registry = Registry("ann")

    bench = Bench(tmp_path, **registry.answers())
    await bench.ensure(login("ann"), uid="owner")
    await bench.ensure(login("ann"), uid="same")
    await bench.ensure(login("ann", name="copy"), uid="equal")
    await bench.ensure(login("ann", uid="uid-ann", password="new"), uid="changed")
    assert len(bench.target.requests("PullImage")) == 1
    assert (await bench.reason(uid="guest"))[0] == "ErrImagePull"
    assert (await bench.reason(login("bob"), uid="bob"))[0] == "ErrImagePull"
    assert (await bench.reason(uid="quiet", policy="Never"))[0] == "ErrImageNeverPull"
    assert bench.users() == ["ann", "", "bob"]


async def test_an_anonymous_pull_is_for_every_pod_BACK_210(tmp_path: Path) -> None:
    registry = Registry("")

    bench = Bench(tmp_path, **registry.answers())
    await bench.ensure(uid="a")
    await bench.ensure(login("bob"), uid="b")
    assert bench.users() == [""]


async def test_records_outlive_the_kubelet_BACK_211(tmp_path: Path) -> None:
    registry = Registry("ann")

    bench = Bench(tmp_path, **registry.answers())
    await bench.ensure(login("ann"))
    bench.restart()
    await bench.ensure(login("ann"))
    assert (await bench.reason(uid="guest"))[0] == "ErrImagePull"
    assert list((tmp_path / "image_manager" / "pulling").iterdir()) == []


async def test_a_pull_cut_off_by_a_crash_must_be_verified_BACK_211(tmp_path: Path) -> None:
    """The note of the pull is found again, the image is there: no pod may use it unverified."""
    registry = Registry("ann")

    bench = Bench(tmp_path, **registry.answers())
    bench.images.access.begin(IMAGE)  # and then the kubelet is killed
    registry.there = True
    bench.restart()
    assert (await bench.reason(uid="guest"))[0] == "ErrImagePull"
    assert "ListImages" in bench.target.methods()
    await bench.ensure(login("ann"), uid="owner")
    await bench.ensure(login("ann"), uid="again")
    assert bench.users() == ["", "ann"]


async def test_a_kubelet_that_ends_leaves_its_notes_BACK_211(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ImageStatus=ABSENT, PullImage=Slow(3600))
    task = asyncio.ensure_future(bench.ensure())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    (note,) = (tmp_path / "image_manager" / "pulling").iterdir()
    assert json.loads(note.read_text())["image"] == IMAGE


async def test_a_preloaded_image_is_for_every_pod_BACK_210(tmp_path: Path) -> None:
    bench = Bench(tmp_path, PullImage=only())
    assert await bench.ensure() == IMAGE_ID
    assert bench.users() == []
    text = f'Container image "{IMAGE}" already present on machine and can be accessed by the pod'
    assert bench.events.seen == [("Normal", "Pulled", text, "")]


async def test_a_preloaded_image_is_verified_where_all_are_BACK_210(tmp_path: Path) -> None:
    options = ImageOptions(verification=VerificationPolicy(ALWAYS_VERIFY))
    bench = Bench(tmp_path, options, PullImage=only())
    assert (await bench.reason())[0] == "ErrImagePull"


async def test_without_the_gate_every_pod_may_use_what_is_there_BACK_210_BACK_202(
    tmp_path: Path,
) -> None:
    registry = Registry("ann")

    bench = Bench(tmp_path, ImageOptions(verification=None), **registry.answers())
    await bench.ensure(login("ann"), uid="owner")
    await bench.ensure(uid="guest")
    text = f'Container image "{IMAGE}" already present on machine'
    assert bench.events.seen[-1] == ("Normal", "Pulled", text, "")
    assert not (tmp_path / "image_manager").exists()


async def test_other_ids_from_pull_and_look_count_as_preloaded_BACK_212(tmp_path: Path) -> None:
    registry = Registry("ann")

    def pull(request: Any) -> Any:
        answer = registry.pull(request)
        return cri.PullImageResponse(image_ref="repo@sha256:9") if answer is PULLED else answer

    bench = Bench(tmp_path, **{**registry.answers(), "PullImage": pull})
    await bench.ensure(login("ann"), uid="owner")
    await bench.ensure(uid="guest")
    assert bench.users() == ["ann"]


async def test_pruned_records_make_an_image_preloaded(tmp_path: Path) -> None:
    registry = Registry("ann")

    bench = Bench(tmp_path, **registry.answers())
    await bench.ensure(login("ann"))
    bench.images.access.prune([], before_ns=bench.clock.wall_ns())  # updated since: stays
    await asyncio.sleep(2)
    bench.images.access.prune([IMAGE_ID], before_ns=bench.clock.wall_ns())
    assert (await bench.reason(uid="guest"))[0] == "ErrImagePull"
    bench.images.access.prune([], before_ns=bench.clock.wall_ns())
    await bench.ensure(uid="other")


async def test_notes_that_cannot_be_written_stop_the_pull_BACK_211(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ImageStatus=ABSENT, PullImage=PULLED)
    (tmp_path / "image_manager").write_text("a file where the directory should be")
    reason, message = await bench.reason()
    assert reason.startswith("failed to record image pull intent: ")
    assert message.startswith(f'Failed to record image pull intent for container image "{IMAGE}": ')
    assert bench.users() == []


async def test_a_broken_record_forces_a_pull(tmp_path: Path) -> None:
    registry = Registry("")

    bench = Bench(tmp_path, **registry.answers())
    await bench.ensure(uid="a")
    (record,) = (tmp_path / "image_manager" / "pulled").iterdir()
    record.write_text("{}")
    bench.restart()
    await bench.ensure(uid="b")
    assert bench.users() == ["", ""]
    bench.restart()
    await bench.ensure(uid="c")  # the pull wrote it anew
    assert bench.users() == ["", ""]


async def test_an_answer_without_reference_is_a_failed_pull_BACK_203(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ImageStatus=ABSENT, PullImage=cri.PullImageResponse())
    assert await bench.reason() == (
        "ErrImagePull",
        f'imageRef of image "{IMAGE}" is not set',
    )


async def test_an_image_without_size_BACK_203(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ImageStatus=cri.ImageStatusResponse(image=cri.Image(id="x")))
    text = f'Failed to inspect image "": Id or size of image "{IMAGE}" is not set'
    assert await bench.reason() == ("ImageInspectError", text)
