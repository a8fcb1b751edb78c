"""What the kubelet passes to the runtime for a container: environment, users, resources,
namespaces."""

from typing import Any

from conformance.harness import limits
from conformance.harness.expect import expect, expect_equal
from conformance.harness.manifests import container, pod
from conformance.harness.node import Node
from conformance.registry import Feature, conformance

STATUS, API = Feature.STATUS, Feature.API
NODE_NAMESPACE, POD_NAMESPACE = 2, 0  # NamespaceMode


def variable(name: str, **source: Any) -> dict[str, Any]:
    """An environment variable with valueFrom."""
    return {"name": name, "valueFrom": source}


async def created(node: Node, name: str = "main", *, within_s: float = limits.START_S) -> Any:
    """The configuration in the first successful CreateContainer for that container."""
    await node.run_until(
        lambda: node.count("StartContainer", container=name),
        within_s=within_s,
        what=f"{name} starts",
    )
    return node.calls("CreateContainer", container=name)[-1].request.config


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


@conformance(id="env-downward", rules=["LIFE-137"], needs=[STATUS])
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
    seen = variables(await created(node))
    await node.wait_running("web")
    ip = (node.pod("web") or {})["status"].get("podIP", "")
    wanted = {
        "NAME": f"web-{node.name}",
        "SPACE": "default",
        "APP": "shop",
        "NODE": node.name,
        "IP": ip,
        "CPU": "2",
        "MEMORY": "20",
    }
    expect_equal(node, seen, wanted, "variables")
    expect(node, ip, "an address of the pod")


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
    seen = variables(await created(node))
    wanted = {"MODE": "fast", "LEVEL": "own", "S_token": "secret", "TOKEN": "secret"}
    expect_equal(node, seen, wanted, "variables")


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
    expect_equal(node, variables(config).get("MODE"), "fast", "MODE")


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
    wanted = {
        "MY_SHOP_SERVICE_HOST": "10.96.0.77",
        "MY_SHOP_SERVICE_PORT": "80",
        "MY_SHOP_SERVICE_PORT_WEB": "80",
        "MY_SHOP_PORT": "tcp://10.96.0.77:80",
        "MY_SHOP_PORT_80_TCP": "tcp://10.96.0.77:80",
        "MY_SHOP_PORT_80_TCP_PROTO": "tcp",
        "MY_SHOP_PORT_80_TCP_PORT": "80",
        "MY_SHOP_PORT_80_TCP_ADDR": "10.96.0.77",
    }
    expect_equal(node, shop, wanted, "variables of my-shop")
    others = [name for name in alone if name.startswith("MY_SHOP")]
    expect_equal(node, others, [], "variables of my-shop without links")


@conformance(id="config-user", rules=["LIFE-141"], needs=[STATUS])
async def the_container_wins_over_the_pod_in_users_and_profiles(node: Node) -> None:
    """User, group, capabilities, privileges and seccomp profile are the container's own where it
    has them, else the pod's."""
    own = {
        "runAsUser": 1001,
        "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    shared = {"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "supplementalGroups": [2001]}
    both = container("main", securityContext=own), container("plain")
    await node.apply_static(pod("web", *both, securityContext=shared))
    made = (await created(node)).linux.security_context
    plain = (await created(node, "plain")).linux.security_context
    expect_equal(node, made.run_as_user.value, 1001, "user of main")
    expect_equal(node, plain.run_as_user.value, 1000, "user of plain")
    for context in (made, plain):
        expect_equal(node, context.run_as_group.value, 3000, "group")
        expect_equal(node, list(context.supplemental_groups), [2000, 2001], "further groups")
    added, dropped = (
        list(made.capabilities.add_capabilities),
        list(made.capabilities.drop_capabilities),
    )
    expect_equal(node, (added, dropped), (["NET_ADMIN"], ["ALL"]), "capabilities")
    flags = (made.readonly_rootfs, made.no_new_privs, made.privileged)
    expect_equal(node, flags, (True, True, False), "read-only, no new privileges, privileged")
    profiles = (made.seccomp.profile_type, plain.seccomp.profile_type)
    expect_equal(node, profiles, (0, 1), "seccomp: RuntimeDefault, Unconfined")


@conformance(id="config-non-root", rules=["LIFE-141", "LIFE-131"], needs=[STATUS])
async def a_container_that_must_not_be_root_is_not_started_as_root(node: Node) -> None:
    """A container with runAsNonRoot and user 0 waits with CreateContainerConfigError."""
    bad = container("main", securityContext={"runAsNonRoot": True, "runAsUser": 0})
    await node.apply_static(pod("web", bad, container("other")))
    await node.run_until(
        lambda: (
            node.container("web", "main").get("state", {}).get("waiting", {}).get("reason")
            == "CreateContainerConfigError"
        ),
        within_s=limits.START_S + limits.NOTICE_S,
        what="waiting: CreateContainerConfigError",
    )
    message = node.container("web", "main")["state"]["waiting"].get("message", "")
    text = "container's runAsUser breaks non-root policy"
    expect(node, message.startswith(text), f"message {text}", message)
    expect_equal(node, node.count("CreateContainer", container="main"), 0, "creations of main")


