"""What a manifest says and what the kubelet makes of it, as the posted mirror pod shows it."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import IMAGE, OTHER_IMAGE, container, hook, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API, STATUS = Feature.API, Feature.STATUS
NO_EXECUTE = {"operator": "Exists", "effect": "NoExecute"}
HASH = "kubernetes.io/config.hash"
SOURCE = "kubernetes.io/config.source"


async def posted(node: Node, *names: str) -> list[dict[str, Any]]:
    """The bodies with which the mirrors of these static pods were posted first."""

    def bodies(name: str) -> list[dict[str, Any]]:
        requests = node.api.requests("POST", "/pods$")
        return [r.body for r in requests if r.body["metadata"]["name"] == f"{name}-{node.name}"]

    await node.run_until(
        lambda: all(bodies(name) for name in names),
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what=f"mirrors of {', '.join(names)} are posted",
    )
    return [bodies(name)[0] for name in names]


def created(node: Node) -> list[Any]:
    """The requests that made a pod. Two parts of a kubelet may post the same mirror at its start:
    one of them is refused with 409."""
    return [r for r in node.api.requests("POST", "/pods$") if r.status < 300]


@conformance(
    id="static-defaults",
    rules=[
        "SRC-036.1",
        "SRC-036.2",
        "SRC-036.3",
        "SRC-036.4",
        "SRC-036.6",
        "SRC-033.3",
        "MIRR-023",
        "PROBE-003.5",
    ],
    needs=[API],
    alone=True,
)
async def a_static_pod_has_the_defaults_of_an_api_server(node: Node) -> None:
    """The mirror pod is posted with the UID of the static pod and with the defaults that an API
    server would set, those of probes, too; a negative grace period is 1, amounts are rounded up.
    What admission would add to a pod is not there: no account, no token, no priority."""
    amounts = {"cpu": "0.00025", "memory": "0.1Gi"}
    plain = container(
        "main",
        resources={"requests": amounts, "limits": {"cpu": "2"}},
        livenessProbe={"exec": {"command": ["/bin/true"]}},
    )
    await node.apply_static(pod("web", plain, grace_s=None, priorityClassName="important"))
    await node.apply_static(pod("short", grace_s=-5))
    web, short = await posted(node, "web", "short")
    spec = web["spec"]
    expected = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "schedulerName": "default-scheduler",
        "nodeName": node.name,
    }
    expect_equal(node, {key: spec.get(key) for key in expected}, expected, "fields of the spec")
    requests = spec["containers"][0]["resources"]["requests"]
    expect_equal(node, requests, {"cpu": "1m", "memory": "107374182400m"}, "requests")
    numbers = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1}
    probe = spec["containers"][0]["livenessProbe"]
    shown = {key: value for key, value in probe.items() if key != "exec"}
    expect_equal(node, shown, numbers | {"failureThreshold": 3}, "numbers of the probe")
    added = [key for key in ("serviceAccountName", "volumes", "priority") if key in spec]
    expect_equal(node, added, [], "what admission would add")
    expect_equal(node, short["spec"]["terminationGracePeriodSeconds"], 1, "grace period of short")
    uid = node.calls("RunPodSandbox", pod="web")[0].uid
    expect_equal(node, web["metadata"].get("uid"), uid, "UID in the posted mirror")


@conformance(id="static-tolerates", rules=["SRC-035.1", "SRC-035.2"], needs=[API])
async def a_static_pod_tolerates_all_that_evicts(node: Node) -> None:
    """A static pod tolerates every NoExecute taint, beside what its manifest tolerates, and not
    twice where the manifest says so."""
    own = {"key": "mine", "operator": "Exists"}
    await node.apply_static(pod("web", tolerations=[own]))
    await node.apply_static(pod("said", tolerations=[NO_EXECUTE, own]))
    web, plain = await posted(node, "web", "said")
    expect_equal(node, web["spec"]["tolerations"], [own, NO_EXECUTE], "tolerations of web")
    expect_equal(node, plain["spec"]["tolerations"], [NO_EXECUTE, own], "tolerations of said")


@conformance(
    id="static-saved-manifest",
    rules=["SRC-033.3", "SRC-033.4", "SRC-033.5", "SRC-034.1", "SRC-034.2"],
    needs=[API],
)
async def a_manifest_saved_from_a_cluster_runs(node: Node) -> None:
    """A manifest with what an API server showed of a pod once (another node, a hash, a source, a
    phase) runs here under its own identity; of its status the start time is kept."""
    marks = {HASH: "abc", SOURCE: "api", "kubernetes.io/config.seen": "2020-01-01T00:00:00Z"}
    plan = pod("web", metadata={"annotations": marks}, nodeName="elsewhere")
    since = "2020-01-01T00:00:00Z"
    plan.manifest["status"] = {"phase": "Succeeded", "startTime": since}  # type: ignore[index]
    await node.apply_static(plan)
    await node.wait_running("web")
    (body,) = await posted(node, "web")
    uid = node.calls("RunPodSandbox", pod="web")[0].uid
    notes = body["metadata"]["annotations"]
    expect_equal(node, (notes[HASH], notes[SOURCE]), (uid, "file"), "config.hash, config.source")
    expect_equal(node, body["spec"]["nodeName"], node.name, "nodeName")
    await node.run_until(
        lambda: node.api.phase("web") == "Running",
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what="the mirror shows Running",
    )
    started = (node.api.pod("web") or {})["status"].get("startTime")
    expect_equal(node, started, since, "startTime")


@conformance(id="static-namespaces", rules=["SRC-033.2", "MIRR-020.4"], needs=[API], alone=True)
async def pods_of_the_same_name_live_in_two_namespaces(node: Node) -> None:
    """Two static pods with the same name in different namespaces both run, each with a mirror of
    its own that is made once."""
    await node.apply_static(pod("web"), file="a.yaml")
    far = pod("web", metadata={"namespace": "kube-system"})
    await node.apply_static(far, file="b.yaml")
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=limits.START_S,
        what="two containers of the pods named web",
    )
    await node.run_for(limits.STATUS_PASS_S)
    spaces = [c.request.config.metadata.namespace for c in node.calls("RunPodSandbox", pod="web")]
    expected = ["default", "kube-system"]
    expect_equal(node, sorted(spaces), expected, "namespaces of the sandboxes")
    posted_to = sorted(r.path.split("/")[4] for r in created(node))
    expect_equal(node, posted_to, expected, "namespaces of the posted mirrors")
    patched = {r.path.split("/")[4] for r in node.api.requests("PATCH", "/pods/web-.*/status")}
    expect_equal(node, sorted(patched), expected, "namespaces of the mirrors with a status")
    deleted = [r.path for r in node.api.requests("DELETE", "/pods/web-")]
    expect_equal(node, deleted, [], "deleted mirrors")


@conformance(
    id="static-own-uid-edited",
    rules=["SRC-032.1", "SRC-032.2", "SRC-032.3"],
    needs=[API],
    alone=True,
)
async def an_edit_with_an_explicit_uid_is_made_in_place(node: Node) -> None:
    """An edit of a manifest with a UID of its own keeps pod, sandbox and mirror; a new image
    restarts the container."""
    marks = {"uid": "00000000-0000-0000-0000-00000000c0de"}
    await node.apply_static(pod("web", container("main", image=IMAGE), metadata=marks))
    (first,) = await posted(node, "web")
    await node.wait_running("web")
    hashed = first["metadata"]["annotations"][HASH]
    expect_equal(node, hashed, marks["uid"], "config.hash")
    await node.apply_static(pod("web", container("main", image=OTHER_IMAGE), metadata=marks))
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=limits.NOTICE_S + limits.STOP_S,
        what="a second start of main",
    )
    await node.run_for(limits.STATUS_PASS_S)
    images = [
        c.request.config.image.user_specified_image
        for c in node.calls("CreateContainer", pod="web")
    ]
    expect_equal(node, images, [IMAGE, OTHER_IMAGE], "images of the containers")
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")
    expect_equal(node, len(created(node)), 1, "mirrors made")


@conformance(
    id="static-removed-grace",
    rules=["MIRR-005.1", "MIRR-005.2", "MIRR-005.3", "MIRR-005.4"],
    needs=[STATUS],
)
async def removed_pods_have_the_grace_of_their_spec(node: Node) -> None:
    """A pod whose manifest is removed is stopped with the grace period of its spec, 30 s where it
    has none and 2 s where it has 0, after its preStop hook has run; what its manifest says of the
    grace of a deletion counts instead."""
    graces = {"none": None, "zero": 0, "seven": 7, "said": 9}
    for name, grace_s in graces.items():
        hooks = {"preStop": hook(name=name)} if name == "seven" else {}
        said = {"deletionGracePeriodSeconds": 4} if name == "said" else {}
        main = container("main", hooks=hooks)
        await node.apply_static(pod(name, main, grace_s=grace_s, metadata=said))
    for name in graces:
        await node.wait_running(name)
    for name in graces:
        await node.remove_static(name)
    await node.run_until(
        lambda: all(node.count("StopContainer", pod=name) for name in graces),
        within_s=limits.NOTICE_S + limits.STOP_S,
        what="all pods are stopped",
    )
    timeouts = {n: node.calls("StopContainer", pod=n)[0].request.timeout for n in graces}
    expected = {"none": 30, "zero": 2, "seven": 7, "said": 4}
    expect_equal(node, timeouts, expected, "timeouts of StopContainer")
    ran = node.calls("ExecSync", pod="seven")
    expect_equal(node, len(ran), 1, "preStop hooks")


@conformance(id="mirror-finished-forgotten", rules=["MIRR-007.4"], needs=[API, Feature.RESTART])
async def the_phase_of_a_mirror_is_not_believed(node: Node) -> None:
    """When the runtime has no trace of a finished static pod, a restarted kubelet runs it again,
    although the mirror says Succeeded."""
    await node.apply_static(pod("job", container("main", exits(0)), restartPolicy="Never"))
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded" and node.count("StopPodSandbox", pod="job"),
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what="the mirror shows Succeeded, and the sandbox has stopped",
    )
    await node.kubelet.stop()
    await node.runtime.forget("job")
    await node.kubelet.start()
    await node.run_until(
        lambda: node.count("StartContainer", pod="job") == 2,
        within_s=limits.START_S,
        what="a second run",
    )


AMOUNTS_IN_JSON = (
    '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s", "annotations": {'
    '"pod.beta.kubernetes.io/init-containers": "[]"}}, "tomorrow": 18446744073709551616,'
    ' "spec": {"terminationGracePeriodSeconds": 2, "volumes": [{"name": "v", "emptyDir":'
    ' {"sizeLimit": 1000000.0001}}], "containers": [{"name": "main",'
    ' "image": "localhost/busybox:1",'
    ' "command": ["sleep", "1000"], "resources": {"requests": {"cpu": 1e-5, "memory": 1e3,'
    ' "ephemeral-storage": 0}, "limits": {"cpu": " 1 ", "memory": 1e9,'
    ' "ephemeral-storage": 2e21}}}]},'
    ' "status": {"podIP": "10.9.8.7", "podIPs": [{"ip": "10.9.8.6"}]}}'
)


@conformance(
    id="static-json-amounts",
    rules=["SRC-036.7", "SRC-036.8", "SRC-036.9", "SRC-036.10", "SRC-036.11", "SRC-004.7"],
    needs=[API],
    node_config={"fileCheckFrequency": "2s"},
)
async def amounts_are_read_as_they_are_written_in_json(node: Node) -> None:
    """In JSON an amount keeps its exponent, in YAML it is the number that counts; an escape is in
    no amount, an exponent in no integer, and what nobody reads may be as large as it likes. The
    addresses of a status agree, and annotations that were init containers are dropped."""
    node.write_manifest("a.json", AMOUNTS_IN_JSON % "json")
    node.write_manifest("b.yaml", "# no brace\n" + AMOUNTS_IN_JSON % "yaml")
    escaped = (AMOUNTS_IN_JSON % "escaped").replace('" 1 "', '"\\u0031"')
    node.write_manifest("c.json", escaped)
    node.write_manifest(
        "d.json", (AMOUNTS_IN_JSON % "float").replace('Seconds": 2', 'Seconds": 2e0')
    )
    wide = (AMOUNTS_IN_JSON % "wide").replace('Seconds": 2', 'Seconds": 9223372036854775808')
    node.write_manifest("e.json", wide)
    in_json, in_yaml = await posted(node, "json", "yaml")
    await node.run_for(3)

    def amounts(body: dict[str, Any]) -> list[str]:
        spec = body["spec"]
        resources = spec["containers"][0]["resources"]
        requests, limits = resources["requests"], resources["limits"]
        size = spec["volumes"][0]["emptyDir"]["sizeLimit"]
        of_limits = [limits[name] for name in ("ephemeral-storage", "cpu", "memory")]
        return [requests["cpu"], requests["memory"], *of_limits, size]

    expected_amounts = ["1e-3", "1e3", "2e21", "1", "1e9", "1000000000100u"]
    expect_equal(node, amounts(in_json), expected_amounts, "amounts of the JSON manifest")
    expected_amounts = ["1m", "1k", "2e+21", "1", "1G", "1000000000100u"]
    expect_equal(node, amounts(in_yaml), expected_amounts, "amounts of the YAML manifest")
    addresses = in_json["status"].get("podIPs")
    expect_equal(node, addresses, [{"ip": "10.9.8.7"}], "addresses of the status")
    old = [key for key in in_json["metadata"]["annotations"] if "init-containers" in key]
    expect_equal(node, old, [], "annotations of old init containers")
    names = sorted({r.body["metadata"]["name"] for r in node.api.requests("POST", "/pods$")})
    expect_equal(node, names, [f"json-{node.name}", f"yaml-{node.name}"], "posted mirrors")
