"""Where a pod's directories, volumes and files are, and which paths no volume may have."""

import stat
from typing import Any

from kubelet_conformance.cases.volumes.claims import bind, user
from kubelet_conformance.cases.volumes.common import (
    VOLUME,
    config_map,
    secret,
    wait_failed,
    with_volume,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS = Feature.API, Feature.STATUS
NEEDS = [API, STATUS]
PLUGINS = {
    "scratch": "kubernetes.io~empty-dir",
    "map": "kubernetes.io~configmap",
    "key": "kubernetes.io~secret",
    "all": "kubernetes.io~projected",
    "down": "kubernetes.io~downward-api",
}
ONE = "a"
"""A key that all objects here have."""


def mode(path: Any) -> str:
    """The permissions of a file, in octal digits."""
    return oct(stat.S_IMODE(path.stat().st_mode))


def with_each_kind() -> PodPlan:
    """A pod with a volume of each kind that the kubelet makes, and one that nobody mounts."""
    field = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    volumes: list[dict[str, Any]] = [
        {"name": "scratch", "emptyDir": {}},
        {"name": "map", "configMap": {"name": "settings"}},
        {"name": "key", "secret": {"secretName": "keys"}},
        {"name": "all", "projected": {"sources": [{"configMap": {"name": "settings"}}]}},
        {"name": "down", "downwardAPI": {"items": [field]}},
        {"name": "idle", "emptyDir": {}},
    ]
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in PLUGINS]
    return pod("web", container("main", volumeMounts=mounts), volumes=volumes)


