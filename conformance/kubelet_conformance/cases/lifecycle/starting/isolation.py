"""Pods that ask for other isolation than the default: runtime handlers, user namespaces,
recursively read-only mounts."""

from typing import Any

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import IMAGE, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API, STATUS = Feature.API, Feature.STATUS
FEATURES = [STATUS, Feature.USER_NAMESPACES]
NAMES = ("web", "other")
POD_NAMESPACE, NODE_NAMESPACE = 0, 2  # NamespaceMode
MODES = {"/Enabled": True, "/IfPossible": True, "/Disabled": False}


async def started(node: Node, name: str) -> None:
    """Run until a container of the pod has been started."""
    await node.run_until(
        lambda: node.count("StartContainer", pod=name),
        within_s=limits.START_S,
        what=f"{name} starts",
    )


def users(config: Any) -> Any:
    """The user namespace in the configuration of a sandbox or container."""
    return config.linux.security_context.namespace_options.userns_options


@conformance(
    id="status-user-and-image",
    rules=["LIFE-170", "CRI-083.2", "CRI-083.4", "CRI-084.4", "LIFE-170.6"],
    needs=[STATUS, Feature.FAULTS],
    since="1.33",
)
async def a_status_shows_whose_the_process_is_and_which_image_it_runs(node: Node) -> None:
    """In a container's status `user` is what the runtime reports, `imageID` its image_ref, and
    `image` the runtime's name of the image, not the one in the spec."""

    def renamed(answer: Any) -> None:
        answer.status.image.image = "localhost/renamed:1"
        answer.status.image.user_specified_image = IMAGE

    node.runtime.on("ContainerStatus", pod="web").changes_answer(renamed)
    whose = {"runAsUser": 1234, "runAsGroup": 5678, "supplementalGroups": [77]}
    await node.apply_static(pod("web", container("main"), securityContext=whose))
    await node.wait_running("web")
    container_id = node.calls("StartContainer", pod="web")[0].request.container_id
    request = cri.ContainerStatusRequest(container_id=container_id)
    runtime_status = (await node.runtime.direct.call("ContainerStatus", request)).status
    status = node.container("web", "main")
    expect_equal(node, status.get("imageID"), runtime_status.image_ref, "imageID")
    expect_equal(node, status.get("image"), "localhost/renamed:1", "image")
    linux = runtime_status.user.linux
    expected_user = {
        "uid": linux.uid,
        "gid": linux.gid,
        "supplementalGroups": [*linux.supplemental_groups],
    }
    user = {"linux": expected_user} if runtime_status.user.HasField("linux") else None
    expect_equal(node, status.get("user"), user, "user")


@conformance(id="runtime-class-handler", rules=["LIFE-146", "CRI-030"], needs=[API], alone=True)
async def a_runtime_class_names_the_handler(node: Node) -> None:
    """RunPodSandbox has the handler of the pod's RuntimeClass, and none without a class."""
    await node.api.create_runtime_class("plain", "runc")
    await node.run_for(limits.WATCH_S)
    await node.api.create_pod(pod("web", container("main"), runtimeClassName="plain"))
    await node.api.create_pod(pod("other", container("main")))
    await started(node, "web")
    await started(node, "other")
    handlers = {n: node.calls("RunPodSandbox", pod=n)[0].request.runtime_handler for n in NAMES}
    expect_equal(node, handlers, {"web": "runc", "other": ""}, "runtime handlers")


@conformance(id="runtime-class-missing", rules=["LIFE-146"], needs=[API], alone=True)
async def a_pod_waits_for_its_runtime_class(node: Node) -> None:
    """A pod whose RuntimeClass does not exist gets no sandbox, an event says why, and it is tried
    again."""
    await node.api.create_pod(pod("web", container("main"), runtimeClassName="later"))
    await node.run_until(
        lambda: node.events("FailedCreatePodSandBox", pod="web"),
        within_s=limits.START_S,
        what="an event that no sandbox can be made",
    )
    message = node.events("FailedCreatePodSandBox", pod="web")[0]["message"]
    missing = 'Failed to create pod sandbox: runtimeclass.node.k8s.io "later" not found'
    expect_equal(node, message, missing, "message of the event")
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes without the class")
    await node.api.create_runtime_class("later", "runc")
    await node.run_until(
        lambda: node.count("StartContainer", pod="web"),
        within_s=2 * limits.SYNC_ERROR_S,
        what="web starts once the class is there",
    )


