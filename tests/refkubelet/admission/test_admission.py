"""Admission: operating system and room on the node; the first refusal wins."""

from __future__ import annotations

from typing import Any
from unittest.mock import AsyncMock

import msgspec
import pytest
from pods import container, make_pod

from kubeobjects.quantity import NANO
from refkubelet.admission.admit_handler import AdmitHandler, PodAdmitAttributes, Rejection, admit
from refkubelet.admission.features import features_supported
from refkubelet.admission.node_fit import NodeView, operating_system, supplemental_groups
from refkubelet.admission.predicates import InUse, PredicateDeps, predicates
from refkubelet.admission.rejection_reasons import KNOWN, reason_label
from refkubelet.admission.resource_fit import extended_resources, shortages
from refkubelet.admission.sysctls import normal_name, sysctls_allowed
from refkubelet.model.objects import Node, Pod, PodStatus
from refkubelet.model.resources import requests_in_use

GI = 1024**3
NODE = {
    "pods": 3 * NANO,
    "cpu": 2 * NANO,
    "memory": 4 * GI * NANO,
    "ephemeral-storage": 10 * GI * NANO,
    "example.com/known": 4 * NANO,
}


def pod(**requests: str) -> Pod:
    """A pod that asks for these amounts; in names, `_` is `-`."""
    named = {name.replace("_", "-"): amount for name, amount in requests.items()}
    return make_pod(container(requests=named))


@pytest.mark.parametrize(
    ("wanted", "active", "reason", "numbers"),
    [
        (pod(), [], None, ""),
        (pod(), [pod(), pod()], None, ""),
        (pod(), [pod(), pod(), pod()], "OutOfpods", "pods, requested: 1, used: 3, capacity: 3"),
        (pod(cpu="64"), [], "OutOfcpu", "cpu, requested: 64000, used: 0, capacity: 2000"),
        (pod(cpu="1500m"), [pod(cpu="500m")], None, ""),
        (
            pod(cpu="1501m"),
            [pod(cpu="500m")],
            "OutOfcpu",
            "cpu, requested: 1501, used: 500, capacity: 2000",
        ),
        (
            pod(memory="5Gi"),
            [],
            "OutOfmemory",
            f"memory, requested: {5 * GI}, used: 0, capacity: {4 * GI}",
        ),
        (
            pod(ephemeral_storage="11Gi"),
            [],
            "OutOfephemeral-storage",
            f"ephemeral-storage, requested: {11 * GI}, used: 0, capacity: {10 * GI}",
        ),
        (pod(**{"example.com/thing": "9"}), [], None, ""),
        (
            pod(**{"example.com/known": "5", "example.com/a-thing": "9"}),
            [],
            "OutOfexample.com/known",
            "example.com/known, requested: 5, used: 0, capacity: 4",
        ),
        (
            pod(**{"example.com/known": "3"}),
            [pod(**{"example.com/known": "2"})],
            "OutOfexample.com/known",
            "example.com/known, requested: 3, used: 2, capacity: 4",
        ),
        (
            pod(**{"hugepages-2Mi": "2Mi"}),
            [],
            "OutOfhugepages-2Mi",
            f"hugepages-2Mi, requested: {2 * 1024**2}, used: 0, capacity: 0",
        ),
    ],
)
def test_room_LIFE_225(wanted: Pod, active: list[Pod], reason: str | None, numbers: str) -> None:
    found = shortages(wanted, active, NODE)
    if reason is None:
        assert found == ()
    else:
        message = f"Node didn't have enough resource: {numbers}"
        assert [(one.reason, one.message) for one in found] == [(reason, message)]


def test_a_pod_without_requests_runs_on_a_full_node_LIFE_225() -> None:
    assert shortages(pod(), [pod(cpu="2")], NODE) == ()


def test_all_shortages_are_told_in_order_PREE_002() -> None:
    wanted = pod(**{"example.com/known": "5", "memory": "5Gi", "cpu": "2500m"})
    found = shortages(wanted, [pod(cpu="500m"), pod(), pod()], NODE)
    told = [(one.resource, one.missing) for one in found]
    assert told == [("pods", 1), ("cpu", 1000), ("memory", GI), ("example.com/known", 1)]


