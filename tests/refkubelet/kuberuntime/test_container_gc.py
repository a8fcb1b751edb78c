"""Garbage collection and the deletor (GC-001..011, GC-020), removal with logs (GC-005)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubecri.v1 import api_pb2 as cri
from loops import virtual_loop
from pods import IMAGE, make_pod
from runtime_doubles import Events, Failure, ScriptedTarget, record, status

from kubeobjects.structs import replace
from refkubelet.cri.client import CriClient
from refkubelet.cri.labels import POD_NAME, POD_NAMESPACE, POD_UID
from refkubelet.cri.records import (
    ContainerState,
    ListedContainer,
    ListedSandbox,
    SandboxState,
)
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.decisions.gc_choice import (
    GcOptions,
    dead_to_delete,
    evictable,
    over_limit,
    removable_containers,
    removable_sandboxes,
)
from refkubelet.kuberuntime.gc import (
    CONTAINER_GC_PERIOD_S,
    DELETOR_SLOTS,
    ContainerDeletor,
    ContainerGC,
    GarbageCollection,
)
from refkubelet.kuberuntime.removal import LogRemovalError, remove_container
from simclock import Clock, Ids, RealClock, Rng

pytestmark = pytest.mark.virtual_time

S = 1_000_000_000


def listed(name: str, state: str, created_s: int, uid: str = "u") -> ListedContainer:
    return ListedContainer(
        f"{uid}-{name}-{created_s}",
        name,
        ContainerState(state),
        created_at_ns=created_s * S,
        labels={POD_UID: uid},
    )


def dead(name: str, created_s: int, uid: str = "u") -> ListedContainer:
    return listed(name, "exited", created_s, uid)


def test_running_and_young_containers_are_no_candidates_GC_002() -> None:
    everyone = [
        listed("a", "running", 1),
        listed("b", "created", 2),
        listed("c", "exited", 3),
        listed("d", "unknown", 4),
        listed("e", "exited", 9),
    ]
    found = evictable(everyone, now_ns=10 * S, min_age_s=5)
    assert [c.name for c in found] == ["d", "c", "b"]


def test_newest_per_unit_stays_GC_003() -> None:
    gone = over_limit([dead("a", 3), dead("b", 2), dead("a", 1)], GcOptions())
    assert [c.id for c in gone] == ["u-a-1"]


def test_total_limit_goes_across_units_oldest_first_GC_003() -> None:
    """GC-003.3."""
    candidates = [dead("a", 4), dead("b", 3), dead("a", 2), dead("b", 1)]
    limits = GcOptions(max_per_pod_container=2, max_containers=1)
    assert [c.id for c in over_limit(candidates, limits)] == ["u-b-1", "u-a-2", "u-b-3"]


def test_the_oldest_are_removed_first_GC_003() -> None:
    everyone = [
        dead(n, at, uid) for uid in ("gone", "here") for n, at in (("a", 1), ("a", 3), ("a", 2))
    ]
    found = removable_containers(everyone, 9 * S, GcOptions(), lambda uid: uid == "gone")
    assert [c.id for c in found] == ["gone-a-1", "gone-a-2", "gone-a-3", "here-a-1", "here-a-2"]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 99)), unique=True, max_size=12),
    st.integers(0, 3),
    st.integers(-1, 5),
)
def test_limits_hold_and_the_newest_of_a_unit_goes_last(
    items: list[tuple[str, int]], per_unit: int, total: int
) -> None:
    candidates = sorted((dead(*i) for i in items), key=lambda c: -c.created_at_ns)
    gone = over_limit(candidates, GcOptions(0.0, per_unit, total))
    kept = [c for c in candidates if c not in gone]
    assert len(gone) + len(kept) == len(candidates)
    assert total < 0 or len(kept) <= total
    for name in "abc":
        of_unit = [c for c in candidates if c.name == name]
        kept_of_unit = [c for c in of_unit if c in kept]
        assert len(kept_of_unit) <= per_unit
        assert kept_of_unit == of_unit[: len(kept_of_unit)]


def box(name: str, created_s: int, uid: str, *, ready: bool = False) -> ListedSandbox:
    state = SandboxState.READY if ready else SandboxState.NOTREADY
    return ListedSandbox(name, state, created_at_ns=created_s, labels={POD_UID: uid})


def test_sandboxes_GC_010() -> None:
    boxes = [
        box("old", 1, "a"),
        box("owner", 2, "a"),
        box("new", 3, "a"),
        box("gone", 1, "b"),
        box("alive", 2, "b", ready=True),
    ]
    owned = [replace(listed("c", "exited", 1), sandbox_id="owner")]
    assert removable_sandboxes(boxes, owned, lambda uid: uid == "b") == ["old", "gone"]


def test_deletor_keeps_the_newest_of_the_name_GC_020_LIFE_003() -> None:
    pod = make_pod("main", "other")
    state = status(
        record(pod, "main", "exited", attempt=2),
        record(pod, "main", "exited", attempt=1),
        record(pod, "main", "exited", attempt=0),
        record(pod, "other", "exited"),
        record(pod, "other", "running", attempt=1),
    )
    assert [r.id for r in dead_to_delete("main-2", state, 1)] == ["main-1", "main-0"]
    assert dead_to_delete("s0", state, 1) == ()
    everything = [r.id for r in dead_to_delete("s0", state, 1, remove_all=True)]
    assert everything == ["main-2", "main-1", "main-0", "other-0"]


def described(log_path: str = "") -> Any:
    return cri.ContainerStatusResponse(
        status=cri.ContainerStatus(
            id="c",
            metadata=cri.ContainerMetadata(name="main"),
            created_at=1,
            image=cri.ImageSpec(image=IMAGE),
            image_ref="r",
            log_path=log_path,
            labels={POD_NAME: "web", POD_NAMESPACE: "default"},
        )
    )


async def test_removal_deletes_logs_link_and_container_GC_005(tmp_path: Path) -> None:
    for name in ("0.log", "0.log.20260101-000000", "1.log"):
        (tmp_path / name).touch()
    links = tmp_path / "links"
    links.mkdir()
    for name in ("web_default_main-c.log", "web_default_main-d.log"):
        (links / name).symlink_to(tmp_path / "0.log")
    target = ScriptedTarget(ContainerStatus=described(str(tmp_path / "0.log")))
    await remove_container(CriClient(target), "c", links)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["1.log", "links"]
    assert os.listdir(links) == ["web_default_main-d.log"]
    assert target.methods() == ["ContainerStatus", "RemoveContainer"]


async def test_removal_without_log_path_touches_no_file_GC_005(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "precious").touch()
    monkeypatch.chdir(tmp_path)
    target = ScriptedTarget(ContainerStatus=described())
    await remove_container(CriClient(target), "c", None)
    assert (tmp_path / "precious").exists()


async def test_log_failure_keeps_the_container_GC_005(tmp_path: Path) -> None:
    (tmp_path / "0.log").mkdir()  # cannot be unlinked
    target = ScriptedTarget(ContainerStatus=described(str(tmp_path / "0.log")))
    with pytest.raises(LogRemovalError, match="cannot delete the log of container c"):
        await remove_container(CriClient(target), "c", None)
    assert "RemoveContainer" not in target.methods()


class Pods:
    """All content of pod `gone` may go."""

    def should_pod_content_be_removed(self, uid: str) -> bool:
        return uid == "gone"

    def should_pod_runtime_be_removed(self, uid: str) -> bool:
        return uid == "done"


def wire(name: str, uid: str, state: int, sandbox: str, created: int = 1) -> Any:
    return cri.Container(
        id=f"{uid}-{name}",
        metadata=cri.ContainerMetadata(name=name),
        state=state,
        created_at=created,
        pod_sandbox_id=sandbox,
        labels={POD_UID: uid},
    )


async def run_gc(
    tmp_path: Path, target: ScriptedTarget, *, ready: bool, evict: bool = False
) -> list[str]:
    options = RuntimeOptions(
        root_dir=tmp_path,
        pod_logs_dir=tmp_path / "logs",
        container_logs_dir=tmp_path / "containers",
    )
    deps = RuntimeDeps(RealClock(), Ids(Rng(0)), Events())
    collector = ContainerGC(CriClient(target), deps, options, Pods())
    return await collector.garbage_collect(ready, evict)


@pytest.mark.parametrize(
    ("ready", "evict", "removed"),
    [
        (True, False, ["gone-a"]),
        (False, False, []),
        (True, True, ["done-a", "gone-a"]),
    ],
)
async def test_content_goes_only_with_all_sources_ready_GC_003_GC_004(
    tmp_path: Path, ready: bool, evict: bool, removed: list[str]
) -> None:
    (tmp_path / "logs" / "default_web_gone").mkdir(parents=True)
    exited = cri.CONTAINER_EXITED
    containers = [wire("a", "gone", exited, "x"), wire("a", "done", exited, "y")]
    target = ScriptedTarget(
        ListContainers=cri.ListContainersResponse(containers=containers),
        ContainerStatus=described(),
    )
    assert await run_gc(tmp_path, target, ready=ready, evict=evict) == []
    assert sorted(r.container_id for r in target.requests("RemoveContainer")) == removed
    assert (tmp_path / "logs" / "default_web_gone").exists() is not ready  # GC-011


async def test_unknown_containers_are_stopped_first_and_kept_if_that_fails_GC_002(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lists = cri.ListContainersResponse(containers=[wire("a", "gone", cri.CONTAINER_UNKNOWN, "x")])
    target = ScriptedTarget(
        ListContainers=lists,
        ContainerStatus=described(),
        StopContainer=Failure(grpc.StatusCode.UNKNOWN, "stuck"),
    )
    with caplog.at_level("WARNING"):
        # no failed run: the next one tries again
        assert await run_gc(tmp_path, target, ready=True) == []
    assert "stuck" in caplog.text
    assert "RemoveContainer" not in target.methods()


async def test_an_unknown_container_is_stopped_with_the_grace_noted_on_it_GC_002(
    tmp_path: Path,
) -> None:
    container = wire("a", "gone", cri.CONTAINER_UNKNOWN, "x")
    container.annotations["io.kubernetes.pod.terminationGracePeriod"] = "17"
    target = ScriptedTarget(
        ListContainers=cri.ListContainersResponse(containers=[container]),
        ContainerStatus=described(),
    )
    await run_gc(tmp_path, target, ready=True)
    assert [r.timeout for r in target.requests("StopContainer")] == [17]
    assert target.methods()[2:4] == ["ContainerStatus", "RemoveContainer"]


async def test_a_list_that_fails_makes_the_run_a_failed_one_GC_001(tmp_path: Path) -> None:
    target = ScriptedTarget(ListPodSandbox=Failure(grpc.StatusCode.UNKNOWN, "no lists today"))
    assert await run_gc(tmp_path, target, ready=True) == [
        "rpc error: code = Unknown desc = no lists today"
    ]


@pytest.mark.parametrize(
    ("state", "stays"),
    [(cri.CONTAINER_EXITED, False), (cri.CONTAINER_CREATED, True), (None, False)],
)
async def test_a_link_without_log_goes_unless_its_container_may_log_again_GC_011(
    tmp_path: Path, state: int | None, stays: bool
) -> None:
    links = tmp_path / "containers"
    links.mkdir()
    dangling = links / "web_default_main-c1.log"
    dangling.symlink_to(tmp_path / "gone")
    (tmp_path / "there").touch()
    (links / "web_default_main-c2.log").symlink_to(tmp_path / "there")
    answer: Any = Failure(grpc.StatusCode.NOT_FOUND, "c1")
    if state is not None:
        answer = described()
        answer.status.state = state
    target = ScriptedTarget(ContainerStatus=answer)
    assert await run_gc(tmp_path, target, ready=True) == []
    assert dangling.is_symlink() is stays
    assert (links / "web_default_main-c2.log").exists()
    assert [r.container_id for r in target.requests("ContainerStatus")] == ["c1"]


async def test_a_link_that_cannot_be_looked_at_or_removed_costs_one_sentence_GC_011(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = tmp_path / "containers"
    links.mkdir()
    names = [f"web_default_{n}-{n}.log" for n in "abcd"]
    for name in names:
        (links / name).symlink_to(tmp_path / f"to-{name}")
    really_stat, really_unlink = Path.stat, Path.unlink

    def stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if path.name == names[0] and follow_symlinks:  # leads into a directory of root's
            raise PermissionError(13, "Permission denied", str(path))
        return really_stat(path, follow_symlinks=follow_symlinks)

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path.name == names[1]:
            raise PermissionError(13, "Permission denied", str(path))
        really_unlink(path, missing_ok)

    monkeypatch.setattr(Path, "stat", stat)
    monkeypatch.setattr(Path, "unlink", unlink)
    target = ScriptedTarget(ContainerStatus=Failure(grpc.StatusCode.NOT_FOUND, "gone"))
    assert await run_gc(tmp_path, target, ready=True) == []
    assert sorted(os.listdir(links)) == names[:2]  # the others went all the same
    assert [(r.levelname, r.exc_info) for r in caplog.records] == [("WARNING", None)]
    assert caplog.messages[0].startswith(f"cannot clean up {links}: [Errno 13] Permission denied")


async def test_sandboxes_of_deleted_pods_go_before_all_sources_are_seen_GC_010(
    tmp_path: Path,
) -> None:
    item = cri.PodSandbox(
        id="x", state=cri.SANDBOX_NOTREADY, created_at=1, labels={POD_UID: "gone"}
    )
    target = ScriptedTarget(ListPodSandbox=cri.ListPodSandboxResponse(items=[item]))
    await run_gc(tmp_path, target, ready=False)
    assert "RemovePodSandbox" in target.methods()


async def test_sandbox_is_stopped_then_removed_GC_010(tmp_path: Path) -> None:
    item = cri.PodSandbox(
        id="x", state=cri.SANDBOX_NOTREADY, created_at=1, labels={POD_UID: "gone"}
    )
    target = ScriptedTarget(ListPodSandbox=cri.ListPodSandboxResponse(items=[item]))
    assert await run_gc(tmp_path, target, ready=True) == []
    calls = [m for m in target.methods() if not m.startswith("List")]
    assert calls == ["StopPodSandbox", "RemovePodSandbox"]


def deletor_of(target: ScriptedTarget) -> ContainerDeletor:
    options = RuntimeOptions(root_dir=Path("/r"), pod_logs_dir=Path("/l"))
    return ContainerDeletor(CriClient(target), options, virtual_loop().clock)


async def test_what_finds_no_room_is_counted_and_told_once_GC_020(
    caplog: pytest.LogCaptureFixture,
) -> None:
    deletor, pod = deletor_of(ScriptedTarget()), make_pod()
    records = [record(pod, "main", "exited", attempt=n) for n in range(DELETOR_SLOTS + 10)]
    deletor.delete_containers_in_pod("main-0", status(*records), remove_all=True)
    assert deletor.dropped == 10
    assert [r.getMessage() for r in caplog.records if "queue is full" in r.getMessage()] != []
    assert len(caplog.records) == 1


async def test_an_unexpected_error_does_not_end_the_deletor(
    caplog: pytest.LogCaptureFixture,
) -> None:
    removed = asyncio.Event()

    def remove(request: Any) -> Any:
        if request.container_id == "main-0":
            raise ValueError("surprise")
        removed.set()
        return cri.RemoveContainerResponse()

    target = ScriptedTarget(ContainerStatus=described(), RemoveContainer=remove)
    deletor = deletor_of(target)
    pod = make_pod()
    both = [record(pod, "main", "exited", attempt=n) for n in (1, 0)]
    deletor.delete_containers_in_pod("main-1", status(*both[1:]), remove_all=True)
    deletor.delete_containers_in_pod("main-1", status(*both[:1]), remove_all=True)
    task = asyncio.ensure_future(deletor.run())
    await removed.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "Traceback" in caplog.text
    assert "cannot remove container main-0: unexpected error" in caplog.text


async def test_deletor_removes_what_is_queued_GC_020() -> None:
    removed = asyncio.Event()

    def remove(request: Any) -> Any:
        removed.set()
        return cri.RemoveContainerResponse()

    target = ScriptedTarget(ContainerStatus=described(), RemoveContainer=remove)
    deletor = deletor_of(target)
    pod = make_pod()
    old, new = (record(pod, "main", "exited", attempt=n) for n in (0, 1))
    deletor.delete_containers_in_pod("main-1", status(old, new))
    task = asyncio.ensure_future(deletor.run())
    await removed.wait()
    task.cancel()
    assert [r.container_id for r in target.requests("RemoveContainer")] == ["main-0"]


async def test_one_that_cannot_be_removed_in_a_new_way_keeps_no_other_GC_001(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def remove(request: Any) -> Any:
        if request.pod_sandbox_id == "s0":
            raise ValueError("surprise")
        return cri.RemovePodSandboxResponse()

    boxes = [
        cri.PodSandbox(
            id=f"s{n}", state=cri.SANDBOX_NOTREADY, created_at=n, labels={POD_UID: "gone"}
        )
        for n in range(3)
    ]
    target = ScriptedTarget(
        ListPodSandbox=cri.ListPodSandboxResponse(items=boxes), RemovePodSandbox=remove
    )
    assert await run_gc(tmp_path, target, ready=True) == []
    removed = [r.pod_sandbox_id for r in target.requests("RemovePodSandbox")]
    assert sorted(removed) == ["s0", "s1", "s2"]
    assert caplog.text.count("Traceback") == 1


class SurprisingCollector:
    """Fails at every run."""

    runs = 0

    async def garbage_collect(self, all_sources_ready: bool, evict_terminated: bool) -> list[str]:
        self.runs += 1
        raise ValueError("surprise")


async def test_container_gc_runs_again_and_tells_the_node_GC_001(
    caplog: pytest.LogCaptureFixture, clock: Clock
) -> None:
    collector: Any = SurprisingCollector()
    events = Events()
    task = asyncio.ensure_future(GarbageCollection(collector, lambda: True, events, clock).run())
    await clock.sleep(CONTAINER_GC_PERIOD_S + 1)
    assert collector.runs == 2
    assert events.seen == 2 * [("Warning", "ContainerGCFailed", "surprise", "")]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert caplog.text.count("Traceback") == 2