@conformance(id="user-namespace", rules=["LIFE-147", "LIFE-147.6"], needs=FEATURES, since="1.33")
async def pods_without_the_nodes_users_get_their_own(node: Node) -> None:
    """With `hostUsers: false` each pod gets 65536 user IDs that it shares neither with other pods
    nor with the node, in the sandbox, in its containers and for every mount; other pods have the
    node's."""
    own: dict[str, Any] = {"hostUsers": False}
    for name, fields in (("a", own), ("b", own), ("c", {})):
        await node.apply_static(pod(name, container("main"), **fields))
        await started(node, name)
    firsts = []
    for name in ("a", "b"):
        mappings = users(node.calls("RunPodSandbox", pod=name)[0].request.config)
        expect_equal(node, mappings.mode, POD_NAMESPACE, f"user namespace mode of {name}")
        expect_equal(node, list(mappings.uids), list(mappings.gids), f"user ID mappings of {name}")
        (ids,) = mappings.uids
        expect_equal(node, (ids.container_id, ids.length), (0, 65536), f"ID mapping of {name}")
        firsts.append(ids.host_id)
        config = node.calls("CreateContainer", pod=name)[0].request.config
        expect_equal(node, users(config), mappings, f"ID mappings of the container of {name}")
        for mount in config.mounts:
            expect_equal(node, list(mount.uidMappings), [ids], f"IDs at {mount.container_path}")
    expect_equal(node, len({*firsts}), 2, "number of different ranges of user IDs")
    expect_equal(node, [n for n in firsts if n < 65536 or n % 65536], [], "misplaced ranges")
    mode = users(node.calls("RunPodSandbox", pod="c")[0].request.config).mode
    expect_equal(node, mode, NODE_NAMESPACE, "namespace mode of a pod that asks for none")


@conformance(
    id="user-namespace-kept",
    rules=["LIFE-147", "LIFE-147.2"],
    needs=[*FEATURES, Feature.RESTART],
    since="1.33",
)
async def a_pod_keeps_its_users(node: Node) -> None:
    """A new sandbox of the pod gets the user IDs of the first one, also after a restart of the
    kubelet; it need not be the first pod of the node."""
    for name in ("other", "web"):
        await node.apply_static(pod(name, container("main"), hostUsers=False))
        await started(node, name)
    await node.kubelet.restart()
    await node.runtime.stop_sandbox("web")
    await node.run_until(
        lambda: node.count("RunPodSandbox", pod="web") == 2,
        within_s=limits.STOP_S,
        what="a second sandbox",
    )
    first, second = node.calls("RunPodSandbox", pod="web")
    expect_equal(node, users(second.request.config), users(first.request.config), "ID mappings")


def with_ids(count: int) -> dict[str, Any]:
    """Fields of the configuration with which a pod gets so many user IDs."""
    return {"userNamespaces": {"idsPerPod": count}}


async def refuses(node: Node, words: str, **config: Any) -> None:
    """Expect that the kubelet does not start with these fields and says these words."""
    error_text = await node.kubelet.refused_start(**config)
    expect(node, words in error_text, f"the words {words!r} in {error_text[-600:]!r}")


@conformance(
    id="user-namespace-other-length", rules=["LIFE-147.7"], needs=[*FEATURES, Feature.RESTART],
    since="1.35",
)  # fmt: skip
async def no_user_is_given_twice_after_a_change_of_their_number(node: Node) -> None:
    """While pods run with 65536 user IDs each, a kubelet that shall give them 131072 does not
    start: the ranges could overlap. The pods run on, and the old configuration goes on with
    them."""
    for name in NAMES:
        await node.apply_static(pod(name, container("main"), hostUsers=False))
        await started(node, name)
    await refuses(node, "wrong user namespace length 65536", **with_ids(131072))
    expect_equal(node, node.count("StopContainer"), 0, "stopped containers")
    await node.kubelet.start()
    await node.apply_static(pod("third", container("main"), hostUsers=False))
    await started(node, "third")
    calls = [node.calls("RunPodSandbox", pod=name) for name in (*NAMES, "third")]
    firsts = {users(call.request.config).uids[0].host_id for of_pod in calls for call in of_pod}
    expect_equal(node, (len(firsts), sum(map(len, calls))), (3, 3), "number of ranges, sandboxes")


