"""The variables of containers: LIFE-137, decided from what the node and the API server have."""

from __future__ import annotations

from typing import Any

import pytest
from lightkube.models.core_v1 import Secret, Service
from msgspec import convert
from pods import make_pod

from kubeobjects.quantity import NANO
from refkubelet.kuberuntime.common.runtime_deps import CONFIG_MAP, SECRET, ApiObjects
from refkubelet.kuberuntime.config.environment import (
    EnvironmentFacts,
    environment,
    referenced_objects,
    references,
)
from refkubelet.kuberuntime.config.service_environment import service_environment
from refkubelet.kuberuntime.object_source import secret_data
from refkubelet.model.addresses import by_family
from refkubelet.model.downward_api import NodeAndPodFacts, VariableError
from refkubelet.model.objects import Pod

GIB = 1 << 30


def variables(
    env: Any = None,
    *,
    facts: EnvironmentFacts | None = None,
    env_from: Any = None,
    meta: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, str]:
    main = {"name": "main", "env": env or [], "envFrom": env_from or []}
    main |= spec.pop("main", {})
    pod = make_pod(main, meta=meta, **spec)
    return environment(first(pod), pod, facts or EnvironmentFacts())


def first(pod: Pod) -> Any:
    return pod.spec.containers[0]


def with_objects(**data: dict[str, str] | None) -> EnvironmentFacts:
    """cm_<name>, secret_<name> -> data."""
    kinds = {"cm": CONFIG_MAP, "secret": SECRET}
    keys = {(kinds[k.split("_")[0]], k.split("_")[1]): v for k, v in data.items()}
    return EnvironmentFacts(objects=ApiObjects(keys))


def service(name: str, namespace: str, ip: str, *ports: dict[str, Any]) -> Service:
    return convert(
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterIP": ip, "ports": list(ports)},
        },
        Service,
    )


WEB = service("web-shop", "default", "10.1.0.2", {"name": "http-alt", "port": 80}, {"port": 53})
OTHER = service("api", "other", "10.1.0.3", {"port": 1, "protocol": "UDP"})
MASTER = service("kubernetes", "default", "fd00::1", {"name": "https", "port": 443})
HEADLESS = service("db", "default", "None", {"port": 5432})


def test_env_beats_env_from_beats_services_LIFE_137() -> None:
    facts = EnvironmentFacts(
        objects=ApiObjects(
            {
                (CONFIG_MAP, "a"): {"X": "a", "Y": "a", "WEB_SHOP_SERVICE_HOST": "cm"},
                (CONFIG_MAP, "b"): {"X": "b"},
                (SECRET, "s"): {"KEY": "s"},
            },
            (WEB,),
        )
    )
    env_from = [
        {"configMapRef": {"name": "a"}},
        {"configMapRef": {"name": "b"}},
        {"prefix": "P_", "secretRef": {"name": "s"}},
    ]
    env = [{"name": "Y", "value": "own"}, {"name": "Z", "value": "$(X)-$(WEB_SHOP_SERVICE_PORT)"}]
    made = variables(env, facts=facts, env_from=env_from)
    assert (made["X"], made["Y"], made["Z"], made["P_KEY"]) == ("b", "own", "b-80", "s")
    assert made["WEB_SHOP_SERVICE_HOST"] == "cm"


def test_service_variables_of_the_own_namespace_LIFE_137() -> None:
    made = service_environment((WEB, OTHER, HEADLESS), "default", links=True)
    assert made == {
        "WEB_SHOP_SERVICE_HOST": "10.1.0.2",
        "WEB_SHOP_SERVICE_PORT": "80",
        "WEB_SHOP_SERVICE_PORT_HTTP_ALT": "80",
        "WEB_SHOP_PORT": "tcp://10.1.0.2:80",
        "WEB_SHOP_PORT_80_TCP": "tcp://10.1.0.2:80",
        "WEB_SHOP_PORT_80_TCP_PROTO": "tcp",
        "WEB_SHOP_PORT_80_TCP_PORT": "80",
        "WEB_SHOP_PORT_80_TCP_ADDR": "10.1.0.2",
        "WEB_SHOP_PORT_53_TCP": "tcp://10.1.0.2:53",
        "WEB_SHOP_PORT_53_TCP_PROTO": "tcp",
        "WEB_SHOP_PORT_53_TCP_PORT": "53",
        "WEB_SHOP_PORT_53_TCP_ADDR": "10.1.0.2",
    }


