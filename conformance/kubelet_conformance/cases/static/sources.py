"""The manifest directory: which files are read, and what a static pod is made of them."""

import re

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

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


@conformance(id="static-yaml", rules=["SRC-004.1", "SRC-002.1", "SRC-008.1"], needs=[], alone=True)
async def a_yaml_manifest_starts_a_pod(node: Node) -> None:
    """A YAML file that is put into the directory starts its pod within seconds, at the start of the
    kubelet and later."""
    for name in ("web", "web2"):
        node.write_manifest(f"{name}.yaml", YAML.format(name=name))
        await node.run_until(
            lambda name=name: node.count("StartContainer", pod=name),  # type: ignore[misc]
            within_s=limits.START_S,
            what=f"{name} starts",
        )
    expect_equal(node, listed(node), {f"web-{node.name}", f"web2-{node.name}"}, "pods")


@conformance(
    id="static-ignored-files",
    rules=["SRC-003.1", "SRC-003.2", "SRC-008.2"],
    needs=[STATUS],
    node_config=OFTEN,
    alone=True,
)
async def hidden_files_and_sub_directories_are_ignored(node: Node) -> None:
    """Files whose name begins with a dot, and sub-directories, are not read, neither when the whole
    directory is read nor when they change."""
    node.write_manifest(".hidden.yaml", YAML.format(name="hidden"))
    node.write_manifest("below/pod.yaml", YAML.format(name="below"))
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    node.write_manifest(".hidden.yaml", YAML.format(name="hidden2"))
    node.write_manifest("below/pod.yaml", YAML.format(name="below2"))
    await node.run_for(2 * PERIOD_S)
    expect_equal(node, listed(node), {f"web-{node.name}"}, "pods")


NO_POD = """\
apiVersion: v1
kind: PodList
items:
- metadata: {name: item}
  spec: {containers: [{name: main, image: localhost/busybox:1}]}
"""
NO_JSON = """\
{apiVersion: v1, kind: Pod, metadata: {name: flow},
 spec: {containers: [{name: main, image: localhost/busybox:1}]}}
"""


@conformance(
    id="static-bad-beside-good",
    rules=["SRC-005.1", "SRC-004.1", "SRC-004.2", "SRC-037.1"],
    needs=[STATUS],
    node_config=OFTEN,
    alone=True,
)
async def a_bad_manifest_does_not_block_the_good_ones(node: Node) -> None:
    """Beside files with garbage, a list of pods, a wrong kind, a pod without name, or YAML that
    begins like JSON the pods of good manifests run, and no other."""
    node.write_manifest("a-garbage.yaml", "{]")
    other = YAML.format(name="template").replace("kind: Pod", "kind: PodTemplate")
    node.write_manifest("b-template.yaml", other)
    node.write_manifest("c-nameless.yaml", YAML.format(name="").replace("  name: \n", ""))
    named_later = YAML.format(name="x").replace("  name: x\n", "  generateName: x-\n")
    node.write_manifest("d-named-later.yaml", named_later)
    node.write_manifest("e-list.yaml", NO_POD)
    node.write_manifest("f-flow.yaml", NO_JSON)
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.apply_static(pod("web2"))
    await node.wait_running("web2")
    expect_equal(node, listed(node), {f"web-{node.name}", f"web2-{node.name}"}, "pods")


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


UNKNOWN = """\
apiVersion: v1
kind: Pod
metadata: {name: c, tomorrow: 1}
spec:
  tomorrow: {a: 1}
  containers:
  - {name: main, image: localhost/busybox:1, command: [sleep, '1000'], tomorrow: [1]}
tomorrow: x
"""


@conformance(
    id="static-odd-values",
    rules=["SRC-004.6", "SRC-004.2", "SRC-004.5"],
    needs=[STATUS],
    node_config=OFTEN,
    alone=True,
)
async def odd_spellings_are_read(node: Node) -> None:
    """Whole numbers written as floats, `y` for true, an emoji escaped in JSON, and fields that this
    kubelet does not know are accepted."""
    node.write_manifest("a.yaml", NUMBERS)
    node.write_manifest("b.json", EMOJI)
    node.write_manifest("c.yaml", UNKNOWN)
    await node.wait_running("a")
    await node.wait_running("b")
    await node.wait_running("c")


@conformance(
    id="static-broken-later",
    rules=["SRC-005.2", "SRC-002.2"],
    needs=[STATUS],
    node_config=OFTEN,
    alone=True,
)
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


@conformance(id="static-first-document", rules=["SRC-004.4"], needs=[STATUS], alone=True)
async def only_the_first_document_of_a_file_counts(node: Node) -> None:
    """Of a YAML file with several documents only the first is used."""
    node.write_manifest("two.yaml", YAML.format(name="one") + "---\n" + YAML.format(name="two"))
    await node.run_until(lambda: node.count("StartContainer"), within_s=limits.START_S)
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, listed(node), {f"one-{node.name}"}, "pods")


@conformance(
    id="static-identity",
    rules=["SRC-030.2", "SRC-033.1", "SRC-033.2", "SRC-034.1", "SRC-034.2", "SRC-034.3"],
    needs=[STATUS],
)
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
    seen_at = notes.get("kubernetes.io/config.seen", "")
    zoned = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(Z|[+-]\d\d:\d\d)"
    expect(node, re.fullmatch(zoned, seen_at), "config.seen with nine fractional digits", seen_at)
    expect(
        node,
        len(metadata.uid) == 32 and set(metadata.uid) <= set("0123456789abcdef"),
        "a UID of 32 hex digits",
        metadata.uid,
    )


@conformance(id="static-own-uid", rules=["SRC-032"], needs=[STATUS], alone=True)
async def an_explicit_uid_is_kept(node: Node) -> None:
    """metadata.uid of a manifest is the pod's UID."""
    uid = "00000000-0000-0000-0000-00000000c0de"
    await node.apply_static(pod("web", metadata={"uid": uid}))
    await node.wait_running("web")
    expect_equal(node, node.calls("RunPodSandbox")[0].request.config.metadata.uid, uid, "UID")


@conformance(id="static-uid-stable", rules=["SRC-031.1", "SRC-031.2"], needs=[STATUS, RESTART])
async def the_uid_depends_on_content_and_file_only(node: Node) -> None:
    """The UID of a static pod is the same after a restart of the kubelet, even if the file was
    written again meanwhile; other content gives another UID."""
    await node.apply_static(pod("web"))
    await node.apply_static(pod("other"))
    await node.wait_running("web")
    await node.wait_running("other")

    def uid(name: str) -> str:
        return str((node.pod(name) or {})["metadata"]["uid"])

    before = uid("web"), uid("other")
    await node.kubelet.stop()
    await node.apply_static(pod("other"))
    await node.kubelet.start()
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
