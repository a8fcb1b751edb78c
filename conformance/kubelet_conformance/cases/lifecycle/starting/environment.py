"""The environment variables of a container: where their values come from."""

from typing import Any

from kubelet_conformance.cases.lifecycle.starting.config import created
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance
from kubeobjects.quantity import NANO, parse_nano

STATUS, API = Feature.STATUS, Feature.API


def variable(name: str, **source: Any) -> dict[str, Any]:
    """An environment variable with valueFrom."""
    return {"name": name, "valueFrom": source}


def variables(config: Any) -> dict[str, str]:
    """The environment variables in a container's configuration."""
    return {e.key: e.value.decode() if isinstance(e.value, bytes) else e.value for e in config.envs}


@conformance(id="env-expansion", rules=["LIFE-137"], needs=[STATUS])
async def variables_see_those_before_them(node: Node) -> None:
    """`$(NAME)` is replaced by the value of an earlier variable, in values, command and
    arguments."""
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)-$(C)-$$(A)"},
        {"name": "C", "value": "3"},
    ]
    main = container("main", env=env, args=["$(B)", "$(NONE)"])
    await node.apply_static(pod("web", main))
    config = await created(node)
    expect_equal(node, variables(config), {"A": "1", "B": "1-$(C)-$(A)", "C": "3"}, "variables")
    expect_equal(node, list(config.args), ["1-$(C)-$(A)", "$(NONE)"], "arguments")


@conformance(id="env-downward", rules=["LIFE-137"], needs=[STATUS], alone=True)
async def a_container_can_be_told_about_its_pod(node: Node) -> None:
    """fieldRef and resourceFieldRef give a container fields of its pod and its own resources as
    variables; CPU is rounded up."""
    env = [
        variable("NAME", fieldRef={"fieldPath": "metadata.name"}),
        variable("SPACE", fieldRef={"fieldPath": "metadata.namespace"}),
        variable("APP", fieldRef={"fieldPath": "metadata.labels['app']"}),
        variable("NODE", fieldRef={"fieldPath": "spec.nodeName"}),
        variable("IP", fieldRef={"fieldPath": "status.podIP"}),
        variable("CPU", resourceFieldRef={"resource": "limits.cpu"}),
        variable("MEMORY", resourceFieldRef={"resource": "requests.memory", "divisor": "1Mi"}),
    ]
    resources = {"limits": {"cpu": "1100m"}, "requests": {"memory": "20Mi"}}
    main = container("main", env=env, resources=resources)
    await node.apply_static(pod("web", main, metadata={"labels": {"app": "shop"}}))
    env_seen = variables(await created(node))
    await node.wait_running("web")
    ip = (node.pod("web") or {})["status"].get("podIP", "")
    expected = {
        "NAME": f"web-{node.name}",
        "SPACE": "default",
        "APP": "shop",
        "NODE": node.name,
        "IP": ip,
        "CPU": "2",
        "MEMORY": "20",
    }
    expect_equal(node, env_seen, expected, "variables")
    expect(node, ip, "the pod's address in a variable")


@conformance(id="env-objects", rules=["LIFE-137"], needs=[API])
async def config_maps_and_secrets_become_variables(node: Node) -> None:
    """envFrom turns whole objects into variables with a prefix, valueFrom single keys; the latter
    win."""
    await node.api.create_object(
        "configmaps", {"metadata": {"name": "settings"}, "data": {"MODE": "fast", "LEVEL": "3"}}
    )
    await node.api.create_object(
        "secrets", {"metadata": {"name": "keys"}, "data": {"token": "c2VjcmV0"}}
    )
    main = container(
        "main",
        envFrom=[
            {"configMapRef": {"name": "settings"}},
            {"prefix": "S_", "secretRef": {"name": "keys"}},
        ],
        env=[
            {"name": "LEVEL", "value": "own"},
            variable("TOKEN", secretKeyRef={"name": "keys", "key": "token"}),
            variable("NONE", configMapKeyRef={"name": "no", "key": "k", "optional": True}),
        ],
    )
    await node.api.create_pod(pod("web", main, enableServiceLinks=False))
    env_seen = variables(await created(node))
    expected = {"MODE": "fast", "LEVEL": "own", "S_token": "secret", "TOKEN": "secret"}
    expect_equal(node, env_seen, expected, "variables")


@conformance(id="env-missing-object", rules=["LIFE-137", "LIFE-131"], needs=[API])
async def a_missing_config_map_keeps_its_container_waiting(node: Node) -> None:
    """A container whose ConfigMap does not exist waits with CreateContainerConfigError and starts
    when it is created; the pod's other containers start all the same."""
    env = [variable("MODE", configMapKeyRef={"name": "settings", "key": "MODE"})]
    await node.api.create_pod(pod("web", container("main", env=env), container("other")))
    await node.run_until(
        lambda: (
            node.api.container("web", "main").get("state", {}).get("waiting", {}).get("reason")
            == "CreateContainerConfigError"
        ),
        within_s=limits.START_S + limits.NOTICE_S + limits.STATUS_PASS_S,
        what="waiting: CreateContainerConfigError",
    )
    waiting = node.api.container("web", "main")["state"]["waiting"]
    expect_equal(node, waiting.get("message"), 'configmap "settings" not found', "message")
    expect_equal(node, node.count("StartContainer", container="other"), 1, "starts of other")
    await node.api.create_object(
        "configmaps", {"metadata": {"name": "settings"}, "data": {"MODE": "fast"}}
    )
    config = await created(node, within_s=6 * limits.SYNC_ERROR_S)
    expect_equal(node, variables(config).get("MODE"), "fast", "variable MODE")


