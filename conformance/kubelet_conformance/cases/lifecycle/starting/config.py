"""What the kubelet passes to the runtime for a container: environment, users, resources,
namespaces."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

STATUS, API = Feature.STATUS, Feature.API
NODE_NAMESPACE, POD_NAMESPACE = 2, 0  # NamespaceMode


async def created(node: Node, name: str = "main", *, within_s: float = limits.START_S) -> Any:
    """The configuration in the first successful CreateContainer for that container."""
    await node.run_until(
        lambda: node.count("StartContainer", container=name),
        within_s=within_s,
        what=f"{name} starts",
    )
    return node.calls("CreateContainer", container=name)[-1].request.config


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
    main_context = (await created(node)).linux.security_context
    plain = (await created(node, "plain")).linux.security_context
    expect_equal(node, main_context.run_as_user.value, 1001, "user of main")
    expect_equal(node, plain.run_as_user.value, 1000, "user of plain")
    for context in (main_context, plain):
        expect_equal(node, context.run_as_group.value, 3000, "group")
        expect_equal(node, list(context.supplemental_groups), [2000, 2001], "further groups")
    added, dropped = (
        list(main_context.capabilities.add_capabilities),
        list(main_context.capabilities.drop_capabilities),
    )
    expect_equal(node, (added, dropped), (["NET_ADMIN"], ["ALL"]), "capabilities")
    flags = (main_context.readonly_rootfs, main_context.no_new_privs, main_context.privileged)
    expect_equal(node, flags, (True, True, False), "readonly_rootfs, no_new_privs and privileged")
    profiles = (main_context.seccomp.profile_type, plain.seccomp.profile_type)
    expect_equal(node, profiles, (0, 1), "seccomp profiles: RuntimeDefault, Unconfined")


@conformance(
    id="config-seccomp-default",
    rules=["LIFE-141.4"],
    needs=[STATUS],
    node_config={"seccompDefault": True},
)
async def with_seccomp_default_containers_have_a_profile(node: Node) -> None:
    """With seccompDefault a container without a profile gets RuntimeDefault; one that asks for
    Unconfined is left so."""
    free = container("free", securityContext={"seccompProfile": {"type": "Unconfined"}})
    await node.apply_static(pod("web", container("main"), free))
    contexts = [(await created(node, name)).linux.security_context for name in ("main", "free")]
    profiles = [context.seccomp.profile_type for context in contexts]
    expect_equal(node, profiles, [0, 1], "seccomp profiles: RuntimeDefault, Unconfined")


@conformance(
    id="config-unknown-fields",
    rules=["CFG-002.4"],
    needs=[STATUS],
    node_config={
        "metadata": {"name": ["odd"]},
        "seccompDefault": True,
        "seccompdefault": False,
        "seccompDefaults": "maybe",
        "crashLoopBackOff": {"maxRestartPeriod": -1},
    },
)
async def unknown_fields_have_no_effect(node: Node) -> None:
    """A kubelet starts with a configuration that has unknown fields, at its top and further down,
    and fields in the wrong case; these have no effect, those beside them do."""
    await node.apply_static(pod("web", container("main")))
    context = (await created(node)).linux.security_context
    expect_equal(node, context.seccomp.profile_type, 0, "seccomp profile: RuntimeDefault")


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


@conformance(id="config-resources", rules=["LIFE-139", "LIFE-140"], needs=[STATUS], alone=True)
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
    linux = (await created(node)).linux.resources
    actual = (linux.cpu_shares, linux.cpu_period, linux.cpu_quota)
    expect_equal(node, actual, (256, 100_000, 50_000), "CPU shares, period and quota")
    expect_equal(node, linux.memory_limit_in_bytes, 64 << 20, "memory limit")
    expect(node, 2 < linux.oom_score_adj < 1000, "oom_score_adj from 3 to 999", linux.oom_score_adj)
    idle = (await created(node, "idle")).linux.resources
    unlimited = (idle.cpu_shares, idle.cpu_quota, idle.memory_limit_in_bytes, idle.oom_score_adj)
    expect_equal(node, unlimited, (2, 0, 0, 1000), "shares, quota, memory, oom_score_adj")
    score = (await created(node, "sure")).linux.resources.oom_score_adj
    expect_equal(node, score, -997, "oom_score_adj of a guaranteed pod")


@conformance(
    id="config-host-namespaces", rules=["LIFE-134", "LIFE-133"], needs=[STATUS], alone=True
)
async def a_pod_on_the_nodes_namespaces_says_so_to_sandbox_and_container(node: Node) -> None:
    """hostNetwork, hostPID and hostIPC give sandbox and containers the namespace mode NODE, and the
    sandbox no host name."""
    await node.apply_static(pod("web", hostNetwork=True, hostPID=True, hostIPC=True))
    container_config = await created(node)
    (run,) = node.calls("RunPodSandbox", pod="web")
    for linux in (run.request.config.linux, container_config.linux):
        spaces = linux.security_context.namespace_options
        namespaces = (spaces.network, spaces.pid, spaces.ipc)
        expect_equal(node, namespaces, (NODE_NAMESPACE,) * 3, "network, pid, ipc")
    expect_equal(node, run.request.config.hostname, "", "host name")


@conformance(id="config-shared-pids", rules=["LIFE-134"], needs=[STATUS])
async def containers_of_a_pod_can_share_one_pid_namespace(node: Node) -> None:
    """With shareProcessNamespace the PID namespace is the pod's; network and IPC are the pod's as
    always."""
    await node.apply_static(pod("web", shareProcessNamespace=True))
    spaces = (await created(node)).linux.security_context.namespace_options
    namespaces = (spaces.network, spaces.pid, spaces.ipc)
    expect_equal(node, namespaces, (POD_NAMESPACE,) * 3, "network, pid, ipc")


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
    settings = (list(dns.servers), list(dns.searches), sorted(dns.options))
    expected_settings = (["192.0.2.53"], ["example.test"], ["ndots:2", "rotate"])
    expect_equal(node, settings, expected_settings, "servers, searches, options")


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
    ports_told = [(m.container_port, m.host_port, m.protocol) for m in mappings]
    expect_equal(node, ports_told, [(80, 0, 0), (53, 0, 1)], "container port, host port, protocol")