@pytest.mark.parametrize(
    ("label", "field", "reason"),
    [
        (None, None, None),
        (None, "linux", None),
        ("linux", None, None),
        (None, "windows", "PodOSNotSupported"),
        ("windows", "linux", "PodOSSelectorNodeLabelDoesNotMatch"),
    ],
)
def test_operating_system_LIFE_224(
    label: str | None, field: str | None, reason: str | None
) -> None:
    labels = {"kubernetes.io/os": label} if label else {}
    spec = {"os": {"name": field}} if field else {}
    rejection = operating_system(make_pod(meta={"labels": labels}, **spec))
    assert (rejection.reason if rejection else None) == reason


@pytest.mark.parametrize(
    ("policy", "strict_groups", "refused"),
    [("Strict", False, True), ("Strict", True, False), ("Merge", False, False)],
)
def test_supplemental_groups_LIFE_224(policy: str, strict_groups: bool, refused: bool) -> None:
    asked = make_pod(securityContext={"supplementalGroupsPolicy": policy})
    told = supplemental_groups(asked, NodeView("n1", strict_groups=strict_groups))
    text = "SupplementalGroupsPolicy=Strict is not supported in this node"
    wanted = Rejection("SupplementalGroupsPolicyNotSupported", text) if refused else None
    assert told == wanted


async def test_the_first_refusal_wins_and_no_later_handler_is_asked() -> None:
    asked: list[str] = []

    def handler(name: str, answer: Rejection | None) -> AdmitHandler:
        def ask(attributes: PodAdmitAttributes) -> Rejection | None:
            asked.append(name)
            return answer

        return ask

    refused = Rejection("A", "a")
    slow: AdmitHandler = AsyncMock(side_effect=handler("slow", None))
    handlers = [slow, handler("one", None), handler("two", refused), handler("three", None)]
    assert await admit(PodAdmitAttributes(pod()), handlers) is refused
    assert asked == ["slow", "one", "two"]


def predicate_handler(**deps: Any) -> AdmitHandler:
    return predicates(PredicateDeps(lambda: NodeView("n1"), lambda: NODE, **deps))


async def test_labels_that_have_just_come_count_LIFE_226() -> None:
    selects = PodAdmitAttributes(make_pod(nodeSelector={"zone": "a"}))
    labelled = AsyncMock(return_value=NodeView("n1", {"zone": "a"}))
    silent = AsyncMock(return_value=None)
    assert await admit(selects, [predicate_handler(fresh_node=labelled)]) is None
    for handler in (predicate_handler(fresh_node=silent), predicate_handler()):
        refused = await admit(selects, [handler])
        assert refused is not None
        assert refused.reason == "NodeAffinity"


async def test_resources_are_told_before_affinity_and_the_node_is_not_asked_for_LIFE_225() -> None:
    selects = make_pod(nodeSelector={"zone": "a"})
    fresh_node = AsyncMock(return_value=None)
    full = PodAdmitAttributes(selects, (pod(), pod(), pod()))
    refused = await admit(full, [predicate_handler(fresh_node=fresh_node)])
    assert refused is not None
    assert refused.reason == "OutOfpods"
    fresh_node.assert_not_called()


RULE = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
RESTARTS_ALL: dict[str, Any] = {"containers": [container(restartPolicyRules=[RULE])]}
INIT_DOES: dict[str, Any] = {"init": [container("init", restartPolicyRules=[RULE])]}
HAS_RESOURCES: dict[str, Any] = {"resources": {"requests": {"cpu": "1"}}}
OWN_USERS: dict[str, Any] = {"hostNetwork": True, "hostUsers": False}
NO_RESTART_ALL = {"RestartAllContainersOnContainerExits": False}
MISSING = "Pod requires node features that are not available: {}"
RESTART_ALL = "RestartAllContainersOnContainerExits"


