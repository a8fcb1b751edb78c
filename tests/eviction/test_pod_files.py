"""Logs and volumes of pods: measured, limited, ranked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from refkubelet.eviction.files import PodFilesReader, directory_bytes
from refkubelet.eviction.local_storage import has_storage_limits, local_storage_violation
from refkubelet.eviction.messages import eviction_text
from refkubelet.eviction.signals import Observation
from refkubelet.eviction.thresholds import parse_thresholds
from refkubelet.eviction.usage import PodFiles, PodUsage, usage_on_disk
from refkubelet.model.objects import Pod, decode_pod
from refkubelet.runtime.records import ContainerUsage

MI = 1 << 20


def make_pod(*, limit: str = "", size: str | None = None, medium: str = "") -> Pod:
    resources = {"limits": {"ephemeral-storage": limit}} if limit else {}
    volume = {"name": "v", "emptyDir": {"sizeLimit": size, "medium": medium}}
    return decode_pod(
        {
            "metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {
                "containers": [{"name": "main", "resources": resources}],
                "volumes": [volume],
            },
        }
    )


def uses(layer: int, logs: int = 0, volume: int = 0) -> PodUsage:
    row = ContainerUsage("id", "main", "u", "p", "n", 0, 0, None, None, layer, 7)
    return PodUsage((row,), files=PodFiles({"main": logs}, {"v": volume}))


def test_files_are_measured_where_they_lie_EVIC_029(tmp_path: Path) -> None:
    logs = tmp_path / "logs" / "n_p_u" / "main"
    volume = tmp_path / "root" / "pods" / "u" / "volumes" / "kubernetes.io~empty-dir" / "v" / "sub"
    for directory, size in ((logs, 1 * MI), (volume, 2 * MI)):
        directory.mkdir(parents=True)
        (directory / "file").write_bytes(b"x" * size)
    read = PodFilesReader(str(tmp_path / "root"), str(tmp_path / "logs"))
    assert read(make_pod()) == PodFiles({"main": MI}, {"v": 2 * MI})
    assert read(make_pod(medium="Memory")).volumes == {}
    assert directory_bytes(str(tmp_path / "nothing")) == 0


def test_who_has_limits_EVIC_100_EVIC_102() -> None:
    assert not has_storage_limits(make_pod())
    assert has_storage_limits(make_pod(size="1Mi"))
    assert has_storage_limits(make_pod(limit="1Mi"))


def test_a_volume_above_its_size_comes_first_EVIC_100() -> None:
    pod = make_pod(size="1Mi", limit="1Mi")
    assert local_storage_violation(pod, uses(5 * MI, volume=2 * MI)) == (
        'Usage of EmptyDir volume "v" exceeds the limit "1Mi". '
    )
    assert local_storage_violation(make_pod(size="2Mi"), uses(0, volume=2 * MI)) is None
    assert local_storage_violation(make_pod(size="0"), uses(0, volume=2 * MI)) is None


def test_logs_and_volumes_count_for_the_pod_EVIC_101() -> None:
    pod = make_pod(limit="4Mi")
    assert local_storage_violation(pod, uses(2 * MI, MI, MI)) is None
    message = local_storage_violation(pod, uses(2 * MI, MI, MI + 1))
    assert message is not None
    assert message.startswith("Pod ephemeral local storage usage exceeds")


def test_which_disk_counts_for_which_signal_EVIC_044_EVIC_045() -> None:
    def disk(signal: str, dedicated: bool) -> int:
        return usage_on_disk(uses(4, 2, 1), signal, dedicated_image_fs=dedicated).disk_bytes

    assert [disk("nodefs.available", d) for d in (False, True)] == [7, 3]
    assert [disk("imagefs.available", d) for d in (False, True)] == [7, 4]


def test_a_container_is_named_with_its_logs_EVIC_091() -> None:
    (threshold,) = parse_thresholds({"nodefs.available": "1Gi"}, {}, {}, {})
    seen: dict[str, Any] = {"nodefs.available": Observation(MI, 1 << 30, 1)}
    text = eviction_text(
        make_pod(), uses(3 * MI, MI), "ephemeral-storage", [threshold], seen
    ).message
    assert text == (
        "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: "
        "1Mi. Container main was using 4Mi, request is 0, has larger consumption of "
        "ephemeral-storage. "
    )
