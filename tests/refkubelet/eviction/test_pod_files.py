"""Logs and volumes of pods: limited, ranked, named."""

from __future__ import annotations

from typing import Any

from eviction_world import row
from pods import container, make_pod

from refkubelet.config.eviction_grammar import parse_thresholds
from refkubelet.eviction.cycle import Observation
from refkubelet.eviction.layout import Layout, disk_use
from refkubelet.eviction.local_storage import Violation, has_storage_limits, local_storage_violation
from refkubelet.eviction.messages import eviction_text
from refkubelet.host.disk_use import NOTHING, DiskUse, VolumeSize
from refkubelet.model.objects import Pod
from refkubelet.stats.usage import PodFiles, PodUsage

MI = 1 << 20


def storing(*, limit: str = "", size: str | None = None, medium: str = "", spare: str = "") -> Pod:
    """A pod with a limit of storage, and a volume of that size. `spare`: the limit of another
    container."""
    volume = {"name": "v", "emptyDir": {"sizeLimit": size, "medium": medium}}
    more = [container("spare", storage=f"/{spare}")] if spare else []
    return make_pod(container(storage=f"/{limit}"), *more, volumes=[volume])


def uses(layer: int, logs: int = 0, volume: int = 0, **files: Any) -> PodUsage:
    """Writable layer, logs and a volume of so many bytes and 7, 2 and 3 inodes."""
    seen = VolumeSize(DiskUse(volume, 3), 1, files.pop("local", True))
    found = PodFiles({"main": DiskUse(logs, 2)}, {"v": seen}, **files)
    return PodUsage((row(disk=layer, inodes=7),), files=found)


def message(pod: Pod, usage: PodUsage, layout: Layout = Layout.ONE) -> str | None:
    violation = local_storage_violation(pod, usage, layout)
    return violation and violation.message


def test_who_has_limits_EVIC_100_EVIC_102() -> None:
    assert not has_storage_limits(storing())
    assert has_storage_limits(storing(size="1Mi"))
    assert has_storage_limits(storing(limit="1Mi"))


def test_a_volume_above_its_size_comes_first_EVIC_100() -> None:
    pod = storing(size="1Mi", limit="1Mi")
    assert message(pod, uses(5 * MI, volume=2 * MI)) == (
        'Usage of EmptyDir volume "v" exceeds the limit "1Mi". '
    )
    assert message(storing(size="2Mi"), uses(0, volume=2 * MI)) is None
    assert message(storing(size="0"), uses(0, volume=2 * MI)) is None


def test_a_volume_in_memory_has_a_size_but_no_place_on_disk_EVIC_100_EVIC_101() -> None:
    usage = uses(0, volume=2 * MI, local=False)
    wanted = 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". '
    assert message(storing(size="1Mi", medium="Memory"), usage) == wanted
    assert message(storing(limit="1Mi", medium="Memory"), usage) is None


def test_a_volume_that_was_not_measured_yet_breaks_nothing_EVIC_103() -> None:
    assert message(storing(size="1Mi"), PodUsage(uses(0).containers)) is None


def test_all_files_count_for_the_pod_EVIC_101() -> None:
    pod = storing(limit="4Mi")
    wanted = "Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. "
    assert message(pod, uses(2 * MI, MI, MI)) is None
    assert message(pod, uses(2 * MI, MI, MI + 1)) == wanted
    assert message(pod, uses(2 * MI, MI, MI, pod_logs=DiskUse(1, 1))) == wanted
    assert message(pod, uses(2 * MI, MI, MI, etc_hosts=DiskUse(1, 1))) == wanted


