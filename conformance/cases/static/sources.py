"""The manifest directory: which files are read, and what a static pod is made of them."""

from conformance.harness import limits
from conformance.harness.expect import expect, expect_equal
from conformance.harness.manifests import container, pod
from conformance.harness.node import Node
from conformance.registry import Feature, conformance

STATUS, RESTART = Feature.STATUS, Feature.RESTART
PERIOD_S = 2
OFTEN = {"fileCheckFrequency": f"{PERIOD_S}s"}

YAML = """\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {{app: "{name}"}}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: main
    image: localhost/busybox:1
    imagePullPolicy: IfNotPresent
    command: [/bin/sh, -c, "trap 'exit 0' TERM; sleep 3600 & wait $!"]
"""


def listed(node: Node) -> set[str]:
    """The names of the pods that have ever had a sandbox."""
    return {str(c.request.config.metadata.name) for c in node.calls("RunPodSandbox")}


@conformance(id="static-yaml", rules=["SRC-004", "SRC-002"], needs=[])
async def a_yaml_manifest_starts_a_pod(node: Node) -> None:
    """A YAML file put into the directory starts its pod within seconds."""
    node.write_manifest("web.yaml", YAML.format(name="web"))
    await node.run_until(lambda: node.count("StartContainer"), within_s=limits.START_S)
    expect_equal(node, listed(node), {f"web-{node.name}"}, "pods")


@conformance(id="static-ignored-files", rules=["SRC-003"], needs=[STATUS], node_config=OFTEN)
async def hidden_files_and_sub_directories_are_ignored(node: Node) -> None:
    """Files whose name begins with a dot, and sub-directories, are not read."""
    node.write_manifest(".hidden.yaml", YAML.format(name="hidden"))
    node.write_manifest("below/pod.yaml", YAML.format(name="below"))
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(2 * PERIOD_S)
    expect_equal(node, listed(node), {f"web-{node.name}"}, "pods")


@conformance(id="static-bad-beside-good", rules=["SRC-005"], needs=[STATUS], node_config=OFTEN)
async def a_bad_manifest_does_not_block_the_good_ones(node: Node) -> None:
    """Beside files with garbage, a wrong kind or a pod without name the pod of a good manifest
    runs."""
    node.write_manifest("a-garbage.yaml", "{]")
    node.write_manifest("b-service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n")
    node.write_manifest("c-nameless.yaml", YAML.format(name="").replace("  name: \n", ""))
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.apply_static(pod("web2"))
    await node.wait_running("web2")
    expect_equal(node, listed(node), {f"web-{node.name}", f"web2-{node.name}"}, "pods")


REFUSED = (
    "hostname: A_B",
    "dnsPolicy: None",
    "activeDeadlineSeconds: 2147483648",
    "ephemeralContainers: [{name: e, image: localhost/busybox:1}]",
    "schedulingGates: [{name: later}]",
    "nodeSelector: {a b: c}",
    "tolerations: [{operator: Exists, value: x}]",
    "securityContext: {runAsUser: -1}",
    "os: {name: plan9}",
)
REFUSED_IN_CONTAINERS = (
    "ports: [{name: a, containerPort: 1}, {name: a, containerPort: 2}]",
    "env: [{name: A, valueFrom: {}}]",
    "volumeMounts: [{name: v, mountPath: /v, subPath: ../../../etc}]",
    "resources: {limits: {storage: 1Gi}}",
    "lifecycle: {preStop: {sleep: {seconds: 31}}}",
    "livenessProbe: {httpGet: {port: 80, httpHeaders: [{name: a b, value: c}]}}",
)
ODD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  {spec}
  volumes: [{{name: v, emptyDir: {{}}}}]
  containers:
  - name: main
    image: localhost/busybox:1
    {container}
"""


@conformance(id="static-invalid-fields", rules=["SRC-037"], needs=[STATUS], node_config=OFTEN)
async def what_an_api_server_would_refuse_never_runs(node: Node) -> None:
    """Manifests with one invalid field each, some of them dangerous, are refused as an API server
    would; only the good one beside them runs."""
    for i, spec in enumerate(REFUSED):
        node.write_manifest(f"a{i}.yaml", ODD.format(name=f"a{i}", spec=spec, container=""))
    for i, field in enumerate(REFUSED_IN_CONTAINERS):
        node.write_manifest(f"b{i}.yaml", ODD.format(name=f"b{i}", spec="", container=field))
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(PERIOD_S)
    expect_equal(node, listed(node), {f"web-{node.name}"}, "pods")


NUMBERS = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  terminationGracePeriodSeconds: 3e1
  enableServiceLinks: y
  containers:
  - name: main
    image: localhost/busybox:1
    command: [sleep, '1000']
    resources: {requests: {cpu: 1.0e-2, memory: 1e6}}
"""
EMOJI = (  # both halves of the pair escaped, as many writers of JSON do
    '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "annotations": '
    '{"face": "\\ud83d\\ude00"}}, "spec": {"containers": [{"name": "main", "image": '
    '"localhost/busybox:1", "command": ["sleep", "1000"]}]}}'
)


