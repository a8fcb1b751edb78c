"""Runtime classes, user namespaces and recursive read-only mounts, as the runtime sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from lightkube.models.core_v1 import VolumeMount
from lightkube.models.node_v1 import RuntimeClass
from pods import make_pod

from fakecri import FakeCRI
from refkubelet.api.client import ApiError
from refkubelet.api.kinds import Kind
from refkubelet.cri.client import CriClient
from refkubelet.cri.records import (
    DEFAULT_RUNTIME,
    HandlerFeatures,
    PodRuntime,
    PodRuntimeError,
    UserNamespace,
)
from refkubelet.kuberuntime.config.mounts import MountError, MountFacts, volume_mounts, with_users
from refkubelet.kuberuntime.config.security import namespace_options
from refkubelet.kuberuntime.pod_runtime import PodRuntimes
from refkubelet.kuberuntime.user_namespaces import UserNamespaceError, UserNamespaces
from refkubelet.model.names import GOING
from refkubelet.volumes.plan import recursive_read_only

pytestmark = pytest.mark.virtual_time

ALL = HandlerFeatures(recursive_read_only_mounts=True, user_namespaces=True)


class Classes:
    """An API server with some RuntimeClasses; `away`: it answers nothing."""

    def __init__(self, **handlers: str) -> None:
        self.handlers = handlers
        self.away = False
        self.asked = 0

    async def get(self, kind: Kind[Any], name: str, namespace: str = "") -> Any:
        self.asked += 1
        if self.away:
            raise ApiError(503, "ServiceUnavailable", "the server is away")
        if name not in self.handlers:
            raise ApiError(404, "NotFound", "not there")
        return RuntimeClass(handler=self.handlers[name])


def runtimes(root: Path, classes: Classes | None = None, **features: HandlerFeatures) -> Any:
    found = {name if name != "default" else "": value for name, value in features.items()}
    return PodRuntimes(classes, lambda: found, UserNamespaces(root, 65_536))


async def test_a_pod_that_asks_for_nothing_asks_nobody(tmp_path: Path) -> None:
    classes = Classes()
    assert await runtimes(tmp_path, classes).of(make_pod()) is DEFAULT_RUNTIME
    assert classes.asked == 0
    assert list(tmp_path.iterdir()) == []


async def test_the_handler_is_that_of_the_runtime_class(tmp_path: Path) -> None:
    source = runtimes(tmp_path, Classes(gvisor="runsc"))
    assert await source.of(make_pod(runtimeClassName="gvisor")) == PodRuntime("runsc")


async def test_a_runtime_class_that_is_not_there(tmp_path: Path) -> None:
    wanted = 'runtimeclass.node.k8s.io "kata" not found'
    for classes in (Classes(), None):
        with pytest.raises(PodRuntimeError, match=wanted):
            await runtimes(tmp_path, classes).of(make_pod(runtimeClassName="kata"))


async def test_while_the_server_is_away_the_last_handler_serves(tmp_path: Path) -> None:
    classes = Classes(gvisor="runsc")
    source = runtimes(tmp_path, classes)
    classes.away = True
    with pytest.raises(PodRuntimeError, match="failed to lookup RuntimeClass gvisor"):
        await source.of(make_pod(runtimeClassName="gvisor"))
    classes.away = False
    await source.of(make_pod(runtimeClassName="gvisor"))
    classes.away = True
    assert (await source.of(make_pod(runtimeClassName="gvisor"))).handler == "runsc"


async def test_pods_with_users_of_their_own_share_none(tmp_path: Path) -> None:
    source = runtimes(tmp_path, default=ALL)
    users = [(await source.of(make_pod(uid=f"u-{n}", hostUsers=False))).users for n in range(3)]
    assert users == [UserNamespace(65_536 * n) for n in (1, 2, 3)]
    text = (tmp_path / "pods" / "u-0" / "userns").read_text()
    mapping = {"hostId": 65_536, "containerId": 0, "length": 65_536}
    assert json.loads(text) == {"uidMappings": [mapping], "gidMappings": [mapping]}


async def test_a_range_outlives_the_kubelet_and_ends_with_the_pod(tmp_path: Path) -> None:
    first, second = make_pod(uid="u-1", hostUsers=False), make_pod(uid="u-2", hostUsers=False)
    source = runtimes(tmp_path, default=ALL)
    before = [(await source.of(p)).users for p in (first, second)]
    again = runtimes(tmp_path, default=ALL)
    assert [(await again.of(p)).users for p in (first, second)] == before
    file = tmp_path / "pods" / "u-1" / "userns"
    file.unlink()  # behind the kubelet's back, while the pod runs
    assert (await again.of(make_pod(uid="u-3", hostUsers=False))).users == UserNamespace(196_608)
    assert (await again.of(first)).users == before[0]
    users = UserNamespaces(tmp_path, 65_536)
    users.release("u-1")
    assert not file.exists()
    assert users.of(make_pod(uid="u-4", hostUsers=False)) == before[0]
    users.keep_only(["u-3", "u-4"])
    assert users.of(make_pod(uid="u-5", hostUsers=False)) == before[1]


def written(root: Path, pod_uid: str, first: int, length: int = 65_536) -> Path:
    """The file of a pod's range."""
    mapping = {"hostId": first, "containerId": 0, "length": length}
    file = root / "pods" / pod_uid / "userns"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"uidMappings": [mapping], "gidMappings": [mapping]}))
    return file