def test_which_disk_counts_for_which_signal_EVIC_044_EVIC_045_EVIC_046() -> None:
    def used(signal: str, layout: Layout) -> DiskUse:
        return disk_use(uses(4, 2, 1), signal, layout)

    all_of_it, layers, rest = DiskUse(7, 12), DiskUse(4, 7), DiskUse(3, 5)
    wanted = {
        Layout.ONE: (all_of_it, all_of_it, all_of_it),
        Layout.DEDICATED: (rest, layers, layers),
        Layout.SPLIT: (all_of_it, NOTHING, all_of_it),
    }
    for layout, found in wanted.items():
        for what in ("available", "inodesFree"):
            disks = ("nodefs", "imagefs", "containerfs")
            assert tuple(used(f"{disk}.{what}", layout) for disk in disks) == found
    assert used("memory.available", Layout.ONE) == NOTHING


def test_volumes_in_memory_do_not_count_on_disk_EVIC_044() -> None:
    usage = uses(4, 2, 1, local=False)
    assert disk_use(usage, "nodefs.available", Layout.ONE) == DiskUse(6, 9)


def test_a_container_is_named_with_its_logs_EVIC_091() -> None:
    (threshold,) = parse_thresholds({"nodefs.available": "1Gi"}, {}, {}, {})
    seen: dict[str, Any] = {"nodefs.available": Observation(MI, 1 << 30, 1)}
    usage = uses(3 * MI, MI)

    def text(usage: PodUsage) -> str:
        return eviction_text(
            storing(), usage, resource="ephemeral-storage", acting=[threshold], observations=seen
        ).message

    low = (
        "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 1Mi. "
    )
    assert text(usage) == (
        f"{low}Container main was using 4Mi, request is 0, has larger consumption of "
        "ephemeral-storage. "
    )
    assert text(PodUsage(usage.containers)) == low  # without a log nothing is known


def test_limits_are_compared_exactly_EVIC_100_EVIC_101_EVIC_102() -> None:
    """A tenth of a Ki is 102.4 bytes: 103 are more."""
    wanted = 'Usage of EmptyDir volume "v" exceeds the limit "102400m". '
    assert message(storing(size="0.1Ki"), uses(0, volume=102)) is None
    assert message(storing(size="0.1Ki"), uses(0, volume=103)) == wanted
    above = "Pod ephemeral local storage usage exceeds the total limit of containers 102400m. "
    assert message(storing(limit="0.1Ki"), uses(102)) is None
    assert message(storing(limit="0.1Ki"), uses(103)) == above


def test_as_much_as_the_limit_is_allowed_EVIC_100_EVIC_102() -> None:
    pod = storing(limit="5", size="7", spare="1Gi")
    for usage in (uses(5), uses(4, 1), uses(0, 0, 7)):
        assert local_storage_violation(pod, usage, Layout.ONE) is None
    assert local_storage_violation(pod, uses(4, 2), Layout.ONE) == Violation(
        "ephemeralcontainerfs.limit",
        "EVIC-102",
        'Container main exceeded its local ephemeral storage limit "5". ',
    )
    assert local_storage_violation(pod, uses(0, 0, 8), Layout.ONE) == Violation(
        "emptydirfs.limit", "EVIC-100", 'Usage of EmptyDir volume "v" exceeds the limit "7". '
    )


def test_a_disk_for_layers_leaves_the_logs_EVIC_102() -> None:
    pod = storing(limit="5", spare="1Gi")
    assert message(pod, uses(90, 5), Layout.SPLIT) is None
    assert message(pod, uses(90, 6), Layout.DEDICATED) is not None


def test_a_limit_of_nothing_is_none_EVIC_102() -> None:
    assert message(storing(limit="0", spare="1Gi"), uses(90)) is None


def test_the_sum_of_all_limits_EVIC_101() -> None:
    found = local_storage_violation(
        storing(limit="5", spare="1Gi"), uses(0, 0, (1 << 30) + 6), Layout.ONE
    )
    assert found == Violation(
        "ephemeralpodfs.limit",
        "EVIC-101",
        "Pod ephemeral local storage usage exceeds the total limit of containers 1073741829. ",
    )
