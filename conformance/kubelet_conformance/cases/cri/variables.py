"""The variables of a container: which source wins, what a reference sees, what is missing."""

from collections.abc import Mapping
from typing import Any

from kubelet_conformance.cases.cri.common import container_config, started, waiting
from kubelet_conformance.cases.lifecycle.starting.environment import variable, variables
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import Container, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API, STATUS, NODE = Feature.API, Feature.STATUS, Feature.NODE_RESOURCES


async def config_map(node: Node, name: str, **data: str) -> None:
    """Create a ConfigMap."""
    await node.api.create_object("configmaps", {"metadata": {"name": name}, "data": data})


async def service(node: Node, name: str, address: str, **metadata: str) -> None:
    """Create a Service with one port."""
    spec = {"clusterIP": address, "ports": [{"port": 443}]}
    manifest = {"metadata": {"name": name, **metadata}, "spec": spec}
    await node.api.create_object("services", manifest)


def seen_by(node: Node, name: str, pod_name: str | None = None) -> dict[str, str]:
    """The variables of the container."""
    return variables(container_config(node, name, pod_name))


@conformance(id="cri-env-precedence", rules=["LIFE-137.1", "LIFE-137.2"], needs=[API])
async def the_nearest_source_of_a_variable_wins(node: Node) -> None:
    """A variable of env wins over envFrom, there a later source over an earlier one, and all over
    the variables of services; references see services, envFrom and earlier variables, and unknown
    ones stay as they are."""
    await service(node, "shop", "10.96.0.7")
    await config_map(node, "one", A="one", B="one", SHOP_SERVICE_HOST="mine")
    await config_map(node, "two", B="two", C="two")
    await node.run_for(2)
    env = [
        {"name": "C", "value": "env"},
        {"name": "SEES", "value": "$(A)-$(B)-$(C)-$(SHOP_SERVICE_PORT)-$(LATER)-$$(A)"},
        {"name": "LATER", "value": "later"},
    ]
    sources = [{"configMapRef": {"name": name}} for name in ("one", "two")]
    main = container("main", env=env, envFrom=sources, args=["$(C)", "$$(C)", "$(NONE)"])
    await node.api.create_pod(pod("web", main))
    await started(node, "web")
    values = seen_by(node, "main")
    expected = {
        "A": "one",
        "B": "two",
        "C": "env",
        "SHOP_SERVICE_HOST": "mine",
        "SHOP_SERVICE_PORT": "443",
        "SEES": "one-two-env-443-$(LATER)-$(A)",
    }
    expect_equal(node, {name: values.get(name) for name in expected}, expected, "variables")
    args = list(container_config(node, "main").args)
    expect_equal(node, args, ["env", "$(C)", "$(NONE)"], "arguments")


@conformance(id="cri-env-service-links", rules=["LIFE-137.3"], needs=[API], alone=True)
async def the_servers_own_service_is_linked_to_every_pod(node: Node) -> None:
    """With enableServiceLinks false a pod has the variables of the service `kubernetes` and of no
    other; services without an address, and those of another namespace, have none for anybody."""
    await service(node, "headless", "None")
    await service(node, "foreign", "10.96.0.8", namespace="kube-system")
    await service(node, "kubernetes", "10.96.0.1")
    await service(node, "shop", "10.96.0.7")
    await node.run_for(2)
    await node.api.create_pod(pod("linked"))
    await node.api.create_pod(pod("alone", enableServiceLinks=False))
    await started(node, "linked", "alone")
    hosts = {}
    for name in ("linked", "alone"):
        values = seen_by(node, "main", name)
        hosts[name] = {key: value for key, value in values.items() if key.endswith("_SERVICE_HOST")}
    master = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    expected_hosts = {"linked": {**master, "SHOP_SERVICE_HOST": "10.96.0.7"}, "alone": master}
    expect_equal(node, hosts, expected_hosts, "hosts of services")


def refers(name: str, kind: str, key: Mapping[str, str], **more: bool) -> Container:
    """A container with one variable from a key; `more`: further fields of the reference."""
    return container(name, env=[variable("VALUE", **{kind: {**key, **more}})])