@conformance(id="static-odd-values", rules=["SRC-004"], needs=[STATUS], node_config=OFTEN)
async def odd_spellings_are_read(node: Node) -> None:
    """Whole numbers written as floats, `y` for true and an emoji escaped in JSON are accepted."""
    node.write_manifest("a.yaml", NUMBERS)
    node.write_manifest("b.json", EMOJI)
    await node.wait_running("a")
    await node.wait_running("b")


@conformance(id="static-broken-later", rules=["SRC-005"], needs=[STATUS], node_config=OFTEN)
async def a_manifest_that_becomes_invalid_removes_its_pod(node: Node) -> None:
    """When a good manifest is overwritten with garbage, its pod is stopped within one period."""
    await node.apply_static(pod("web"))
    await node.apply_static(pod("other"))
    await node.wait_running("web")
    await node.wait_running("other")
    node.write_manifest("web.yaml", "{]")
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"),
        within_s=PERIOD_S + limits.NOTICE_S,
        what="StopContainer of web",
    )
    await node.run_for(PERIOD_S)
    expect_equal(node, node.count("StopContainer", pod="other"), 0, "stops of other")


@conformance(id="static-first-document", rules=["SRC-004"], needs=[STATUS])
async def only_the_first_document_of_a_file_counts(node: Node) -> None:
    """Of a YAML file with several documents only the first is used."""
    node.write_manifest("two.yaml", YAML.format(name="one") + "---\n" + YAML.format(name="two"))
    await node.run_until(lambda: node.count("StartContainer"), within_s=limits.START_S)
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, listed(node), {f"one-{node.name}"}, "pods")


@conformance(id="static-identity", rules=["SRC-033", "SRC-034"], needs=[STATUS])
async def a_static_pod_gets_name_namespace_and_annotations(node: Node) -> None:
    """A static pod's name ends with the node's, its namespace is default, and its sandbox has the
    annotations config.hash, source and seen."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    sandbox = node.calls("RunPodSandbox")[0].request.config
    metadata = sandbox.metadata
    expect_equal(node, metadata.name, f"web-{node.name}", "name")
    expect_equal(node, metadata.namespace, "default", "namespace")
    notes = dict(sandbox.annotations)
    expect_equal(node, notes.get("kubernetes.io/config.hash"), metadata.uid, "config.hash")
    expect_equal(node, notes.get("kubernetes.io/config.source"), "file", "config.source")
    expect(node, notes.get("kubernetes.io/config.seen"), "config.seen", notes)
    expect(
        node,
        len(metadata.uid) == 32 and set(metadata.uid) <= set("0123456789abcdef"),
        "a UID of 32 hex digits",
        metadata.uid,
    )


@conformance(id="static-own-uid", rules=["SRC-032"], needs=[STATUS])
async def an_explicit_uid_is_kept(node: Node) -> None:
    """metadata.uid of a manifest is the pod's UID."""
    uid = "00000000-0000-0000-0000-00000000c0de"
    await node.apply_static(pod("web", metadata={"uid": uid}))
    await node.wait_running("web")
    expect_equal(node, node.calls("RunPodSandbox")[0].request.config.metadata.uid, uid, "UID")


@conformance(id="static-uid-stable", rules=["SRC-031"], needs=[STATUS, RESTART])
async def the_uid_depends_on_content_and_file_only(node: Node) -> None:
    """The UID of a static pod is the same after a restart of the kubelet; other content gives
    another UID."""
    await node.apply_static(pod("web"))
    await node.apply_static(pod("other"))
    await node.wait_running("web")
    await node.wait_running("other")

    def uid(name: str) -> str:
        return str((node.pod(name) or {})["metadata"]["uid"])

    before = uid("web"), uid("other")
    await node.kubelet.restart()
    await node.wait_running("web")
    await node.wait_running("other")
    expect_equal(node, (uid("web"), uid("other")), before, "UIDs after the restart")
    await node.apply_static(pod("web", metadata={"labels": {"changed": "yes"}}))
    await node.run_until(
        lambda: (
            (node.pod("web") or {"metadata": {"uid": before[0]}})["metadata"]["uid"] != before[0]
        ),
        within_s=limits.STATIC_SUCCESSOR_S + limits.START_S,
        what="another UID for other content",
    )


@conformance(id="static-no-api-references", rules=["SRC-038"], needs=[STATUS])
async def a_static_pod_may_not_use_api_objects(node: Node) -> None:
    """Manifests that name a Secret, a ConfigMap or a ServiceAccount are refused."""
    env = [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    volumes = [{"name": "v", "configMap": {"name": "c"}}]
    await node.apply_static(pod("secret", container("main", env=env)))
    await node.apply_static(pod("configmap", volumes=volumes))
    await node.apply_static(pod("account", serviceAccountName="robot"))
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, listed(node), {f"web-{node.name}"}, "pods")
