"""Admission by what the node is: settings, profiles, affinity, name, host ports, taints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from node_world import NODE, running_node
from pods import make_pod, manifest

from refkubelet.admission.admit_handler import PodAdmitAttributes
from refkubelet.admission.apparmor import apparmor_enforceable
from refkubelet.admission.node_fit import NodeView, mismatches, node_view
from refkubelet.admission.sysctls import sysctls_allowed
from refkubelet.host.real_machine import apparmor_enabled
from refkubelet.model.objects import Node as NodeObject
from refkubelet.model.objects import Pod

pytestmark = pytest.mark.virtual_time

VIEW = NodeView("n1", {"zone": "a", "cores": "8"}, (("gone", "yes", "NoExecute"),))
TOLERANT = [{"key": "gone", "operator": "Exists"}]


def pod(**fields: Any) -> Pod:
    """A pod that tolerates the node's taint, unless `fields` say otherwise."""
    return make_pod(**{"tolerations": TOLERANT, **fields})


def annotated(profile: str) -> Pod:
    """With the annotation that older clusters used."""
    key = "container.apparmor.security.beta.kubernetes.io/main"
    return make_pod(meta={"annotations": {key: profile}})


def refusal(of: Pod, *active: Pod, view: NodeView = VIEW) -> tuple[str, str] | None:
    found = mismatches(of, active, view)
    return (found[0].reason, found[0].message) if found else None


# Sysctls


@pytest.mark.parametrize(
    ("name", "spec", "told"),
    [
        ("net.ipv4.tcp_syncookies", {}, None),
        ("net/ipv4/tcp_syncookies", {}, None),
        ("kernel.shm_rmid_forced", {}, None),
        ("kernel.msgmax", {}, None),
        ("net.core.somaxconn", {}, '"net.core.somaxconn" not allowlisted'),
        ("kernel.sem", {}, '"kernel.sem" not allowlisted'),
        (
            "net.ipv4.tcp_syncookies",
            {"hostNetwork": True},
            '"net.ipv4.tcp_syncookies" not allowed with host Net enabled',
        ),
        ("net.ipv4.tcp_syncookies", {"hostIPC": True}, None),
        (
            "kernel.shm_rmid_forced",
            {"hostIPC": True},
            '"kernel.shm_rmid_forced" not allowed with host IPC enabled',
        ),
        ("kernel.shm_rmid_forced", {"hostNetwork": True}, None),
        ("kernel.msgmax", {"hostIPC": True}, '"kernel.msgmax" not allowed with host IPC enabled'),
    ],
)
def test_sysctls_LIFE_222(name: str, spec: dict[str, Any], told: str | None) -> None:
    asked = pod(securityContext={"sysctls": [{"name": name, "value": "1"}]}, **spec)
    found = sysctls_allowed(("kernel/msg*",))(PodAdmitAttributes(asked))
    wanted = ("SysctlForbidden", f"forbidden sysctl: {told}") if told else None
    assert ((found.reason, found.message) if found else None) == wanted
    assert sysctls_allowed()(PodAdmitAttributes(pod())) is None


# AppArmor


def profiled(kind: str) -> dict[str, Any]:
    return {"securityContext": {"appArmorProfile": {"type": kind}}}


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (pod(), False),
        (pod(**profiled("RuntimeDefault")), True),
        (pod(**profiled("Unconfined")), False),
        (pod(containers=[{"name": "a"}, {"name": "b"} | profiled("Localhost")]), True),
        (pod(initContainers=[{"name": "i"} | profiled("RuntimeDefault")]), True),
        (pod(ephemeralContainers=[{"name": "e"} | profiled("RuntimeDefault")]), True),
        (annotated("runtime/default"), True),
        (annotated("unconfined"), False),
    ],
)
def test_profiles_that_the_node_cannot_enforce_LIFE_227(asked: Pod, wanted: bool) -> None:
    found = apparmor_enforceable(False)(PodAdmitAttributes(asked))
    told = "Cannot enforce AppArmor: AppArmor is not enabled on the host"
    assert ((found.reason, found.message) if found else None) == (
        ("AppArmor", told) if wanted else None
    )
    assert apparmor_enforceable(True)(PodAdmitAttributes(asked)) is None