@conformance(
    id="volume-places",
    rules=["NODE-200.1", "NODE-200.2", "NODE-200.3", "NODE-201.1", "NODE-203.1", "NODE-205.5",
           "NODE-209.1", "NODE-206.1"],
    needs=NEEDS, alone=True,
)  # fmt: skip
async def a_pod_has_one_directory_for_all_that_is_its_own(node: Node) -> None:
    """Below the root directory a pod has a directory of its UID: in it are the volumes by plugin,
    with `~` for `/`, the marks of those that are ready, the files of its containers, and its hosts
    file, which containers may write. Its logs are below podLogsDir."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await node.api.create_secret(secret("keys", a="1"))
    await node.api.run_pods(with_each_kind())
    uid = str((node.pod("web") or {})["metadata"]["uid"])
    top = node.machine.directory("root") / "pods" / uid
    expect_equal(node, mode(top), "0o750", "mode of the pod's directory")
    volumes = {path.name: path.parent.name for path in (top / "volumes").glob("*/*")}
    expect_equal(node, volumes, PLUGINS, "volumes and their plugins")
    marks = {path.parent.name for path in (top / "plugins/kubernetes.io~empty-dir").glob("*/ready")}
    wrapped = {f"wrapped_{name}" for name in ("map", "key", "all", "down")}
    expect_equal(node, marks, {"scratch", *wrapped}, "volumes that are marked as ready")
    expect(node, (top / "containers/main").is_dir(), "a directory of the container")
    expect_equal(node, mode(top / "etc-hosts"), "0o644", "mode of the hosts file")
    config = node.calls("CreateContainer", pod="web")[0].request.config
    places = {m.container_path: (m.host_path, m.readonly) for m in config.mounts}
    expected = {
        f"/{name}": (str(top / "volumes" / plugin / name), name != "scratch")
        for name, plugin in PLUGINS.items()
    }
    expected["/etc/hosts"] = (str(top / "etc-hosts"), False)
    expect_equal(node, {path: places.get(path) for path in expected}, expected, "mounts")
    paths = [m.container_path for m in config.mounts]
    expect_equal(node, paths[:6], [*(f"/{name}" for name in PLUGINS), "/etc/hosts"], "their order")
    logs = node.calls("RunPodSandbox", pod="web")[0].request.config.log_directory
    expected_logs = node.machine.directory("logs") / f"default_web_{uid}"
    expect_equal(node, logs, str(expected_logs), "log_directory")


@conformance(id="volume-media", rules=["NODE-203.2"], needs=NEEDS)
async def an_unknown_medium_is_told(node: Node) -> None:
    """An emptyDir of a medium that there is not, or of huge pages that the pod does not request,
    keeps its pod waiting, and an event says why."""
    rows = {
        "unknown": ("Tape", 'unknown storage medium "Tape"'),
        "huge": (
            "HugePages",
            "medium HugePages: hugePages storage requested, but there is no resource request for "
            "huge pages",
        ),
    }
    for name, (medium, _) in rows.items():
        await node.api.create_pod(with_volume(name, {"emptyDir": {"medium": medium}}))
    for name, (_, why) in rows.items():
        message = await wait_failed(node, name)
        expect(node, message.endswith(why), f"a message that ends with {why}", message)
        expect_equal(node, node.count("RunPodSandbox", pod=name), 0, "sandboxes")


@conformance(
    id="host-path-plain",
    rules=["NODE-204.1", "NODE-204.2"],
    needs=[*NEEDS, Feature.BEHAVIORS],  # containerd makes a path that is not there
    alone=True,
)
async def a_host_path_is_given_as_it_is(node: Node) -> None:
    """A hostPath without a type is the path on the node itself, whether it is there or not; it is
    not made. One of a persistent volume that has `..` in it is refused."""
    path = node.machine.host_path("plain")
    await node.api.run_pods(with_volume("web", {"hostPath": {"path": str(path)}}))
    config = node.calls("CreateContainer", pod="web")[0].request.config
    places = [m.host_path for m in config.mounts if m.container_path == "/v"]
    expect_equal(node, places, [str(path)], "host_path of the mount")
    expect(node, not path.exists(), "nothing is made there", path)
    back = f"{path}/../other"
    await bind(node, {"hostPath": {"path": back}})
    await node.api.create_pod(user("back"))
    message = await wait_failed(node, "back")
    why = f"invalid HostPath `{back}`: must not contain '..'"
    expect(node, message.endswith(why), f"a message that ends with {why}", message)
    expect_equal(node, node.count("RunPodSandbox", pod="back"), 0, "sandboxes of back")


@conformance(id="volume-bad-paths", rules=["NODE-206.4"], needs=NEEDS)
async def no_file_of_a_volume_leads_out_of_it(node: Node) -> None:
    """An item whose path is too long, or has a part that is, keeps its pod waiting, and nothing is
    written for it; parts that begin with two dots are fine but for the first. (What else no path
    may be no API server takes.)"""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    paths = {"long": "/".join(["b" * 200] * 21), "wide": f"b/{'b' * 256}"}

    def plan(name: str, path: str) -> PodPlan:
        items = [{"key": ONE, "path": path}]
        return with_volume(name, {"configMap": {"name": "settings", "items": items}})

    for name, path in paths.items():
        await node.api.create_pod(plan(name, path))
    for name in paths:
        message = await wait_failed(node, name)
        expect(node, "invalid path: " in message, f"why {name} is invalid", message)
        expect_equal(node, node.count("RunPodSandbox", pod=name), 0, f"sandboxes of {name}")
        files = node.machine.volume_files(name, VOLUME)
        expect_equal(node, files, {}, f"files of {name}")
    await node.api.run_pods(plan("fine", "b/..a"))
    expect_equal(node, node.machine.volume_files("fine", VOLUME), {"b/..a": "1"}, "files of fine")


@conformance(id="volume-kinds-unknown", rules=["NODE-214.3"], needs=NEEDS, since="1.33")
async def kinds_that_no_plugin_makes_are_told(node: Node) -> None:
    """A pod with volumes of kinds that this kubelet does not know waits; one event names all of
    them."""
    volumes: list[dict[str, Any]] = [
        {"name": "one", "photonPersistentDisk": {"pdID": "1"}},
        {"name": "two", "storageos": {"volumeName": "2"}},
    ]
    mounts = [{"name": v["name"], "mountPath": f"/{v['name']}"} for v in volumes]
    await node.api.create_pod(pod("web", container("main", volumeMounts=mounts), volumes=volumes))
    message = await wait_failed(node, "web")
    reasons = [
        f'failed to get Plugin from volumeSpec for volume "{name}" err=no volume plugin matched'
        for name in ("one", "two")
    ]
    expected = (
        "Unable to attach or mount volumes: unmounted volumes=[one two], unattached volumes=[], "
        f"failed to process volumes=[one two]: {'; '.join(reasons)}"
    )
    expect_equal(node, message, expected, "message of the event")
    expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")


def sub_path_of(name: str, path: str) -> PodPlan:
    """A pod that mounts that part of an emptyDir, which it takes from a variable: what it says no
    API server knows."""
    mount = {"name": "scratch", "mountPath": "/scratch", "subPathExpr": "$(PART)"}
    env = [{"name": "PART", "value": path}]
    volumes = [{"name": "scratch", "emptyDir": {}}]
    return pod(name, container("main", volumeMounts=[mount], env=env), volumes=volumes)


async def wait_config_error(node: Node, name: str) -> str:
    """Run until the container waits with CreateContainerConfigError; returns the message."""

    def waiting() -> dict[str, Any]:
        return dict(node.container(name, "main").get("state", {}).get("waiting", {}))

    await node.run_until(
        lambda: waiting().get("reason") == "CreateContainerConfigError",
        within_s=limits.START_S + limits.NOTICE_S,
        what=f"{name} waits: CreateContainerConfigError",
    )
    return str(waiting()["message"])


@conformance(id="sub-path-invalid", rules=["NODE-211.1"], needs=NEEDS)
async def a_sub_path_is_relative_and_goes_down(node: Node) -> None:
    """A subPath that is absolute, or has `..` in it, fails its container; the message names it. Two
    dots in a longer name are fine."""
    rows = {
        "absolute": ("/a", "error SubPath `/a` must not be an absolute path"),
        "back": ("a/../b", "unable to provision SubPath `a/../b`: must not contain '..'"),
    }
    for name, (path, _) in rows.items():
        await node.api.create_pod(sub_path_of(name, path))
    for name, (_, why) in rows.items():
        expect_equal(node, await wait_config_error(node, name), why, f"message of {name}")
        expect_equal(node, node.count("CreateContainer", pod=name), 0, f"containers of {name}")
    await node.api.run_pods(sub_path_of("fine", "a/..b"))


@conformance(
    id="sub-path-parts",
    rules=["NODE-211.2", "NODE-211.3", "NODE-211.4"],
    needs=NEEDS,
)
async def parts_are_made_below_the_volume_alone(node: Node) -> None:
    """The parts of a subPath that are missing are made one by one, with the volume's mode, also
    behind a link that stays in the volume. A path through a file fails the container, and so does
    one behind a link to nothing, where nothing is made."""
    path = node.machine.host_path("data")
    (path / "real").mkdir(parents=True)
    path.chmod(0o750)
    (path / "current").symlink_to("real")
    (path / "nowhere").symlink_to("missing/part")
    (path / "file").write_text("")

    def plan(name: str, part: str) -> PodPlan:
        mount = {"name": VOLUME, "mountPath": "/v", "subPath": part}
        source = {"hostPath": {"path": str(path)}}
        return with_volume(name, source, container("main", volumeMounts=[mount]))

    await node.api.run_pods(plan("web", "current/new/part"))
    made = path / "real/new/part"
    expect(node, made.is_dir(), "the directory behind the link", sorted(path.rglob("*")))
    modes = [mode(each) for each in (made, made.parent)]
    expect_equal(node, modes, ["0o750", "0o750"], "modes of what was made")
    await node.api.create_pod(plan("through", "file/part"))
    why = f'failed to prepare subPath for volumeMount "{VOLUME}" of container "main"'
    expect_equal(node, await wait_config_error(node, "through"), why, "message of through")
    await node.api.create_pod(plan("nothing", "nowhere"))
    message = await wait_config_error(node, "nothing")
    expect(node, message.startswith("failed to "), "a message without the node's files", message)
    expect(node, str(path) not in message, "no path of the node", message)
    expect(node, not (path / "missing").exists(), "nothing is made where a link leads")
    counts = [node.count("CreateContainer", pod=name) for name in ("through", "nothing")]
    expect_equal(node, counts, [0, 0], "containers of the others")


def host_name(node: Node, name: str) -> str:
    """The host name that the pod's sandbox gets."""
    return str(node.calls("RunPodSandbox", pod=name)[0].request.config.hostname)