@conformance(id="env-services", rules=["LIFE-137"], needs=[API])
async def services_of_the_namespace_become_variables(node: Node) -> None:
    """Address and ports of the namespace's services become variables, unless the pod has
    enableServiceLinks false."""
    await node.api.create_object(
        "services",
        {
            "metadata": {"name": "my-shop"},
            "spec": {
                "clusterIP": "10.96.0.77",
                "ports": [{"name": "web", "port": 80, "protocol": "TCP"}],
            },
        },
    )
    await node.run_for(2)
    await node.api.create_pod(pod("linked"))
    await node.run_until(
        lambda: node.count("StartContainer", pod="linked"), within_s=limits.START_S
    )
    await node.api.create_pod(pod("alone", enableServiceLinks=False))
    await node.run_until(lambda: node.count("StartContainer", pod="alone"), within_s=limits.START_S)
    linked, alone = (
        variables(node.calls("CreateContainer", pod=name)[-1].request.config)
        for name in ("linked", "alone")
    )
    shop = {name: value for name, value in linked.items() if name.startswith("MY_SHOP")}
    expected = {
        "MY_SHOP_SERVICE_HOST": "10.96.0.77",
        "MY_SHOP_SERVICE_PORT": "80",
        "MY_SHOP_SERVICE_PORT_WEB": "80",
        "MY_SHOP_PORT": "tcp://10.96.0.77:80",
        "MY_SHOP_PORT_80_TCP": "tcp://10.96.0.77:80",
        "MY_SHOP_PORT_80_TCP_PROTO": "tcp",
        "MY_SHOP_PORT_80_TCP_PORT": "80",
        "MY_SHOP_PORT_80_TCP_ADDR": "10.96.0.77",
    }
    expect_equal(node, shop, expected, "variables of my-shop")
    unlinked = [name for name in alone if name.startswith("MY_SHOP")]
    expect_equal(node, unlinked, [], "variables of my-shop without links")


@conformance(id="env-file-missing", rules=["LIFE-137", "LIFE-131"], needs=[API], since="1.35")
async def a_missing_file_of_variables_keeps_its_container_waiting(node: Node) -> None:
    """A container whose variable comes from a file that is missing in the volume waits with
    CreateContainerConfigError, even if the variable is optional."""
    source = {"volumeName": "shared", "path": "env", "key": "MODE", "optional": True}
    main = container("main", env=[variable("MODE", fileKeyRef=source)])
    other = container("other", volumeMounts=[{"name": "shared", "mountPath": "/shared"}])
    shared = [{"name": "shared", "emptyDir": {}}]
    await node.api.create_pod(pod("web", main, other, volumes=shared))
    await node.run_until(
        lambda: (
            node.api.container("web", "main").get("state", {}).get("waiting", {}).get("message")
        ),
        within_s=limits.START_S + limits.NOTICE_S + limits.STATUS_PASS_S,
        what="main waits with a message",
    )
    waiting = node.api.container("web", "main")["state"]["waiting"]
    waiting_fields = (waiting.get("reason"), waiting["message"])
    expected_fields = ("CreateContainerConfigError", "couldn't parse env file")
    expect_equal(node, waiting_fields, expected_fields, "reason and message")
    expect_equal(node, node.count("CreateContainer", container="main"), 0, "creations of main")


@conformance(id="env-order", rules=["LIFE-137.1", "LIFE-137.2", "LIFE-137.4"], needs=[API])
async def later_sources_win_and_can_be_referred_to(node: Node) -> None:
    """Of two envFrom the later one wins, and env wins over both; `$(NAME)` sees what comes from
    envFrom. A key that an optional reference does not find makes no variable."""
    for name, mode in (("one", "slow"), ("two", "fast")):
        data = {"MODE": mode, f"ONLY_{name.upper()}": "yes", "LEVEL": "3"}
        await node.api.create_object("configmaps", {"metadata": {"name": name}, "data": data})
    key = {"name": "one", "key": "absent", "optional": True}
    main = container(
        "main",
        envFrom=[{"configMapRef": {"name": name}} for name in ("one", "two")],
        env=[
            {"name": "LEVEL", "value": "4"},
            {"name": "BOTH", "value": "$(MODE)-$(LEVEL)-$(ONLY_ONE)"},
            variable("ABSENT", configMapKeyRef=key),
        ],
    )
    await node.api.create_pod(pod("web", main, enableServiceLinks=False))
    env_seen = variables(await created(node))
    expected = {
        "MODE": "fast",
        "LEVEL": "4",
        "ONLY_ONE": "yes",
        "ONLY_TWO": "yes",
        "BOTH": "fast-4-yes",
    }
    chosen = {name: value for name, value in env_seen.items() if name in {*expected, "ABSENT"}}
    expect_equal(node, chosen, expected, "variables")


@conformance(id="env-limits-of-node", rules=["LIFE-137.6"], needs=[API], alone=True)
async def an_unset_limit_reads_as_what_the_node_can_give(node: Node) -> None:
    """A variable for a limit that is not set has the node's allocatable amount; one for a request
    that is not set is 0."""
    names = {"CPU": "limits.cpu", "MEMORY": "limits.memory", "ASKED": "requests.memory"}
    env = [variable(name, resourceFieldRef={"resource": of}) for name, of in names.items()]
    await node.api.create_pod(pod("web", container("main", env=env)))
    env_seen = variables(await created(node))
    await node.run_until(
        lambda: node.api.allocatable("memory"), within_s=limits.STATUS_PASS_S, what="allocatable"
    )
    memory = parse_nano(node.api.allocatable("memory")) // NANO
    cpus = -(-parse_nano(node.api.allocatable("cpu")) // NANO)
    expected = {"CPU": str(cpus), "MEMORY": str(memory), "ASKED": "0"}
    expect_equal(node, {name: env_seen.get(name) for name in names}, expected, "variables")