@pytest.mark.parametrize(("phase", "asked"), [("Pending", True), ("Running", False)])
def test_a_pod_that_ran_before_is_not_asked_again_LIFE_227(phase: str, asked: bool) -> None:
    one = pod(phase=phase, **profiled("RuntimeDefault"))
    assert (apparmor_enforceable(False)(PodAdmitAttributes(one)) is not None) is asked


@pytest.mark.parametrize(("text", "enabled"), [("Y\n", True), ("N\n", False), (None, False)])
def test_the_kernel_says_whether_it_has_apparmor(
    text: str | None, enabled: bool, tmp_path: Path
) -> None:
    if text is not None:
        place = tmp_path / "sys/module/apparmor/parameters"
        place.mkdir(parents=True)
        (place / "enabled").write_text(text)
    assert apparmor_enabled(tmp_path) is enabled


# Affinity


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"nodeAffinity": {kind: {"nodeSelectorTerms": list(terms)}}}}


def label(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({}, True),
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "a", "cores": "9"}}, False),
        ({"nodeSelector": {"no": "such"}}, False),
        (required({"matchExpressions": [label("zone", "In", "a", "b")]}), True),
        (required({"matchExpressions": [label("zone", "In", "b")]}), False),
        (required({"matchExpressions": [label("zone", "NotIn", "b")]}), True),
        (required({"matchExpressions": [label("zone", "NotIn", "a")]}), False),
        (required({"matchExpressions": [label("rack", "NotIn", "a")]}), True),
        (required({"matchExpressions": [label("zone", "Exists")]}), True),
        (required({"matchExpressions": [label("rack", "Exists")]}), False),
        (required({"matchExpressions": [label("rack", "DoesNotExist")]}), True),
        (required({"matchExpressions": [label("zone", "DoesNotExist")]}), False),
        (required({"matchExpressions": [label("cores", "Gt", "7")]}), True),
        (required({"matchExpressions": [label("cores", "Gt", "8")]}), False),
        (required({"matchExpressions": [label("cores", "Lt", "9")]}), True),
        (required({"matchExpressions": [label("cores", "Lt", "8")]}), False),
        (required({"matchExpressions": [label("zone", "Gt", "1")]}), False),
        (required({"matchExpressions": [label("cores", "Gt", "1", "2")]}), False),
        (required({"matchExpressions": [label("zone", "Near", "a")]}), False),
        (required({"matchFields": [label("metadata.name", "In", "n1")]}), True),
        (required({"matchFields": [label("metadata.name", "In", "n2")]}), False),
        (required({}), False),
        (required(), False),
        (required({}, {"matchExpressions": [label("zone", "Exists")]}), True),
        (
            required({"matchExpressions": [label("zone", "Exists"), label("rack", "Exists")]}),
            False,
        ),
    ],
)
def test_node_affinity_LIFE_226(spec: dict[str, Any], fits: bool) -> None:
    told = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    assert refusal(pod(**spec)) == (None if fits else ("NodeAffinity", told))


# Name, ports, taints


def test_a_pod_of_another_node_LIFE_226() -> None:
    told = "Predicate NodeName failed: node(s) didn't match the requested node name"
    assert refusal(pod(nodeName="n1")) is None
    assert refusal(pod(nodeName="n2")) == ("NodeName", told)


def ported(port: int, *, host_network: bool = False, **more: Any) -> Pod:
    given = more if host_network else {"hostPort": port} | more
    container = {"name": "main", "ports": [{"containerPort": port} | given]}
    return pod(containers=[container], hostNetwork=host_network)