@conformance(id="cri-env-missing", rules=["LIFE-137.4"], needs=[API])
async def what_is_missing_and_not_optional_is_an_error(node: Node) -> None:
    """A missing object or key keeps its container waiting with CreateContainerConfigError and says
    which; where it is optional the container starts without the variable."""
    await config_map(node, "there", KEY="value")
    secret = {"metadata": {"name": "there"}, "data": {"KEY": "dmFsdWU="}}
    await node.api.create_object("secrets", secret)
    lost_key = {"name": "gone", "key": "KEY"}
    other = {"name": "there", "key": "OTHER"}
    await node.api.create_pod(
        pod(
            "web",
            refers("no-map", "configMapKeyRef", lost_key),
            refers("no-map-key", "configMapKeyRef", other),
            refers("no-secret", "secretKeyRef", lost_key),
            refers("no-secret-key", "secretKeyRef", other),
            container("no-source", envFrom=[{"secretRef": {"name": "gone"}}]),
            refers("may-miss-map", "configMapKeyRef", lost_key, optional=True),
            refers("may-miss-key", "configMapKeyRef", other, optional=True),
            refers("may-miss-secret", "secretKeyRef", lost_key, optional=True),
            refers("may-miss-secret-key", "secretKeyRef", other, optional=True),
            container("may-miss", envFrom=[{"configMapRef": {"name": "gone", "optional": True}}]),
        )
    )
    messages = {
        "no-map": 'configmap "gone" not found',
        "no-map-key": "couldn't find key OTHER in ConfigMap default/there",
        "no-secret": 'secret "gone" not found',
        "no-secret-key": "couldn't find key OTHER in Secret default/there",
        "no-source": 'secret "gone" not found',
    }
    optional = ["map", "key", "secret", "secret-key"]
    free = [*(f"may-miss-{word}" for word in optional), "may-miss"]
    await node.run_until(
        lambda: all(node.count("StartContainer", container=name) for name in free),
        within_s=2 * limits.START_S,
        what="those with optional references start",
    )
    for name in free:
        expect_equal(node, seen_by(node, name).get("VALUE"), None, f"VALUE of {name}")
    for name, text in messages.items():
        message = await waiting(node, "web", name, "CreateContainerConfigError")
        expect_equal(node, message, text, f"message of {name}")
        expect_equal(node, node.count("CreateContainer", container=name), 0, f"{name} created")


@conformance(
    id="cri-env-of-the-pod",
    rules=["LIFE-137.6", "LIFE-137.2", "STAT-044.1", "STAT-044.2"],
    needs=[STATUS],
    alone=True,
)
async def fields_of_the_pod_are_its_own(node: Node) -> None:
    """Labels, annotations, the addresses of pod and node are what they are called; the
    statuses of a kubelet without an API server do not show the node's address, and a pod on the
    node's network has none."""
    names = {
        "LABEL": "metadata.labels['word']",
        "NOTE": "metadata.annotations['word']",
        "UID": "metadata.uid",
        "HOST": "status.hostIP",
        "POD": "status.podIP",
    }
    env = [variable(name, fieldRef={"fieldPath": path}) for name, path in names.items()]
    metadata = {"labels": {"word": "label"}, "annotations": {"word": "note"}}
    pods: dict[str, dict[str, Any]] = {"web": {}, "on-node": {"hostNetwork": True}}
    for name, fields in pods.items():
        plan = pod(name, container("main", env=env), metadata=metadata, **fields)
        await node.apply_static(plan)
    await node.wait_running("web")
    await node.wait_running("on-node")
    web = node.pod("web") or {}
    node_values = seen_by(node, "main", "on-node")
    host = node_values.get("HOST")  # empty where the kubelet has found no address of its node
    of_web = seen_by(node, "main", "web")
    expected = {
        "LABEL": "label",
        "NOTE": "note",
        "UID": web["metadata"]["uid"],
        "HOST": host,
        "POD": web["status"]["podIP"],
    }
    expect_equal(node, {name: of_web.get(name) for name in expected}, expected, "variables of web")
    expect_equal(node, node_values.get("POD"), "", "variable POD of on-node")
    for name in pods:
        status = (node.pod(name) or {})["status"]
        node_addresses = [key for key in ("hostIP", "hostIPs") if key in status]
        expect_equal(node, node_addresses, [], f"addresses of the node in the status of {name}")
    on_node = (node.pod("on-node") or {})["status"].get("podIP")
    expect_equal(node, on_node, None, "podIP in the status of on-node")


@conformance(
    id="cri-env-of-the-node",
    rules=["LIFE-137.6", "LIFE-137.2", "STAT-044.1"],
    needs=[STATUS, API],
    alone=True,
)
async def on_the_nodes_network_the_address_is_the_nodes(node: Node) -> None:
    """With an API server the status of a pod shows the node's address, and on the node's network
    that is the pod's address, too: in the status and in variables."""
    paths = {"HOST": "status.hostIP", "POD": "status.podIP"}
    env = [variable(name, fieldRef={"fieldPath": path}) for name, path in paths.items()]
    await node.api.run_pods(pod("on-node", container("main", env=env), hostNetwork=True))
    status = (node.api.pod("on-node") or {})["status"]
    host = status.get("hostIP")
    expect(node, host, "hostIP in the status", host)
    expect_equal(node, status.get("podIP"), host, "podIP in the status")
    values = seen_by(node, "main", "on-node")
    addresses = {name: values.get(name) for name in paths}
    expect_equal(node, addresses, {"HOST": host, "POD": host}, "variables")