def test_services_without_addresses_make_no_variables_LIFE_137() -> None:
    silent = (Service(), HEADLESS, service("none", "default", ""))
    assert service_environment(silent, "default", links=True) == {}
    made = service_environment((*silent, WEB), "default", links=True)
    assert made == service_environment((WEB,), "default", links=True)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", set()),
        ("plain $A $( $(A", set()),
        ("$(A)-$$(B)-$(C)$(A)", {"A", "C"}),
        ("$$$(A)", {"A"}),
        ("$()", {""}),
    ],
)
def test_the_references_in_a_text_NODE_211(text: str, names: set[str]) -> None:
    assert references(text) == names


def test_without_service_links_only_the_master_is_known_LIFE_137() -> None:
    facts = EnvironmentFacts(objects=ApiObjects(services=(WEB, OTHER, MASTER)))
    made = variables(facts=facts, meta={"namespace": "other"}, enableServiceLinks=False)
    assert made["KUBERNETES_PORT"] == "tcp://[fd00::1]:443"
    assert {name.split("_")[0] for name in made} == {"KUBERNETES"}
    linked = variables(facts=facts, meta={"namespace": "other"})
    assert linked["API_PORT_1_UDP"] == "udp://10.1.0.3:1"
    assert "WEB_SHOP_SERVICE_HOST" not in linked


def test_a_service_of_the_own_namespace_wins_over_the_master_LIFE_137() -> None:
    own = service("kubernetes", "other", "10.9.9.9", {"port": 1})
    for order in ((own, MASTER), (MASTER, own)):
        made = service_environment(order, "other", links=True)
        assert made["KUBERNETES_SERVICE_HOST"] == "10.9.9.9"


def test_services_never_listed_stop_all_but_static_pods_LIFE_137_SRC_040() -> None:
    facts = EnvironmentFacts(objects=ApiObjects(services=None))
    with pytest.raises(VariableError, match="services have not yet been read at least once"):
        variables(facts=facts)
    static = {"annotations": {"kubernetes.io/config.source": "file"}}
    assert variables(facts=facts, meta=static) == {}


CM_KEY: dict[str, Any] = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}
SECRET_KEY: dict[str, Any] = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "m", "key": "k"}}}


@pytest.mark.parametrize(
    ("variable", "facts", "text"),
    [
        (CM_KEY, EnvironmentFacts(), "couldn't get configMap default/m, no kubeClient defined"),
        (SECRET_KEY, EnvironmentFacts(), "couldn't get secret default/m, no kubeClient defined"),
        (CM_KEY, with_objects(cm_m=None), 'configmap "m" not found'),
        (SECRET_KEY, with_objects(secret_m=None), 'secret "m" not found'),
        (CM_KEY, with_objects(cm_m={}), "couldn't find key k in ConfigMap default/m"),
        (SECRET_KEY, with_objects(secret_m={}), "couldn't find key k in Secret default/m"),
    ],
)
def test_a_missing_reference_is_an_error_LIFE_137(
    variable: dict[str, Any], facts: EnvironmentFacts, text: str
) -> None:
    with pytest.raises(VariableError) as caught:
        variables([variable], facts=facts)
    assert str(caught.value) == text


def test_an_optional_reference_may_be_missing_LIFE_137() -> None:
    optional = {"configMapKeyRef": {"name": "m", "key": "k", "optional": True}}
    env = [{"name": "A", "valueFrom": optional}, {"name": "B", "value": "[$(A)]"}]
    assert variables(env, facts=with_objects(cm_m=None)) == {"B": "[$(A)]"}
    assert variables(env, facts=with_objects(cm_m={})) == {"B": "[$(A)]"}
    assert variables(env, facts=with_objects(cm_m={"k": "v"})) == {"A": "v", "B": "[v]"}
    source = [{"secretRef": {"name": "m", "optional": True}}]
    assert variables(env_from=source, facts=with_objects(secret_m=None)) == {}


