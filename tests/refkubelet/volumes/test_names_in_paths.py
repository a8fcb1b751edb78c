"""Whatever becomes part of a path stays below its root: NODE-200, NODE-211, SRC-025."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from kubecri.v1 import api_pb2 as cri
from lightkube.models.core_v1 import HostPathVolumeSource
from pods import container, make_pod

from kubeobjects.structs import replace
from refkubelet.container_manager.devices.sockets import PluginSockets
from refkubelet.cri.records import ImageRecord
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.config.mounts import (
    MountError,
    MountFacts,
    volume_mounts,
)
from refkubelet.kuberuntime.config.security import SecurityError, container_security
from refkubelet.kuberuntime.run_options import environment_files, volume_parts
from refkubelet.kuberuntime.user_namespaces import UserNamespaceError, UserNamespaces
from refkubelet.model import names
from refkubelet.model.names import MAX_NAME_BYTES, UnsafeNameError
from refkubelet.model.objects import Pod
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.manifest import ManifestError, read_manifest
from refkubelet.pods.merge import merge_pod_sources
from refkubelet.volumes.host_paths import HostPathError, check_host_path
from refkubelet.volumes.mounting import NoMounts

ODD = {
    "steps back": "..",
    "deep steps back": "a/../../../outside",
    "absolute": "/outside",
    "empty": "",
    "zero byte": "a\0b",
    "very long": "n" * (MAX_NAME_BYTES + 1),
    "link": "link",  # a link to the directory above, in every place that is looked into
}
PARTS = ("steps back", "deep steps back", "absolute", "empty", "zero byte", "very long")


def pod_of(
    *,
    mount: dict[str, str] | None = None,
    file: str = "f",
    main: str = "main",
    volume: str = "v",
    **meta: str,
) -> Pod:
    """A pod with a volume and a file of variables, in which one name is odd."""
    ref = {"volumeName": "v", "path": file, "key": "K"}
    one = container(
        main,
        volumeMounts=[{"name": "v", "mountPath": "/v", **(mount or {})}],
        env=[{"name": "A", "valueFrom": {"fileKeyRef": ref}}],
    )
    return make_pod(one, volumes=[{"name": volume, "emptyDir": {}}], meta=meta)


@pytest.mark.parametrize("odd", PARTS)
@pytest.mark.parametrize("field", ["uid", "name", "namespace", "main", "volume"])
def test_a_pod_with_such_a_name_is_not_run_SRC_025(field: str, odd: str) -> None:
    pod = pod_of(**{field: ODD[odd]})
    result = merge_pod_sources({}, [pod], PodSource.FILE, first=True, seen_at="now")
    (dropped,) = result.dropped
    assert not result.pods
    assert dropped.pod is pod


@pytest.mark.parametrize("odd", [o for o in PARTS if ODD[o]])  # without a UID it gets one
def test_a_manifest_with_such_a_uid_is_refused_SRC_025(odd: str) -> None:
    uid = ODD[odd].encode("unicode_escape").decode().replace("\\x00", "\\0")
    text = (
        f'apiVersion: v1\nkind: Pod\nmetadata: {{name: web, uid: "{uid}"}}\n'
        "spec: {containers: [{name: main, image: 'i:1'}]}\n"
    )
    with pytest.raises(ManifestError):
        read_manifest(text.encode(), source=PodSource.FILE, origin="/m", node_name="n")


BUILDERS: dict[str, Callable[[str], object]] = {
    "pod directory": lambda name: names.pod_dir("/k", name),
    "volume directory, UID": lambda name: names.pod_volume_dir("/k", name, "p/q", "v"),
    "volume directory, volume": lambda name: names.pod_volume_dir("/k", "u", "p/q", name),
    "container directory, UID": lambda name: names.container_dir("/k", name, "c"),
    "container directory, container": lambda name: names.container_dir("/k", "u", name),
    "container log": lambda name: names.container_log_path(name, 0),
}


@pytest.mark.parametrize("odd", PARTS)
@pytest.mark.parametrize("builder", sorted(BUILDERS))
def test_no_path_is_made_of_such_a_name_NODE_200(builder: str, odd: str) -> None:
    with pytest.raises(UnsafeNameError):
        BUILDERS[builder](ODD[odd])


@pytest.mark.parametrize("odd", ["deep steps back", "zero byte", "very long"])
@pytest.mark.parametrize("position", range(3))
def test_no_log_directory_is_made_of_such_a_name_GC_201(position: int, odd: str) -> None:
    parts = ["default", "web", "u-1"]
    parts[position] = ODD[odd]
    with pytest.raises(UnsafeNameError):
        names.pod_log_dir("/logs", *parts)


@pytest.mark.parametrize("odd", [o for o in ODD if ODD[o]])
@pytest.mark.parametrize("field", ["subPath", "subPathExpr"])
def test_no_sub_path_leaves_its_volume_NODE_211(tmp_path: Path, field: str, odd: str) -> None:
    volume = tmp_path / "pods/uid-web/volumes/kubernetes.io~empty-dir/v"
    volume.mkdir(parents=True)
    (volume / "link").symlink_to("..")
    pod = pod_of(mount={field: "$(X)" if field == "subPathExpr" else ODD[odd]})
    facts = MountFacts(str(tmp_path), {"X": ODD[odd]})
    main = pod.spec.containers[0]
    parts = volume_parts(main, pod, facts, NoMounts())
    with pytest.raises(MountError):
        volume_mounts(main, pod, replace(facts, parts=parts))
    assert sorted(os.listdir(volume)) == ["link"]


@pytest.mark.parametrize("odd", list(ODD))
def test_no_file_of_variables_is_read_outside_its_volume_LIFE_137(tmp_path: Path, odd: str) -> None:
    volume = tmp_path / "pods/uid-web/volumes/kubernetes.io~empty-dir/v"
    (volume / "a").mkdir(parents=True)
    outside = volume.parent / "outside"
    for place in (outside, volume.parent.parent / "outside"):
        place.write_text("K='secret'")
    (volume / "link").symlink_to("../outside")
    pod = pod_of(file={"steps back": "../outside", "absolute": str(outside)}.get(odd, ODD[odd]))
    (file,) = environment_files(pod.spec.containers[0], pod, tmp_path).values()
    assert file.values is None


@pytest.mark.parametrize("odd", ["steps back", "deep steps back", "absolute", "zero byte"])
def test_no_seccomp_profile_lies_outside_its_directory_LIFE_141(odd: str) -> None:
    profile = {"type": "Localhost", "localhostProfile": ODD[odd]}
    pod = make_pod(container(securityContext={"seccompProfile": profile}))
    with pytest.raises(SecurityError, match="localhostProfile"):
        container_security(
            pod.spec.containers[0], pod, ImageRecord("i", 1), RuntimeOptions(Path("/r"), Path("/l"))
        )


@pytest.mark.parametrize(
    "odd", ["steps back", "deep steps back", "empty", "zero byte", "very long"]
)
async def test_no_socket_of_a_plugin_is_looked_for_elsewhere_CG_084(
    tmp_path: Path, odd: str
) -> None:
    (tmp_path / "plugins").mkdir()
    with pytest.raises(OSError, match="cannot be part of a path"):
        await PluginSockets(tmp_path / "plugins").connect(ODD[odd])


@pytest.mark.parametrize("odd", PARTS)
def test_no_file_of_users_is_written_elsewhere_LIFE_147(tmp_path: Path, odd: str) -> None:
    (tmp_path / "pods").mkdir()
    with pytest.raises(UserNamespaceError):
        UserNamespaces(tmp_path, 65536).of(pod_of(uid=ODD[odd]))
    assert os.listdir(tmp_path) == ["pods"]


@pytest.mark.parametrize("odd", ["steps back", "deep steps back", "zero byte"])
def test_no_host_path_with_such_parts_is_made_NODE_204(tmp_path: Path, odd: str) -> None:
    source = HostPathVolumeSource(f"{tmp_path}/{ODD[odd]}", type="DirectoryOrCreate")
    with pytest.raises(HostPathError):
        check_host_path(source)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("odd", ["steps back", "absolute"])
def test_image_sub_paths_stay_in_their_image_CRI_099(tmp_path: Path, odd: str) -> None:
    pod = pod_of(mount={"subPath": ODD[odd]})
    facts = MountFacts(str(tmp_path), images={"v": cri.ImageSpec(image="i")})
    with pytest.raises(MountError):
        volume_mounts(pod.spec.containers[0], pod, facts)