@conformance(id="host-name", rules=["NODE-210.1", "NODE-210.2"], needs=NEEDS)
async def a_pod_has_the_host_name_of_its_spec_or_its_own(node: Node) -> None:
    """The host name is spec.hostname, else the pod's name; a longer one is cut to 63 characters,
    and loses a dash at the end."""
    long, dashed = "n" * 70, f"{'d' * 62}-x"
    plans = {
        "plain": pod("plain"),
        "own": pod("own", hostname="box"),
        "below": pod("below", hostname="box", subdomain="sub"),
        long: pod(long),
        dashed: pod(dashed),
    }
    await node.api.run_pods(*plans.values())
    names = {name: host_name(node, name) for name in plans}
    expected = {
        "plain": "plain",
        "own": "box",
        "below": "box",
        long: "n" * 63,
        dashed: "d" * 62,
    }
    expect_equal(node, names, expected, "host names of the sandboxes")


@conformance(id="host-name-overridden", rules=["NODE-210.1"], needs=NEEDS, since="1.35")
async def the_host_name_can_be_overridden(node: Node) -> None:
    """hostnameOverride wins over hostname and subdomain, in the sandbox and in the hosts file."""
    plan = pod("web", hostname="box", subdomain="sub", hostnameOverride="host.example.org")
    await node.api.run_pods(plan)
    expect_equal(node, host_name(node, "web"), "host.example.org", "host name of the sandbox")
    text = (node.machine.pod_directory("web") / "etc-hosts").read_text()
    (address,) = [line.split("\t")[1:] for line in text.splitlines() if line.endswith("org")]
    expect_equal(node, address, ["host.example.org"], "names of the pod's address")


@conformance(id="volume-standalone", rules=["NODE-205.10", "NODE-201.1"], needs=[STATUS])
async def a_projected_volume_needs_a_cluster(node: Node) -> None:
    """Without an API server a pod with a projected volume waits, also if nothing of it is of the
    cluster; the same fields in a downwardAPI volume are there."""
    items = {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}
    await node.apply_static(with_volume("plain", {"downwardAPI": items}))
    sources = {"projected": {"sources": [{"downwardAPI": items}]}}
    await node.apply_static(with_volume("waits", sources))
    await node.wait_running("plain")
    files = node.machine.volume_files("plain", VOLUME)
    expect_equal(node, files, {"name": node.runtime.pod_name("plain")}, "files of plain")
    await node.run_for(limits.START_S)
    expect_equal(node, node.count("RunPodSandbox", pod="waits"), 0, "sandboxes of waits")
    expect_equal(node, node.phase("waits"), "Pending", "phase of waits")
