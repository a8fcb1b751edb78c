"""Thresholds, cycle, ranking, texts and admission: the pure parts of eviction."""

from __future__ import annotations

from typing import Any

import pytest
from eviction_world import MI, hard, row, soft, uses
from pods import container, make_pod

from fakecri import FakeNode
from kubeobjects.machine import FilesystemStats, MemoryStats
from refkubelet.admission.node_fit import admit_under_pressure
from refkubelet.config.eviction_thresholds import SIGNALS, Threshold
from refkubelet.cri.usage import FilesystemUsage, ImageFilesystems
from refkubelet.eviction.cycle import (
    Observation,
    grace_override_s,
)
from refkubelet.eviction.layout import Layout, reclaim_steps
from refkubelet.eviction.local_storage import Violation, local_storage_violation
from refkubelet.eviction.messages import (
    evicted_status,
    eviction_text,
)
from refkubelet.eviction.observer import NodeObservations, Observer
from refkubelet.host.disk_use import DiskUse
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.stats.usage import PodUsage, rows_by_pod


class Disks(FakeNode):
    def memory(self) -> MemoryStats:
        return MemoryStats(1000, 300, 7)

    def filesystem(self, path: str) -> FilesystemStats:
        if path not in ("/root", "/images"):
            raise FileNotFoundError(path)
        return FilesystemStats(
            device=path,
            capacity_bytes=100,
            available_bytes=40,
            inodes=20,
            inodes_free=10,
            time_ns=3,
        )


def test_observations_EVIC_020_EVIC_022_EVIC_023() -> None:
    seen = look("/images")
    assert seen.layout is Layout.DEDICATED
    assert dict(seen.signals) == {
        "memory.available": Observation(700, 1000, 7),
        "pid.available": Observation(32668, 32768, 0),  # EVIC-025
        "nodefs.available": Observation(40, 100, 7),
        "nodefs.inodesFree": Observation(10, 20, 7),
        "imagefs.available": Observation(40, 100, 5),  # EVIC-028: only mount point and time
        "imagefs.inodesFree": Observation(10, 20, 5),
        "containerfs.available": Observation(40, 100, 5),  # EVIC-024: the same
        "containerfs.inodesFree": Observation(10, 20, 5),
    }
    assert look("/root").layout is Layout.ONE


def look(image_mount: str) -> NodeObservations:
    filesystems = ImageFilesystems((FilesystemUsage(image_mount, 999, 99, 5),))
    return Observer(Disks(), "/root").observe(filesystems, set(SIGNALS))


def test_an_unknown_image_disk_stops_the_cycle_EVIC_041() -> None:
    with pytest.raises(FileNotFoundError):
        look("/nowhere")
    with pytest.raises(FileNotFoundError, match="imagefs device is not found"):
        Observer(Disks(), "/root").observe(ImageFilesystems(()), set(SIGNALS))


def test_usage_is_added_up_per_pod_EVIC_029() -> None:
    rows = [
        row("a", memory=10, disk=1, inodes=None),
        row("b", memory=None, disk=2, inodes=4),
    ]
    usage = PodUsage(rows_by_pod(rows, ["web-a", "web-b"])["uid-web"])
    assert (usage.memory_bytes, usage.layers) == (10, DiskUse(3, 4))
    assert [one.name for one in rows_by_pod(rows, ["web-b"])["uid-web"]] == ["b"]
    assert rows_by_pod(rows, []) == {}


def text_of(pod: Pod, usage: PodUsage | None, threshold: Threshold, available: int) -> Any:
    seen = {threshold.signal: Observation(available, 24105 * MI, 1)}
    return eviction_text(
        pod, usage, resource=threshold.resource, acting=[threshold], observations=seen
    )


def test_the_recorded_message_EVIC_091_golden_s22() -> None:
    """EVIC-092, EVIC-093."""
    pod = make_pod(container(memory="64Mi"))
    text = text_of(pod, uses(719048 << 10), hard("memory.available", "20275Mi"), 20742884 << 10)
    assert text.message == (
        "The node was low on resource: memory. Threshold quantity: 20275Mi, available: "
        "20742884Ki. Container main was using 719048Ki, request is 64Mi, has larger "
        "consumption of memory. "
    )
    assert text.annotations == {
        "starved_resource": "memory",
        "offending_containers": "main",
        "offending_containers_usage": "719048Ki",
    }


def test_without_request_and_within_request_EVIC_091_golden_s22b() -> None:
    threshold = hard("memory.available", "22139Mi")
    message = text_of(make_pod(), uses(1232232 << 10), threshold, 21572136 << 10).message
    assert message.endswith(
        "Container main was using 1232232Ki, request is 0, has larger consumption of memory. "
    )
    within = text_of(make_pod(container(memory="2Gi")), uses(MI), threshold, 1 << 30)
    assert within.message.endswith("available: 1Gi. ")
    assert within.annotations["offending_containers"] == ""


def test_a_pod_without_statistics_EVIC_091_EVIC_093() -> None:
    text = text_of(make_pod(), None, hard("nodefs.inodesFree", "5%"), 5000)
    assert text.message == (
        "The node was low on resource: inodes. Threshold quantity: 1263796242, available: 5k. "
    )
    assert text.annotations == {}