@conformance(
    id="user-namespace-too-few", rules=["LIFE-147.8", "LIFE-147.1"],
    needs=[*FEATURES, Feature.RESTART], since="1.35",
)  # fmt: skip
async def there_are_users_for_as_many_pods_as_may_run(node: Node) -> None:
    """With so many IDs for each pod that there are fewer ranges than maxPods, the kubelet does not
    start; with fewer pods it does."""
    many = 1024 * 65536  # 63 ranges of them beside the node's
    await refuses(node, "are not enough to support 64 pods", maxPods=64, **with_ids(many))
    await node.kubelet.start(maxPods=63, **with_ids(many))
    await node.apply_static(pod("web", container("main"), hostUsers=False))
    await started(node, "web")
    (ids,) = users(node.calls("RunPodSandbox", pod="web")[0].request.config).uids
    expect_equal(node, ids.length, many, "number of user IDs")


@conformance(
    id="user-namespace-released", rules=["LIFE-147.9"],
    needs=[*FEATURES, API, Feature.RESTART], since="1.35",
)  # fmt: skip
async def a_pod_that_has_ended_has_no_users_any_more(node: Node) -> None:
    """The user IDs of a pod that has ended are free, although it is still at the API server: a
    kubelet with another number of IDs starts, and gives them to the next pod."""
    job = container("main", exits(0, after_s=1))
    await node.api.create_pod(pod("web", job, hostUsers=False, restartPolicy="Never"))
    await node.run_until(
        lambda: node.phase("web") == "Succeeded", within_s=limits.START_S, what="web ends"
    )
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.restart(**with_ids(131072))
    await node.api.create_pod(pod("other", container("main"), hostUsers=False))
    await started(node, "other")
    (ids,) = users(node.calls("RunPodSandbox", pod="other")[0].request.config).uids
    expect_equal(node, ids.length, 131072, "number of user IDs")


@conformance(
    id="mount-recursive-read-only",
    rules=["LIFE-148.1", "LIFE-148.3", "LIFE-170.5"],
    needs=[*FEATURES, API],
)
async def a_mount_can_be_read_only_all_the_way_down(node: Node) -> None:
    """`recursiveReadOnly: Enabled` and `IfPossible` are passed to a runtime that supports it."""
    mounts = [
        {"name": "d", "mountPath": f"/{mode}", "readOnly": True, "recursiveReadOnly": mode}
        for mode in ("Enabled", "IfPossible", "Disabled")
    ]
    mounts.append({"name": "d", "mountPath": "/written"})
    volumes = [{"name": "d", "emptyDir": {}}]
    await node.api.create_pod(pod("web", container("main", volumeMounts=mounts), volumes=volumes))
    await started(node, "web")
    made_mounts = node.calls("CreateContainer", pod="web")[0].request.config.mounts
    modes = {
        m.container_path: m.recursive_read_only for m in made_mounts if m.container_path in MODES
    }
    expect_equal(node, modes, MODES, "recursive_read_only")
    await node.run_until(
        lambda: node.api.container("web", "main").get("volumeMounts"),
        within_s=limits.NOTICE_S,
        what="mounts in the status",
    )
    shown = {
        m["mountPath"]: m.get("recursiveReadOnly")
        for m in node.api.container("web", "main")["volumeMounts"]
    }
    expected = {path: "Enabled" if deep else "Disabled" for path, deep in MODES.items()}
    expect_equal(node, {p: shown[p] for p in MODES}, expected, "recursiveReadOnly in the status")
    expect_equal(node, shown["/written"], None, "recursiveReadOnly of a mount that is written to")