@pytest.mark.parametrize("kind", ["configMapKeyRef", "secretKeyRef"])
@pytest.mark.parametrize("optional", [True, False, None])
def test_keys_that_are_missing_stop_the_container_unless_optional_LIFE_137(
    kind: str, optional: bool | None
) -> None:
    source = {kind: {"name": "m", "key": "k", "optional": optional}}
    for facts in (with_objects(cm_m=None, secret_m=None), with_objects(cm_m={}, secret_m={})):
        if optional:
            assert variables([{"name": "A", "valueFrom": source}], facts=facts) == {}
            continue
        with pytest.raises(VariableError):
            variables([{"name": "A", "valueFrom": source}], facts=facts)


def test_an_empty_value_is_one_LIFE_137() -> None:
    assert variables([{"name": "A"}, {"name": "B", "value": "$(A)x"}]) == {"A": "", "B": "x"}


def test_objects_of_both_ways_are_read_LIFE_137() -> None:
    env_from = [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}, {"prefix": "P"}]
    env = [{"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, CM_KEY]
    pod = make_pod({"name": "main", "env": env, "envFrom": env_from})
    assert referenced_objects(first(pod)) == ((CONFIG_MAP, "a"), (SECRET, "b"), (CONFIG_MAP, "m"))
    nameless = make_pod({"name": "main", "envFrom": [{"configMapRef": {}}, {"secretRef": {}}]})
    assert referenced_objects(first(nameless)) == ((CONFIG_MAP, ""), (SECRET, ""))
    by_key = [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"key": "k"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"key": "k"}}},
    ]
    pod = make_pod({"name": "main", "env": by_key})
    assert referenced_objects(first(pod)) == ((CONFIG_MAP, ""), (SECRET, ""))


def test_every_object_is_read_once_LIFE_137() -> None:
    env = [CM_KEY, {**CM_KEY, "name": "B"}, SECRET_KEY, {"name": "C", "value": "x"}]
    pod = make_pod({"name": "main", "env": env, "envFrom": [{"secretRef": {"name": "t"}}]})
    wanted = ((SECRET, "t"), (CONFIG_MAP, "m"), (SECRET, "m"))
    assert referenced_objects(first(pod)) == wanted


def resource(name: str, container: str | None = None, divisor: str | None = None) -> Any:
    selector = {"resource": name, "containerName": container, "divisor": divisor}
    return {"name": "R", "valueFrom": {"resourceFieldRef": selector}}


ALLOCATABLE = {"cpu": 4 * NANO, "memory": 8 * GIB * NANO, "ephemeral-storage": GIB * NANO}
LIMITED = {"resources": {"limits": {"cpu": "1500m", "memory": "64Mi"}}}
POD_LEVEL = {"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}


@pytest.mark.parametrize(
    ("variable", "spec", "value"),
    [
        (resource("limits.cpu"), {"main": LIMITED}, "2"),  # rounded up
        (resource("limits.cpu", divisor="1m"), {"main": LIMITED}, "1500"),
        (resource("limits.memory", divisor="1Mi"), {"main": LIMITED}, "64"),
        (resource("limits.memory", divisor="1Gi"), {"main": LIMITED}, "1"),
        (resource("requests.cpu"), {"main": LIMITED}, "2"),  # defaults to the limit
        (resource("requests.memory"), {}, "0"),
        (resource("limits.cpu"), {}, "4"),
        (resource("limits.ephemeral-storage"), {}, str(GIB)),
        (resource("limits.hugepages-2Mi"), {}, "0"),
        (resource("limits.memory", divisor="0"), POD_LEVEL, str(GIB)),
        (resource("limits.cpu"), POD_LEVEL, "2"),
        (resource("limits.ephemeral-storage"), POD_LEVEL, str(GIB)),
        (resource("limits.cpu", "setup"), {"init": ({"name": "setup"},)}, "0"),
        (resource("limits.cpu", "setup"), {"init": ({"name": "setup", **LIMITED},)}, "2"),
        (resource("limits.cpu", "main"), {}, "4"),
        (resource("requests.cpu"), POD_LEVEL, "0"),
    ],
)
def test_resources_of_containers_LIFE_137(variable: Any, spec: dict[str, Any], value: str) -> None:
    facts = EnvironmentFacts(NodeAndPodFacts(allocatable=ALLOCATABLE))
    assert variables([variable], facts=facts, **spec) == {"R": value}


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        (resource("limits.gpu"), "unsupported container resource : limits.gpu"),
        (resource("usage.cpu"), "unsupported container resource : usage.cpu"),
        (resource("limits.cpu", "nobody"), "container nobody not found"),
        (
            {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "spec.nothing"}}},
            "field label not supported: spec.nothing",
        ),
        (
            {"name": "N", "valueFrom": {}},
            "env N of container main: valueFrom names no source that this kubelet knows (fieldRef, "
            "resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef)",
        ),
    ],
)
def test_impossible_variables_say_why_LIFE_137(variable: Any, text: str) -> None:
    with pytest.raises(VariableError) as refused:
        variables([variable])
    assert str(refused.value) == text