def test_pod_level_memory_is_named_first_EVIC_091() -> None:
    pod = make_pod(resources={"requests": {"memory": "1Gi"}})
    text = text_of(pod, uses(2 * MI), hard("memory.available", "1Gi"), 1)
    assert "available: 1. Pod web was using 2Mi, request is 1Gi, has larger" in text.message
    assert text.annotations["offending_pod_usage"] == "2Mi"


def test_status_of_an_evicted_pod_EVIC_094() -> None:
    status = evicted_status(make_pod(), "m", True)(PodStatus(phase="Running"))
    assert (status.phase, status.reason, status.message) == ("Failed", "Evicted", "m")
    (condition,) = status.conditions or ()
    assert (condition.type, condition.status) == ("DisruptionTarget", "True")
    assert (condition.reason, condition.message) == ("TerminationByKubelet", "m")
    assert not evicted_status(make_pod(), "m", False)(PodStatus()).conditions


@pytest.mark.parametrize(
    ("threshold", "own", "wanted"),
    [
        (hard("memory.available", "1Mi"), 60, 1),
        (soft("memory.available", "1Mi", "1s"), 60, 4),
        (soft("memory.available", "1Mi", "1s"), 2, 2),
        (soft("memory.available", "1Mi", "1s"), None, 4),
    ],
)
def test_grace_of_an_eviction_EVIC_087(threshold: Threshold, own: Any, wanted: int) -> None:
    """EVIC-087.3."""
    assert grace_override_s(threshold, make_pod(terminationGracePeriodSeconds=own), 4) == wanted


@pytest.mark.parametrize(("own", "wanted"), [(60, 60), (None, 30)])
def test_a_negative_limit_leaves_a_pod_its_own_grace_EVIC_087(own: Any, wanted: int) -> None:
    pod, threshold = (
        make_pod(terminationGracePeriodSeconds=own),
        soft("memory.available", "1", "1s"),
    )
    assert grace_override_s(threshold, pod, -1) == wanted


@pytest.mark.parametrize(
    ("signal", "layout", "wanted"),
    [
        ("memory.available", Layout.ONE, ()),
        ("nodefs.available", Layout.ONE, ("containers", "images")),
        ("nodefs.available", Layout.DEDICATED, ()),
        ("imagefs.inodesFree", Layout.DEDICATED, ("containers", "images")),
        ("containerfs.available", Layout.SPLIT, ("containers",)),
        ("imagefs.available", Layout.SPLIT, ("images",)),
        ("pid.available", Layout.ONE, ()),
    ],
)
def test_what_can_be_reclaimed_EVIC_044_EVIC_045_EVIC_046(
    signal: str, layout: Layout, wanted: Any
) -> None:
    assert reclaim_steps(signal, layout) == wanted


@pytest.mark.parametrize(
    ("limit", "used", "message"),
    [
        (
            "/1Mi",
            2 * MI,
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
        ),
        ("/4Mi", 2 * MI, None),
        ("", 2 * MI, None),
    ],
)
def test_local_storage_of_the_pod_EVIC_101(limit: str, used: int, message: Any) -> None:
    violation = local_storage_violation(
        make_pod(container(storage=limit)), uses(disk=used), Layout.ONE
    )
    assert (violation and violation.message) == message


def test_local_storage_of_one_container_EVIC_102() -> None:
    pod = make_pod(container(storage="/1Mi"), container("b", storage="/1Gi"))
    assert local_storage_violation(pod, uses(disk=2 * MI), Layout.ONE) == Violation(
        "ephemeralcontainerfs.limit",
        "EVIC-102",
        'Container main exceeded its local ephemeral storage limit "1Mi". ',
    )
    assert local_storage_violation(pod, uses(disk=2 * MI), Layout.DEDICATED) is None


TOLERATES = [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]


@pytest.mark.parametrize(
    ("pod", "conditions", "admitted"),
    [
        (make_pod(), (), True),
        (make_pod(), ("MemoryPressure",), False),
        (make_pod(container(memory="1Mi")), ("MemoryPressure",), True),
        (make_pod(tolerations=TOLERATES), ("MemoryPressure",), True),
        (make_pod(tolerations=[{"operator": "Exists"}]), ("MemoryPressure",), True),
        (
            make_pod(tolerations=[{"operator": "Exists", "effect": "NoExecute"}]),
            ("MemoryPressure",),
            False,
        ),
        (make_pod(container(memory="1Mi")), ("DiskPressure",), False),
        (make_pod(tolerations=TOLERATES), ("DiskPressure", "MemoryPressure"), False),
        (make_pod(static=True), ("DiskPressure",), True),
        (make_pod(priority=2_000_000_000), ("DiskPressure",), True),
    ],
)
def test_admission_under_pressure_EVIC_110_LIFE_221(
    pod: Pod, conditions: Any, admitted: bool
) -> None:
    assert (admit_under_pressure(pod, conditions) is None) is admitted


def test_the_rejection_names_the_conditions_EVIC_111() -> None:
    rejection = admit_under_pressure(make_pod(), ("MemoryPressure",))
    assert rejection is not None
    assert rejection.reason == "Evicted"
    assert rejection.message == "The node had condition: [MemoryPressure]. "