def of_resource(name: str, resource: str, **more: str) -> dict[str, Any]:
    """A variable from a resource of a container."""
    return variable(name, resourceFieldRef={"resource": resource, **more})


@conformance(
    id="cri-env-resources", rules=["LIFE-137.6"], needs=[STATUS, NODE, API],
    machine={"cores": 4, "memory_bytes": 4 << 30}, since="1.34")  # fmt: skip
async def resources_are_rounded_up_and_unset_limits_are_the_nodes(node: Node) -> None:
    """Amounts are divided by their divisor and rounded up; containerName names another container;
    an unset limit is that of the pod, else what the node can give, but 0 for an init container that
    is asked for by name; an unset request is 0."""
    env = [
        of_resource("OWN", "limits.cpu", divisor="1m"),
        of_resource("UP", "requests.memory", divisor="1Mi"),
        of_resource("OTHER", "requests.cpu", containerName="other", divisor="1m"),
        of_resource("UNSET", "limits.memory", divisor="1Mi"),
        of_resource("NO_REQUEST", "requests.cpu", containerName="setup"),
        of_resource("INIT", "limits.cpu", containerName="setup"),
    ]
    own = {"limits": {"cpu": "150m"}, "requests": {"memory": "1500Ki"}}
    main = container("main", env=env, resources=own)
    other = container("other", resources={"requests": {"cpu": "30m"}})
    setup = container("setup", exits(0), env=[of_resource("CPUS", "limits.cpu")])
    await node.apply_static(pod("web", main, other, init=[setup]))
    free = container("free", env=[of_resource("CPUS", "limits.cpu", divisor="1m")])
    await node.apply_static(pod("sized", free, resources={"limits": {"cpu": "700m"}}))
    await node.run_until(
        lambda: all(node.count("StartContainer", container=n) for n in ("main", "free")),
        within_s=2 * limits.START_S,
        what="main and free start",
    )
    await node.run_until(lambda: node.api.allocatable("memory"), within_s=limits.START_S)
    memory = node.api.allocatable("memory")
    expected = {
        "OWN": "150",
        "UP": "2",
        "OTHER": "30",
        "UNSET": str(-(-int(memory[:-2]) // {"Ki": 1024, "Mi": 1}[memory[-2:]])),
        "NO_REQUEST": "0",
        "INIT": "0",
    }
    values = seen_by(node, "main")
    expect_equal(node, {name: values.get(name) for name in expected}, expected, "variables of main")
    expect_equal(node, seen_by(node, "setup").get("CPUS"), "4", "CPUs of setup by itself")
    expect_equal(node, seen_by(node, "free").get("CPUS"), "700", "limit of a pod")


def from_file(volume: str, key: str, **more: bool) -> dict[str, Any]:
    """A reference to a key in the file `env` of a volume."""
    return {"volumeName": volume, "path": "env", "key": key, **more}


@conformance(id="cri-env-file", rules=["LIFE-137.5"], needs=[STATUS], since="1.35")
async def a_file_in_a_volume_gives_variables(node: Node) -> None:
    """A variable has the value of its key in a file that an init container left in a volume; an
    optional key that the file lacks gives no variable; a volume that no container mounts is an
    error, whatever is in it."""
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    setup = container("setup", exits(0, after_s=4), volumeMounts=mounts)
    env = [
        variable("MODE", fileKeyRef=from_file("shared", "MODE")),
        variable("MAYBE", fileKeyRef=from_file("shared", "OTHER", optional=True)),
    ]
    lost = container("lost", env=[variable("MODE", fileKeyRef=from_file("unused", "MODE"))])
    volumes: list[dict[str, Any]] = [
        {"name": name, "emptyDir": {}} for name in ("shared", "unused")
    ]
    main = container("main", env=env)
    await node.apply_static(pod("web", main, lost, init=[setup], volumes=volumes))
    await node.wait_running("web", "setup")
    node.machine.write_volume_file("web", "shared", "env", "MODE='fast'\n")
    message = await waiting(node, "web", "lost", "CreateContainerConfigError")
    expected_message = 'cannot find the volume "unused" referenced by FileKeyRef'
    expect_equal(node, message, expected_message, "message of lost")
    await started(node, "web")
    await node.run_until(
        lambda: node.count("StartContainer", container="main"), within_s=limits.START_S
    )
    values = seen_by(node, "main")
    expect_equal(node, (values.get("MODE"), values.get("MAYBE")), ("fast", None), "MODE, MAYBE")