def test_fields_of_the_pod_LIFE_137() -> None:
    paths = {
        "A": "metadata.annotations['note']",
        "L": "metadata.labels['none']",
        "NAME": "metadata.name",
        "SPACE": "metadata.namespace",
        "IP": "status.podIP",
        "U": "metadata.uid",
        "S": "spec.serviceAccountName",
        "N": "spec.nodeName",
        "H": "status.hostIP",
        "HS": "status.hostIPs",
        "P": "status.podIPs",
    }
    env = [{"name": n, "valueFrom": {"fieldRef": {"fieldPath": p}}} for n, p in paths.items()]
    facts = NodeAndPodFacts(("10.0.0.9", "fd00::9"), ("192.0.2.1", "192.0.2.2"), "n1")
    made = variables(
        env,
        facts=EnvironmentFacts(facts),
        meta={"annotations": {"note": "hello"}},
        serviceAccountName="robot",
    )
    assert made == {
        "A": "hello",
        "L": "",
        "NAME": "web",
        "SPACE": "default",
        "IP": "10.0.0.9",
        "U": "uid-web",
        "S": "robot",
        "N": "n1",
        "H": "192.0.2.1",
        "HS": "192.0.2.1,192.0.2.2",
        "P": "10.0.0.9,fd00::9",
    }


def test_without_a_node_nothing_stands_in_for_limits_LIFE_137() -> None:
    for spec in ({}, POD_LEVEL):
        assert variables([resource("limits.cpu")], **spec) == {"R": "0"}


def test_secrets_are_decoded_and_bad_ones_named() -> None:
    meta = {"name": "s"}
    good = convert({"metadata": meta, "data": {"a": "aGk=", "b": "/w=="}}, Secret)
    assert secret_data(good) == {"a": "hi", "b": "\udcff"}
    bad = convert({"metadata": meta, "data": {"a": "%"}}, Secret)
    with pytest.raises(VariableError, match="key a of secret s is not base64"):
        secret_data(bad)


@pytest.mark.parametrize(
    ("pod_ips", "node_ips", "wanted"),
    [
        (("10.0.0.1",), (), ("10.0.0.1",)),
        (("fd00::1", "10.0.0.1"), (), ("10.0.0.1", "fd00::1")),
        (("10.0.0.1", "fd00::1"), ("fd00::9",), ("fd00::1", "10.0.0.1")),
        (("10.0.0.1", "10.0.0.2", "fd00::1"), ("192.0.2.1",), ("10.0.0.1", "fd00::1")),
        (("fd00::1",), ("192.0.2.1",), ("fd00::1",)),
        ((), ("192.0.2.1",), ()),
    ],
)
def test_addresses_come_in_the_nodes_family_first_LIFE_176(
    pod_ips: tuple[str, ...], node_ips: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    assert by_family(pod_ips, node_ips) == wanted