@pytest.mark.parametrize(
    ("ranges", "ids", "wanted"),
    [
        ([(65_536, 65_536)], 131_072, "wrong user namespace length 65536"),
        ([(131_072, 131_072)], 65_536, "wrong user namespace length 131072"),
        ([(65_536, 131_072)], 131_072, "wrong user namespace offset specified 65536"),
        ([(0, 65_536)], 65_536, "id 0 is out of range"),
        ([(1 << 32, 65_536)], 65_536, "id 4294967296 is out of range"),
        ([(65_536, 65_536), (65_536, 65_536)], 65_536, 'picked for pod "u-1" already taken'),
    ],
)
def test_no_kubelet_starts_beside_ranges_that_it_could_give_twice_LIFE_147_7(
    tmp_path: Path, ranges: list[tuple[int, int]], ids: int, wanted: str
) -> None:
    files = [written(tmp_path, f"u-{n}", *each) for n, each in enumerate(ranges)]
    with pytest.raises(UserNamespaceError) as refused:
        UserNamespaces(tmp_path, ids)
    assert wanted in str(refused.value)
    assert str(refused.value).endswith(f"then remove {files[-1]}")
    assert all(file.exists() for file in files)


def test_there_are_ranges_for_all_pods_LIFE_147_8(tmp_path: Path) -> None:
    UserNamespaces(tmp_path, 65_536 * 590, 110)
    with pytest.raises(UserNamespaceError, match="not enough to support 110 pods"):
        UserNamespaces(tmp_path, 65_536 * 591, 110)


def test_no_range_has_the_id_that_no_kernel_maps_LIFE_147_4(tmp_path: Path) -> None:
    users = UserNamespaces(tmp_path, 1 << 30)
    for n in (1, 2):
        users.of(make_pod(uid=f"u-{n}", hostUsers=False))
    with pytest.raises(UserNamespaceError, match="all 2 ranges of 1073741824 ids are taken"):
        users.of(make_pod(uid="u-3", hostUsers=False))


def test_an_empty_file_is_none_LIFE_147(tmp_path: Path) -> None:
    written(tmp_path, "u-1", 65_536).write_text("")
    users = UserNamespaces(tmp_path, 65_536)
    assert users.of(make_pod(uid="u-2", hostUsers=False)).first == 65_536
    assert users.of(make_pod(uid="u-1", hostUsers=False)).first == 131_072


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{", "user namespace: invalid user namespace mappings file"),
        ('{"uidMappings": [], "gidMappings": []}', "not exactly one mapping"),
        (
            '{"uidMappings": [{"hostId": 65536, "containerId": 0, "length": 65536}],'
            ' "gidMappings": []}',
            "users and groups differ",
        ),
        (5, "id 0 must be mapped"),
        (-65_535, "wrong user namespace length 1"),
    ],
)
async def test_a_file_that_no_kubelet_wrote(tmp_path: Path, text: Any, wanted: str) -> None:
    if isinstance(text, int):
        inside, length = max(text, 0), 65_536 + min(text, 0)
        mapping = {"hostId": 65_536, "containerId": inside, "length": length}
        text = json.dumps({"uidMappings": [mapping], "gidMappings": [mapping]})
    file = tmp_path / "pods" / "uid-web" / "userns"
    source = runtimes(tmp_path, default=ALL)
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(PodRuntimeError, match=wanted):
        await source.of(make_pod(hostUsers=False))
    other = await source.of(make_pod(uid="u-2", hostUsers=False))
    assert other.users is not None  # no other pod suffers
    with pytest.raises(UserNamespaceError, match=f'existing pod "uid-web": .*{wanted[-20:]}'):
        UserNamespaces(tmp_path, 65_536)  # LIFE-147.7: not even the next kubelet


async def test_no_user_namespace_without_the_runtimes_help(tmp_path: Path) -> None:
    with pytest.raises(PodRuntimeError) as refused:
        await runtimes(tmp_path).of(make_pod(hostUsers=False))
    text = "can't set `spec.hostUsers: false`, runtime does not support user namespaces"
    assert str(refused.value) == text
    classes = Classes(old="runc-old")
    with pytest.raises(PodRuntimeError, match='RuntimeClass handler "runc-old" does not support'):
        await runtimes(tmp_path, classes, default=ALL).of(
            make_pod(hostUsers=False, runtimeClassName="old")
        )


