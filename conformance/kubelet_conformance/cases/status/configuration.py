"""Where the configuration comes from: the file, the drop-ins, the command line (CFG-001 to 005)."""

import json
from pathlib import Path
from typing import Any

from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

STATUS, RESTART = Feature.STATUS, Feature.RESTART
OWN = {"enforceNodeAllocatable": ["none"]}
"""The suite's kubelets enforce nothing, and say so by an empty list, which a kubelet loses when it
merges drop-ins."""
KIND = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}


def drop_ins(node: Node, **files: Any) -> str:
    """The flag for a directory with these files; `a__b` stands for `b` in a directory `a`. A text
    is written as it is, anything else are fields of a configuration."""
    top = node.machine.host_path("drop-ins")
    for name, content in files.items():
        path = top.joinpath(*name.split("__")).with_suffix(".conf")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            content if isinstance(content, str) else json.dumps({**KIND, **OWN, **content})
        )
    return f"--config-dir={top}"


async def configured(node: Node, *names: str) -> dict[str, Any]:
    """These fields of the configuration that the kubelet shows; None for those it does not."""
    shown = (await node.kubelet.get("/configz")).json()["kubeletconfig"]
    return {name: shown.get(name) for name in names}


@conformance(
    id="config-precedence",
    rules=["CFG-001.1", "CFG-001.2", "CFG-010.2"],
    needs=[STATUS, RESTART],
    node_config={
        "maxPods": 11,
        "podPidsLimit": 5000,
        "registryBurst": 7,
        "featureGates": {"LoggingAlphaOptions": True, "LoggingBetaOptions": True},
    },
)
async def the_command_line_wins_over_drop_ins_and_these_over_the_file(node: Node) -> None:
    """Of file, drop-in and flag the last one that says a field counts, and what nobody says has its
    default; of the feature gates of the file those stay that no flag names."""
    flag = drop_ins(node, one={"maxPods": 12, "podPidsLimit": 6000})
    gates = "--feature-gates=LoggingAlphaOptions=false"
    await node.kubelet.restart(flag, "--max-pods=13", gates)
    names = ("maxPods", "podPidsLimit", "registryBurst", "eventBurst")
    expected = {"maxPods": 13, "podPidsLimit": 6000, "registryBurst": 7, "eventBurst": 100}
    expect_equal(node, await configured(node, *names), expected, "fields")
    gates_shown = (await configured(node, "featureGates"))["featureGates"]
    own = {name: gates_shown.get(name) for name in ("LoggingAlphaOptions", "LoggingBetaOptions")}
    expect_equal(
        node, own, {"LoggingAlphaOptions": False, "LoggingBetaOptions": True}, "feature gates"
    )


@conformance(
    id="config-drop-ins",
    rules=["CFG-003.1", "CFG-003.2", "CFG-003.3"],
    needs=[STATUS, RESTART],
    node_config={
        "registryBurst": 7,
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1%"},
    },
)
async def drop_ins_are_merged_in_the_order_of_their_names(node: Node) -> None:
    """All files that end in .conf, also below the directory, change the configuration one after
    another by name: maps are merged, lists replaced, null stands for the default, unknown fields
    have no effect. Other files are not read."""
    flag = drop_ins(
        node,
        a={"maxPods": 21, "clusterDNS": ["192.0.2.61", "192.0.2.62"], "podPidsLimit": 5000},
        b__z={"maxPods": 22, "evictionHard": {"nodefs.available": "2%"}, "unknownField": 1},
        c={"clusterDNS": ["192.0.2.63"], "registryBurst": None},
    )
    top = Path(flag.partition("=")[2])
    (top / "d.yaml").write_text(json.dumps({**KIND, "maxPods": 23}))
    (top / "e.conf.bak").write_text("no configuration")
    await node.kubelet.restart(flag)
    names = ("maxPods", "clusterDNS", "podPidsLimit", "registryBurst", "evictionHard")
    expected = {
        "maxPods": 22,
        "clusterDNS": ["192.0.2.63"],
        "podPidsLimit": 5000,
        "registryBurst": 10,
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "2%"},
    }
    expect_equal(node, await configured(node, *names), expected, "fields")