@pytest.mark.parametrize(
    ("spec", "gates", "reason", "message"),
    [
        (HAS_RESOURCES, {}, None, ""),
        (
            HAS_RESOURCES,
            {"PodLevelResources": False},
            "PodLevelResourcesNotSupported",
            "PodLevelResources feature gate is disabled",
        ),
        ({}, {"PodLevelResources": False}, None, ""),
        (RESTARTS_ALL, {}, None, ""),
        (RESTARTS_ALL, NO_RESTART_ALL, "PodFeatureUnsupported", MISSING.format(RESTART_ALL)),
        (INIT_DOES, NO_RESTART_ALL, "PodFeatureUnsupported", MISSING.format(RESTART_ALL)),
        (RESTARTS_ALL, NO_RESTART_ALL | {"NodeDeclaredFeatures": False}, None, ""),
        (
            OWN_USERS,
            {},
            "PodFeatureUnsupported",
            MISSING.format("UserNamespacesHostNetworkSupport"),
        ),
        (OWN_USERS | {"hostUsers": None}, {}, None, ""),
        (OWN_USERS | {"hostNetwork": None}, {}, None, ""),
        (
            RESTARTS_ALL | {"hostNetwork": True, "hostUsers": False},
            NO_RESTART_ALL,
            "PodFeatureUnsupported",
            MISSING.format(f"{RESTART_ALL}, UserNamespacesHostNetworkSupport"),
        ),
    ],
)
def test_features_LIFE_228(
    spec: dict[str, Any], gates: dict[str, bool], reason: str | None, message: str
) -> None:
    asked = PodAdmitAttributes(make_pod(**spec))
    wanted = Rejection(reason, message) if reason else None
    assert features_supported(gates)(asked) == wanted


def test_others_take_what_they_have_until_they_have_less_LIFE_225_CG_061() -> None:
    """A container that is to shrink from 2 CPUs to 1 has 2 until its status says otherwise."""
    shrinking = pod(cpu="1")
    told = {"name": "main", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
    running = {**told, "resources": {"requests": {"cpu": "2"}}}
    shrinking.status = PodStatus.from_dict({"containerStatuses": [running]})
    (short,) = shortages(pod(cpu="1"), [shrinking], NODE)
    assert (short.resource, short.used) == ("cpu", 2000)


def test_what_pods_occupy_is_looked_up_anew_for_pods_that_have_changed_CG_061() -> None:
    one, other = pod(cpu="1"), pod(cpu="2")
    in_use = InUse()
    for pods in ([one], [one, other], [pod(cpu="3"), one], [], [other]):
        assert in_use.of(pods) == [requests_in_use(each) for each in pods]


def test_what_is_said_of_another_operating_system_LIFE_224() -> None:
    by_label = operating_system(make_pod(meta={"labels": {"kubernetes.io/os": "windows"}}))
    assert by_label == Rejection(
        "PodOSSelectorNodeLabelDoesNotMatch",
        "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    )
    assert operating_system(make_pod(os={"name": "windows"})) == Rejection(
        "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
    )


def test_extended_resources_are_those_with_a_slash() -> None:
    amounts = {"cpu": "2", "example.com/a": "3", "hugepages-2Mi": "0", "b.io/c": "1k"}
    node = msgspec.convert({"status": {"allocatable": amounts}}, Node)
    assert extended_resources(node) == {"example.com/a": 3 * NANO, "b.io/c": 1000 * NANO}
    for empty in ({}, {"status": {}}):
        assert extended_resources(msgspec.convert(empty, Node)) == {}


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        *((reason, reason) for reason in sorted(KNOWN)),
        ("OutOfexample.com/gpu", "OutOfExtendedResources"),
        ("OutOf", "OutOfExtendedResources"),
        ("NodePorts", "Other"),
        ("outOfcpu", "Other"),
        ("", "Other"),
    ],
)
def test_reasons_that_metrics_count(reason: str, label: str) -> None:
    assert reason_label(reason) == label


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("kernel.sem", "kernel.sem"),
        ("kernel/sem", "kernel.sem"),
        ("net/ipv4/conf/eth0.1/rp_filter", "net.ipv4.conf.eth0/1.rp_filter"),
        ("net.ipv4.conf.eth0/1.rp_filter", "net.ipv4.conf.eth0/1.rp_filter"),
        ("kernel", "kernel"),
        ("Xa.b/c", "Xa.b/c"),
    ],
)
def test_names_of_sysctls_with_slashes_LIFE_222(name: str, normal: str) -> None:
    assert normal_name(name) == normal


def test_unsafe_sysctls_are_allowed_by_name_or_beginning_LIFE_222() -> None:
    handler = sysctls_allowed(["kernel.msg*", "net/core/somaxconn"])

    def refused(name: str) -> bool:
        context = {"sysctls": [{"name": name, "value": "1"}]}
        return handler(PodAdmitAttributes(make_pod(securityContext=context))) is not None

    names = ("kernel.msgmax", "kernel.msg", "net.core.somaxconn", "kernel.ms", "net.core.somaxcon")
    assert [refused(name) for name in names] == [False, False, False, True, True]
    assert refused("net.core.somaxconn2")
