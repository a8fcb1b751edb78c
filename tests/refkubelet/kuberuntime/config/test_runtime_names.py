"""Names the runtime and the disk get: cgroups of pods, directories, flags over files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pods import container, make_pod

from kubeobjects.pods.validation import pod_causes
from refkubelet.cli import _parser
from refkubelet.config import KubeletConfiguration
from refkubelet.container_manager.cgroups.node_config import pod_cgroup_of
from refkubelet.daemon import configuration
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.config.sandbox import sandbox_config
from refkubelet.model import names
from refkubelet.model.defaults import apply_api_defaults
from refkubelet.model.objects import Pod, to_dict

UID = "12-34"
LIMITS = {"cpu": "1", "memory": "1Mi"}


def pod(resources: dict[str, Any] | None = None, **spec: Any) -> Pod:
    """A pod with a dash in its UID."""
    main = container(**(resources or {}))
    return apply_api_defaults(make_pod(main, uid=UID, **spec))


def cgroup_parent(of: Pod, **config: Any) -> str:
    options = RuntimeOptions(
        Path("/r"), Path("/l"), pod_cgroup=pod_cgroup_of(KubeletConfiguration(**config))
    )
    return str(sandbox_config(of, 0, options).linux.cgroup_parent)


@pytest.mark.parametrize(
    ("resources", "cgroupfs", "systemd"),
    [
        ({"limits": LIMITS}, "/kubepods/pod12-34", "/kubepods.slice/kubepods-pod12_34.slice"),
        (
            {"requests": {"cpu": "1"}},
            "/kubepods/burstable/pod12-34",
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice",
        ),
        (
            None,
            "/kubepods/besteffort/pod12-34",
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod12_34.slice",
        ),
    ],
    ids=["Guaranteed", "Burstable", "BestEffort"],
)
def test_cgroups_of_pods_CG_010_CG_012(resources: Any, cgroupfs: str, systemd: str) -> None:
    assert cgroup_parent(pod(resources)) == cgroupfs
    assert cgroup_parent(pod(resources), cgroup_driver="systemd") == systemd


def test_a_cgroup_root_comes_first_CG_010() -> None:
    assert cgroup_parent(pod(), cgroup_root="/my-root", cgroup_driver="systemd") == (
        "/my_root.slice/my_root-kubepods.slice/my_root-kubepods-besteffort.slice/"
        "my_root-kubepods-besteffort-pod12_34.slice"
    )


@pytest.mark.parametrize(
    ("per_qos", "parent"), [(True, "/kubepods/besteffort/pod12-34"), (False, "")]
)
def test_the_sandbox_gets_the_whole_path_or_nothing_CG_012(per_qos: bool, parent: str) -> None:
    assert cgroup_parent(pod(), cgroups_per_qos=per_qos) == parent


def test_directories_of_a_pod_NODE_200_GC_201() -> None:
    assert names.pod_volume_dir("/k", "u", "kubernetes.io/empty-dir", "v") == (
        "/k/pods/u/volumes/kubernetes.io~empty-dir/v"
    )
    assert names.container_dir("/k", "u", "main") == "/k/pods/u/containers/main"
    logs = names.pod_log_dir("/logs", "n", "p", "u")
    assert f"{logs}/{names.container_log_path('main', 3)}" == "/logs/n_p_u/main/3.log"


@pytest.mark.parametrize(
    ("path", "problems"),
    [
        ("/a..b/c", []),
        ("/a/..", ["Invalid value: \"/a/..\": must not contain '..'"]),
        ("../a", ["Invalid value: \"../a\": must not contain '..'"]),
    ],
)
def test_host_paths_lead_nowhere_up_NODE_204(path: str, problems: list[str]) -> None:
    of_pod = to_dict(pod(volumes=[{"name": "v", "hostPath": {"path": path}}]))
    assert [cause.message for cause in pod_causes(of_pod, static=True)] == problems


def test_files_of_volumes_may_be_read_by_all_NODE_205() -> None:
    sources: list[dict[str, Any]] = [
        {"secret": {"secretName": "s"}},
        {"configMap": {"name": "c"}},
        {"downwardAPI": {}},
        {"projected": {"sources": []}},
        {"secret": {"secretName": "s", "defaultMode": 0o400}},
    ]
    volumes = [{"name": f"v{i}"} | source for i, source in enumerate(sources)]
    found = pod(volumes=volumes)
    modes = [
        getattr(volume, next(iter(source))).defaultMode
        for volume, source in zip(found.spec.volumes or (), sources, strict=True)
    ]
    assert modes == [0o644, 0o644, 0o644, 0o644, 0o400]


def test_flags_win_over_the_file_CFG_001(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.yaml"
    file.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "containerRuntimeEndpoint: unix:///file.sock\nimageServiceEndpoint: unix:///images.sock\n"
    )
    arguments = ["run", "--config", str(file)]
    from_file = configuration(_parser().parse_args(arguments))
    assert from_file.container_runtime_endpoint == "unix:///file.sock"
    assert from_file.image_service_endpoint == "unix:///images.sock"
    flags = ["--container-runtime-endpoint", "unix:///flag.sock"]
    assert configuration(_parser().parse_args([*arguments, *flags])).container_runtime_endpoint == (
        "unix:///flag.sock"
    )
    more = [*flags, "--image-service-endpoint", "unix:///flag2.sock"]
    both = configuration(_parser().parse_args([*arguments, *more]))
    assert both.image_service_endpoint == "unix:///flag2.sock"


def test_images_are_asked_for_where_the_runtime_is_CRI_001(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.yaml"
    file.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "containerRuntimeEndpoint: unix:///file.sock\n"
    )
    config = configuration(_parser().parse_args(["run", "--config", str(file)]))
    assert config.image_service_endpoint == "unix:///file.sock"