@conformance(id="config-resources", rules=["LIFE-139", "LIFE-140"], needs=[STATUS])
async def requests_and_limits_reach_the_runtime(node: Node) -> None:
    """CPU shares come from the request, CPU quota and memory limit from the limits, and the OOM
    score from the QoS class."""
    limited = container(
        "main",
        resources={
            "requests": {"cpu": "250m", "memory": "32Mi"},
            "limits": {"cpu": "500m", "memory": "64Mi"},
        },
    )
    await node.apply_static(pod("burstable", limited))
    await node.apply_static(pod("besteffort", container("idle")))
    alike = {"cpu": "100m", "memory": "32Mi"}
    sure = container("sure", resources={"requests": alike, "limits": alike})
    await node.apply_static(pod("guaranteed", sure))
    made = (await created(node)).linux.resources
    seen = (made.cpu_shares, made.cpu_period, made.cpu_quota)
    expect_equal(node, seen, (256, 100_000, 50_000), "shares, period, quota")
    expect_equal(node, made.memory_limit_in_bytes, 64 << 20, "memory limit")
    expect(node, 2 < made.oom_score_adj < 1000, "oom_score_adj 3..999", made.oom_score_adj)
    idle = (await created(node, "idle")).linux.resources
    unlimited = (idle.cpu_shares, idle.cpu_quota, idle.memory_limit_in_bytes, idle.oom_score_adj)
    expect_equal(node, unlimited, (2, 0, 0, 1000), "shares, quota, memory, score without requests")
    score = (await created(node, "sure")).linux.resources.oom_score_adj
    expect_equal(node, score, -997, "oom_score_adj of a guaranteed pod")


@conformance(id="config-host-namespaces", rules=["LIFE-134", "LIFE-133"], needs=[STATUS])
async def a_pod_on_the_nodes_namespaces_says_so_to_sandbox_and_container(node: Node) -> None:
    """hostNetwork, hostPID and hostIPC give sandbox and containers the namespace mode NODE, and the
    sandbox no host name."""
    await node.apply_static(pod("web", hostNetwork=True, hostPID=True, hostIPC=True))
    container_config = await created(node)
    (run,) = node.calls("RunPodSandbox", pod="web")
    for linux in (run.request.config.linux, container_config.linux):
        spaces = linux.security_context.namespace_options
        seen = (spaces.network, spaces.pid, spaces.ipc)
        expect_equal(node, seen, (NODE_NAMESPACE,) * 3, "network, pid, ipc")
    expect_equal(node, run.request.config.hostname, "", "host name")


@conformance(id="config-shared-pids", rules=["LIFE-134"], needs=[STATUS])
async def containers_of_a_pod_can_share_one_pid_namespace(node: Node) -> None:
    """With shareProcessNamespace the PID namespace is the pod's; network and IPC are the pod's as
    always."""
    await node.apply_static(pod("web", shareProcessNamespace=True))
    spaces = (await created(node)).linux.security_context.namespace_options
    seen = (spaces.network, spaces.pid, spaces.ipc)
    expect_equal(node, seen, (POD_NAMESPACE,) * 3, "network, pid, ipc")


@conformance(id="config-dns", rules=["LIFE-135"], needs=[STATUS])
async def the_pods_own_dns_settings_are_used_alone_or_added(node: Node) -> None:
    """With dnsPolicy None only dnsConfig counts; with other policies it is added, and replaces
    options of the same name."""
    own = {
        "nameservers": ["192.0.2.53"],
        "searches": ["example.test"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}],
    }
    await node.apply_static(pod("web", dnsPolicy="None", dnsConfig=own))
    await created(node)
    dns = node.calls("RunPodSandbox", pod="web")[0].request.config.dns_config
    seen = (list(dns.servers), list(dns.searches), sorted(dns.options))
    wanted = (["192.0.2.53"], ["example.test"], ["ndots:2", "rotate"])
    expect_equal(node, seen, wanted, "servers, searches, options")


@conformance(id="config-ports", rules=["LIFE-133", "LIFE-136"], needs=[STATUS])
async def ports_of_regular_containers_are_mapped_at_the_sandbox(node: Node) -> None:
    """Each port of a regular container is a port mapping of the sandbox, with or without
    hostPort."""
    ports = [
        {"name": "web", "containerPort": 80},
        {"containerPort": 53, "protocol": "UDP"},
    ]
    await node.apply_static(pod("web", container("main", ports=ports)))
    await created(node)
    mappings = node.calls("RunPodSandbox", pod="web")[0].request.config.port_mappings
    seen = [(m.container_port, m.host_port, m.protocol) for m in mappings]
    expect_equal(node, seen, [(80, 0, 0), (53, 0, 1)], "container port, host port, protocol")


@conformance(id="env-file-missing", rules=["LIFE-137", "LIFE-131"], needs=[API])
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
    seen = (waiting.get("reason"), waiting["message"])
    wanted = ("CreateContainerConfigError", "couldn't parse env file")
    expect_equal(node, seen, wanted, "reason and message")
    expect_equal(node, node.count("CreateContainer", container="main"), 0, "creations of main")