@pytest.mark.parametrize(
    ("wanted", "taken", "free"),
    [
        (ported(80), ported(81), True),
        (ported(80), ported(80), False),
        (ported(80), ported(80, protocol="UDP"), True),
        (ported(80, hostIP="10.0.0.1"), ported(80, hostIP="10.0.0.2"), True),
        (ported(80, hostIP="10.0.0.1"), ported(80, hostIP="10.0.0.1"), False),
        (ported(80, hostIP="10.0.0.1"), ported(80), False),
        (ported(80), ported(80, host_network=True), False),
        (ported(80), ported(80, hostPort=0), True),
        (pod(), ported(80), True),
        (
            ported(80),
            pod(
                initContainers=[
                    {"name": "i", "ports": [{"containerPort": 1, "hostPort": 80}]},
                ]
            ),
            True,
        ),
        (
            ported(80),
            pod(
                initContainers=[
                    {
                        "name": "s",
                        "restartPolicy": "Always",
                        "ports": [{"containerPort": 1, "hostPort": 80}],
                    },
                ]
            ),
            False,
        ),
    ],
)
def test_host_ports_LIFE_226(wanted: Pod, taken: Pod, free: bool) -> None:
    told = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    assert refusal(wanted, pod(), taken) == (None if free else ("NodePorts", told))


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "gone", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "gone", "operator": "Equal", "value": "yes"}, True),
        ({"key": "gone", "value": "yes", "effect": "NoExecute"}, True),
        ({"key": "gone", "value": "no"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "gone", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"value": "yes"}, False),
    ],
)
def test_no_execute_taints_LIFE_226(toleration: dict[str, Any], tolerated: bool) -> None:
    told = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
    asked = pod(tolerations=[toleration])
    assert refusal(asked) == (None if tolerated else ("TaintToleration", told))
    assert refusal(pod(static=True, tolerations=[toleration])) is None


def test_other_taints_are_the_schedulers_business_LIFE_226() -> None:
    view = NodeView("n1", {}, (("a", "", "NoSchedule"), ("b", "", "PreferNoSchedule")))
    assert refusal(pod(tolerations=[]), view=view) is None


def test_the_view_of_a_node_object() -> None:
    assert node_view(NodeObject()) == NodeView("", {})
    given = NodeObject.from_dict(
        {
            "metadata": {"name": "n1", "labels": {"zone": "a"}},
            "spec": {"taints": [{"key": "k", "effect": "NoExecute"}]},
        }
    )
    assert node_view(given) == NodeView("n1", {"zone": "a"}, (("k", "", "NoExecute"),))


async def test_a_static_pod_for_another_kind_of_node_never_starts_LIFE_226_LIFE_011(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest(nodeSelector={"no": "such"}))
        await node.until(lambda: node.phase(f"web-{NODE}") == "Failed")
        status = node.status(f"web-{NODE}")
        assert status is not None
        assert status.reason == "NodeAffinity"
        assert node.write_names() == []
        fine = manifest(name="fine", nodeSelector={"kubernetes.io/hostname": NODE})
        node.apply(fine, "fine.yaml")
        await node.until(lambda: node.phase(f"fine-{NODE}") == "Running")


# What goes wrong


async def test_a_failing_handler_fails_its_own_pod_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_node(tmp_path) as node:
        add = node.kubelet.loop.handlers.new_pods.admission.add

        async def broken(pod: Pod) -> Any:
            if pod.metadata is not None and (pod.metadata.name or "").startswith("bad"):
                raise RuntimeError("a bug")
            return await add(pod)

        vars(node.kubelet.loop.handlers.new_pods.admission)["add"] = broken
        node.apply(manifest(name="bad"), "a.yaml")
        node.apply(manifest(name="good"), "b.yaml")
        await node.until(lambda: node.phase(f"good-{NODE}") == "Running")
        status = node.status(f"bad-{NODE}")
        assert status is not None
        assert (status.phase, status.reason) == ("Failed", "UnexpectedAdmissionError")
        assert "admission of bad" in caplog.text
