"""Image volumes in a sync (LIFE-130 step 5, CRI-099)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from loops import virtual_loop
from pods import IMAGE, make_pod
from runtime_doubles import IMAGE_ID, Events, Failure, Probes, ScriptedTarget, record, status

from refkubelet.cri.client import CriClient
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.manager import RuntimeManager
from refkubelet.kuberuntime.results import PodSyncResult
from simclock import Ids, Rng

pytestmark = pytest.mark.virtual_time

EMPTY = status(sandboxes=())
DATA = "reg.io/data:1"
VOLUME = {"name": "data", "image": {"reference": DATA, "pullPolicy": "IfNotPresent"}}
MOUNT = {"name": "data", "mountPath": "data", "subPath": "a/b"}


class Bench:
    def __init__(self, root: Path, **answers: Any) -> None:
        self.target = ScriptedTarget(**answers)
        self.events = Events()
        options = RuntimeOptions(
            root_dir=root / "kubelet", pod_logs_dir=root / "logs", container_logs_dir=None
        )
        deps = RuntimeDeps(virtual_loop().clock, Ids(Rng(0)), self.events)
        self.manager = RuntimeManager(CriClient(self.target), deps, options)

    async def sync(self, pod: Any, state: Any) -> PodSyncResult:
        return await self.manager.sync_pod(pod, state, Probes())

    def images_asked(self, method: str) -> list[str]:
        return [request.image.image for request in self.target.requests(method)]


def only(image: str) -> Callable[[Any], Any]:
    """A runtime that has that image alone, and cannot pull."""

    def look(request: Any) -> Any:
        found = cri.Image(id=IMAGE_ID, size=5) if request.image.image == image else None
        return cri.ImageStatusResponse(image=found)

    return look


REFUSED = Failure(grpc.StatusCode.UNKNOWN, "no")


async def test_the_mount_of_an_image_LIFE_130_CRI_099(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    notes = {"annotations": {"k": "v"}}
    pod = make_pod({"name": "main", "volumeMounts": [MOUNT]}, meta=notes, volumes=[VOLUME])
    assert (await bench.sync(pod, EMPTY)).ok
    (request,) = bench.target.requests("CreateContainer")
    assert request.config.mounts[0] == cri.Mount(
        container_path="/data",
        readonly=True,
        image=cri.ImageSpec(image=IMAGE_ID, user_specified_image=DATA, annotations={"k": "v"}),
        image_sub_path="a/b",
    )
    methods = bench.target.methods()
    assert methods.index("PodSandboxStatus") < methods.index("ImageStatus")
    assert bench.images_asked("ImageStatus")[0] == DATA
    assert next(seen for seen in bench.events.seen if seen[1] == "Pulled") == (
        "Normal",
        "Pulled",
        f'Container image "{DATA}" already present on machine and can be accessed by the pod',
        "",
    )


async def test_a_sub_path_may_not_leave_the_image(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    mount = {**MOUNT, "subPath": "../x"}
    pod = make_pod({"name": "main", "volumeMounts": [mount]}, volumes=[VOLUME])
    result = await bench.sync(pod, EMPTY)
    assert [e.reason for e in result.errors] == ["CreateContainerConfigError"]


async def test_only_containers_that_mount_it_fail_LIFE_130(tmp_path: Path) -> None:
    """The last failing volume gives the reason; each one is an event of the container."""

    bench = Bench(tmp_path, ImageStatus=only(IMAGE), PullImage=REFUSED)
    other = {"name": "more", "image": {"reference": "reg.io/more:1", "pullPolicy": "Never"}}
    mounts = [MOUNT, {"name": "more", "mountPath": "/more"}]
    containers = ({"name": "main", "volumeMounts": mounts}, "fine")
    result = await bench.sync(make_pod(*containers, volumes=[VOLUME, other]), EMPTY)
    assert [(e.target, e.reason) for e in result.errors] == [("main", "ErrImageNeverPull")]
    assert [r.config.metadata.name for r in bench.target.requests("CreateContainer")] == ["fine"]
    about_main = [m for _, _, m, path in bench.events.seen if path == "spec.containers{main}"]
    assert about_main == ["Error: ErrImagePull", "Error: ErrImageNeverPull"]
    assert bench.manager.reason_cache.get("uid-web", "main") == (
        "ErrImageNeverPull",
        'Container image "reg.io/more:1" is not present with pull policy of Never',
    )


async def test_the_images_are_looked_at_in_every_sync(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    pod = make_pod({"name": "main", "volumeMounts": [MOUNT]}, volumes=[VOLUME])
    assert (await bench.sync(pod, status(record(pod, "main")))).ok
    assert bench.target.methods() == ["ImageStatus"]
    plain = make_pod("main")
    assert (await bench.sync(plain, status(record(plain, "main")))).ok
    assert bench.target.methods() == ["ImageStatus"]