@conformance(id="config-drop-in-refused", rules=["CFG-003.1", "CFG-003.3"], needs=[STATUS, RESTART])
async def a_drop_in_that_is_none_ends_the_start(node: Node) -> None:
    """The kubelet does not start with a drop-in without kind or apiVersion, with another kind, or
    with a key twice."""
    texts = (
        json.dumps({"maxPods": 5}),
        json.dumps({"apiVersion": KIND["apiVersion"], "maxPods": 5}),
        json.dumps({**KIND, "kind": "KubeProxyConfiguration"}),
        json.dumps({**KIND, "apiVersion": "kubelet.config.k8s.io/v1"}),
        f"apiVersion: {KIND['apiVersion']}\nkind: {KIND['kind']}\nmaxPods: 5\nmaxPods: 6\n",
    )
    for text in texts:
        flag = drop_ins(node, bad=text)
        if "maxPods: 6" not in text:
            await node.kubelet.refused_start(flag)
            await node.kubelet.start()
    error = await node.kubelet.refused_start(flag)
    expect(node, "maxPods" in error, "the key that is there twice", error)


@conformance(id="config-file-refused", rules=["CFG-002.1", "CFG-002.2"], needs=[STATUS, RESTART])
async def a_file_that_is_no_configuration_ends_the_start(node: Node) -> None:
    """The kubelet does not start with a file of another kind or version, with a value of another
    type than its field's, or with an empty file."""
    file = node.machine.host_path("other.yaml")
    texts = {
        json.dumps({**KIND, "kind": "Pod"}): "Pod",
        json.dumps({**KIND, "apiVersion": "kubelet.config.k8s.io/v1"}): "kubelet.config.k8s.io/v1",
        json.dumps({**KIND, "maxPods": "many"}): "maxPods",
        json.dumps({**KIND, "clusterDNS": "192.0.2.1"}): "clusterDNS",
        "": "empty",
    }
    for text, word in texts.items():
        file.write_text(text)
        error = await node.kubelet.refused_start(f"--config={file}")
        expect(node, word in error, f"{word} in what is said of the file {text!r}", error)
        await node.kubelet.start()


@conformance(
    id="config-relative-paths",
    rules=["CFG-002.3"],
    needs=[STATUS, RESTART],
    node_config={"staticPodPath": "manifests", "podLogsDir": "logs", "resolvConf": "resolv.conf"},
)
async def paths_are_relative_to_the_file(node: Node) -> None:
    """Relative paths of the configuration are looked up beside its file: static pods, logs, the
    name servers."""
    await node.kubelet.stop()
    node.machine.host_path("resolv.conf").write_text("nameserver 192.0.2.99\n")
    await node.kubelet.start()
    await node.apply_static(pod("web", container("main"), dnsPolicy="Default"))
    await node.wait_running("web")
    config = node.calls("RunPodSandbox", pod="web")[0].request.config
    expect_equal(node, list(config.dns_config.servers), ["192.0.2.99"], "name servers")
    logs = str(node.machine.directory("logs"))
    expect(node, config.log_directory.startswith(f"{logs}/"), f"below {logs}", config.log_directory)


@conformance(
    id="config-thresholds",
    rules=["CFG-004.2", "CFG-004.3"],
    needs=[STATUS, RESTART],
    since="1.33",
)
async def thresholds_that_are_said_are_all_there_are(node: Node) -> None:
    """A file that says nothing of evictionHard has five thresholds; one that names some has these
    alone, unless mergeDefaultEvictionSettings adds the others."""
    defaults = {
        "memory.available": "100Mi",
        "nodefs.available": "10%",
        "nodefs.inodesFree": "5%",
        "imagefs.available": "15%",
        "imagefs.inodesFree": "5%",
    }
    await node.kubelet.restart(evictionHard=None)
    shown = await configured(node, "evictionHard")
    expect_equal(node, shown["evictionHard"], defaults, "thresholds of a file that says none")
    own = {"memory.available": "2Mi"}
    for merge, expected in ((False, own), (True, {**defaults, **own})):
        await node.kubelet.restart(evictionHard=own, mergeDefaultEvictionSettings=merge)
        shown = await configured(node, "evictionHard")
        expect_equal(node, shown["evictionHard"], expected, f"thresholds, merged: {merge}")


@conformance(id="config-all-mistakes", rules=["CFG-005"], needs=[STATUS, RESTART])
async def all_mistakes_are_told_at_once(node: Node) -> None:
    """A configuration with several wrong values ends the start, and each of them is told."""
    error = await node.kubelet.refused_start(
        maxPods=-1, nodeLeaseDurationSeconds=-2, eventBurst=-3, registryBurst=-4
    )
    for text in (
        "maxPods (--max-pods) -1 must not be a negative number",
        "nodeLeaseDurationSeconds must be greater than 0",
        "eventBurst (--event-burst) -3 must not be a negative number",
        "registryBurst (--registry-burst) -4 must not be a negative number",
    ):
        whole = f"invalid configuration: {text}"
        expect(node, whole in error, f"a kubelet that ends with {whole!r}", error)