def test_own_users_on_the_wire() -> None:
    ids = cri.IDMapping(host_id=131_072, container_id=0, length=65_536)
    runtime = PodRuntime(users=UserNamespace(131_072))
    options = namespace_options(make_pod(hostUsers=False), runtime)
    assert options.userns_options == cri.UserNamespace(mode=cri.POD, uids=[ids], gids=[ids])
    (mount,) = with_users([cri.Mount(container_path="/etc/hosts")], runtime)
    assert (list(mount.uidMappings), list(mount.gidMappings)) == ([ids], [ids])


@pytest.mark.parametrize(
    ("fields", "supported", "wanted"),
    [
        ({}, True, False),
        ({"recursiveReadOnly": "Disabled", "readOnly": True}, True, False),
        ({"recursiveReadOnly": "IfPossible", "readOnly": True}, True, True),
        ({"recursiveReadOnly": "IfPossible", "readOnly": True}, False, False),
        ({"recursiveReadOnly": "Enabled", "readOnly": True}, True, True),
        ({"recursiveReadOnly": "Enabled", "readOnly": True}, False, "supported by the runtime"),
        ({"recursiveReadOnly": "IfPossible"}, True, "it is not read-only"),
        (
            {
                "recursiveReadOnly": "Enabled",
                "readOnly": True,
                "mountPropagation": "HostToContainer",
            },
            True,
            'compatible with propagation "HostToContainer"',
        ),
        ({"recursiveReadOnly": "Always", "readOnly": True}, True, "unknown recursive read-only"),
    ],
)
def test_read_only_all_the_way_down(fields: Any, supported: bool, wanted: bool | str) -> None:
    mount = VolumeMount(name="data", mountPath="/data", **fields)
    if isinstance(wanted, bool):
        assert recursive_read_only(mount, supported) is wanted
    else:
        with pytest.raises(ValueError, match=wanted):
            recursive_read_only(mount, supported)


def test_a_mount_that_must_be_read_only_below_fails_the_container(tmp_path: Path) -> None:
    mounts = [{"name": "d", "mountPath": "/d", "readOnly": True, "recursiveReadOnly": "Enabled"}]
    container = {"name": "main", "volumeMounts": mounts}
    wants = make_pod(containers=[container], volumes=[{"name": "d", "emptyDir": {}}])
    (main,) = wants.spec.containers
    able = PodRuntime(recursive_read_only=True)
    (made,) = volume_mounts(main, wants, MountFacts(str(tmp_path), runtime=able))
    assert made.recursive_read_only
    problem = 'failed to resolve recursive read-only mode: volume "d" requested recursive'
    with pytest.raises(MountError, match=problem):
        volume_mounts(main, wants, MountFacts(str(tmp_path)))


async def test_the_features_come_from_the_answer_of_status() -> None:
    cri_fake = FakeCRI(runtime_handlers=["kata"])
    client = CriClient(cri_fake)
    found = await client.status()
    assert dict(found.handlers) == {"": ALL, "kata": ALL}
    assert await client.status() is found  # the same answer is not read twice


async def test_without_an_api_server_nothing_is_read_only_all_the_way_down(tmp_path: Path) -> None:
    mounts = [{"name": "d", "mountPath": "/d", "readOnly": True, "recursiveReadOnly": "IfPossible"}]
    wants = make_pod(containers=[{"name": "main", "volumeMounts": mounts}])
    for classes, able in ((None, False), (Classes(), True)):
        source = runtimes(tmp_path, classes, default=ALL)
        assert (await source.of(wants)).recursive_read_only is able
        assert source.read_only_is_recursive(wants) is able


def test_a_range_whose_file_stays_is_not_given_to_another_pod_LIFE_147_7(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "refused")

    users = UserNamespaces(tmp_path, 65_536)
    before = users.of(make_pod(uid="u-1", hostUsers=False))
    monkeypatch.setattr(Path, "unlink", refused)
    users.release("u-1")
    users.keep_only([])
    assert caplog.text.count("u-1") == 1
    assert users.of(make_pod(uid="u-2", hostUsers=False)) != before
    UserNamespaces(tmp_path, 65_536)  # the next kubelet starts
    monkeypatch.undo()
    users.keep_only(["u-2"])
    assert users.of(make_pod(uid="u-3", hostUsers=False)) == before


def test_directories_that_are_being_removed_are_of_no_pod_LIFE_147(tmp_path: Path) -> None:
    written(tmp_path, f"{GOING}0-u-1", 65_536)
    written(tmp_path, f"{GOING}1-u-1", 3)  # no kubelet with this number of ids wrote it
    users = UserNamespaces(tmp_path, 65_536)
    assert users.of(make_pod(uid="u-2", hostUsers=False)) == UserNamespace(65_536)
