"""The configuration of a sandbox: names, labels, host name, ports, namespaces, resources."""

from functools import partial
from typing import Any

from kubelet_conformance.cases.cri.common import container_config, sandbox_config, started
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API, STATUS = Feature.API, Feature.STATUS
OWN_DOMAIN = {"clusterDomain": "c.test"}
IN_DOMAIN = ".default.svc.c.test"
POD, OF_CONTAINER, OF_NODE = 0, 1, 2  # NamespaceMode


@conformance(id="cri-sandbox-names", rules=["LIFE-133.1", "CRI-026.3"], needs=[STATUS])
async def a_sandbox_has_what_its_pod_has_and_the_kubelets_own_names(node: Node) -> None:
    """Labels and annotations of the pod are on its sandbox; a label of the pod with one of the
    kubelet's own names does not count."""
    labels = {"app": "shop", "io.kubernetes.pod.namespace": "elsewhere"}
    metadata = {"labels": labels, "annotations": {"example.test/note": "kept as it is"}}
    await node.apply_static(pod("web", metadata=metadata))
    await node.wait_running("web")
    config = sandbox_config(node, "web")
    uid = (node.pod("web") or {})["metadata"]["uid"]
    full = f"web-{node.name}"
    expected_labels = {
        "app": "shop",
        "io.kubernetes.pod.name": full,
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": uid,
    }
    expect_equal(node, dict(config.labels), expected_labels, "labels of the sandbox")
    notes = dict(config.annotations)
    expect_equal(node, notes.get("example.test/note"), "kept as it is", "annotation")
    expect_equal(node, notes.get("kubernetes.io/config.source"), "file", "source in annotations")
    meta = config.metadata
    named_fields = (meta.name, meta.namespace, meta.uid, meta.attempt)
    expect_equal(node, named_fields, (full, "default", uid, 0), "metadata of the sandbox")


@conformance(
    id="cri-sandbox-host-names",
    rules=["LIFE-133.2", "LIFE-133.6"],
    needs=[API],
    node_config=OWN_DOMAIN,
    since="1.35",
)
async def a_host_name_is_short_and_cut_to_63_characters(node: Node) -> None:
    """The host name is spec.hostname, else the pod's name without what is beyond 63 characters
    and without a dash at the end; it has a domain only with setHostnameAsFQDN; hostnameOverride
    wins over all."""
    dashed, long = "a" * 62 + "-tail", "b" * 70
    sub = {"subdomain": "sub"}
    plans: dict[str, tuple[dict[str, Any], str]] = {
        dashed: ({}, "a" * 62),
        long: ({}, "b" * 63),
        "own": ({"hostname": "shop"}, "shop"),
        "short": (sub, "short"),
        "full": ({**sub, "setHostnameAsFQDN": True}, f"full.sub{IN_DOMAIN}"),
        "other": ({**sub, "hostname": "shop", "hostnameOverride": "my.name"}, "my.name"),
    }
    for name, (fields, _) in plans.items():
        await node.api.create_pod(pod(name, **fields))
    await started(node, *plans, within_s=2 * limits.START_S)
    actual = {name: sandbox_config(node, name).hostname for name in plans}
    expect_equal(
        node, actual, {name: name_due for name, (_, name_due) in plans.items()}, "host names"
    )


@conformance(
    id="cri-sandbox-long-host-name", rules=["LIFE-133.6"], needs=[API], node_config=OWN_DOMAIN
)
async def a_full_host_name_of_more_than_64_characters_is_refused(node: Node) -> None:
    """With setHostnameAsFQDN a full name of 64 characters is given to the runtime; for one of 65
    there is no sandbox, and an event says so."""
    room = 64 - len(f"fits.{IN_DOMAIN}")
    for name, length in (("fits", room), ("over", room + 1)):
        fields: dict[str, Any] = {"subdomain": "s" * length, "setHostnameAsFQDN": True}
        await node.api.create_pod(pod(name, **fields))
    await started(node, "fits")
    expect_equal(node, len(sandbox_config(node, "fits").hostname), 64, "length of the host name")
    await node.run_until(
        lambda: node.events("FailedCreatePodSandBox", pod="over"),
        within_s=limits.START_S,
        what="an event about the sandbox of over",
    )
    message = node.events("FailedCreatePodSandBox", pod="over")[0]["message"]
    expect(node, "is too long (64 characters is the max, 65" in message, "64 is the max", message)
    expect_equal(node, node.count("RunPodSandbox", pod="over"), 0, "sandboxes of over")


@conformance(id="cri-sandbox-ports", rules=["LIFE-133.3"], needs=[STATUS], alone=True)
async def every_port_of_every_regular_container_is_mapped(node: Node) -> None:
    """Each port of the regular containers is a port mapping with its protocol, host port and host
    address; those of init containers are not."""
    main = container(
        "main",
        ports=[
            {"containerPort": 80},
            {"containerPort": 53, "protocol": "UDP"},
            {"containerPort": 81, "hostPort": 18481, "hostIP": "127.0.0.1"},
        ],
    )
    more = container("more", ports=[{"containerPort": 9000, "protocol": "SCTP"}])
    side = sidecar("side", ports=[{"containerPort": 7000}])
    await node.apply_static(pod("web", main, more, init=[side]))
    await started(node, "web")
    mappings = sandbox_config(node, "web").port_mappings
    ports = [(m.container_port, m.protocol, m.host_port, m.host_ip) for m in mappings]
    tcp, udp, sctp = 0, 1, 2
    expected = [
        (80, tcp, 0, ""),
        (53, udp, 0, ""),
        (81, tcp, 18481, "127.0.0.1"),
        (9000, sctp, 0, ""),
    ]
    expect_equal(node, ports, expected, "port, protocol, host port and address of each mapping")


@conformance(id="cri-sandbox-sysctls", rules=["LIFE-133.4", "LIFE-133.7"], needs=[STATUS])
async def sysctls_reach_the_runtime_with_dots(node: Node) -> None:
    """Sysctls of the pod are given to the runtime; a name with slashes gets dots."""
    sysctls = [
        {"name": "net.ipv4.ip_unprivileged_port_start", "value": "80"},
        {"name": "kernel/shm_rmid_forced", "value": "1"},
    ]
    await node.apply_static(pod("web", securityContext={"sysctls": sysctls}))
    await started(node, "web")
    expected_sysctls = {"net.ipv4.ip_unprivileged_port_start": "80", "kernel.shm_rmid_forced": "1"}
    expect_equal(node, dict(sandbox_config(node, "web").linux.sysctls), expected_sysctls, "sysctls")


@conformance(id="cri-sandbox-security", rules=["LIFE-133.4", "LIFE-133.5"], needs=[STATUS])
async def a_sandbox_is_as_privileged_as_its_most_privileged_container(node: Node) -> None:
    """A sandbox is privileged if any container is, also one that runs before the others; it has the
    user and groups of its pod and the runtime's seccomp profile."""
    strong = container("setup", exits(0), securityContext={"privileged": True})
    whose = {"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "supplementalGroups": [2001]}
    await node.apply_static(pod("strong", init=[strong]))
    await node.apply_static(pod("plain", securityContext=whose))
    await started(node, "strong", "plain")
    contexts = {n: sandbox_config(node, n).linux.security_context for n in ("strong", "plain")}
    privileged = {name: context.privileged for name, context in contexts.items()}
    expect_equal(node, privileged, {"strong": True, "plain": False}, "privileged sandboxes")
    plain = contexts["plain"]
    users = (plain.run_as_user.value, plain.run_as_group.value, list(plain.supplemental_groups))
    expect_equal(node, users, (1000, 3000, [2000, 2001]), "user, group, further groups")
    runtime_default = 0
    expect_equal(node, plain.seccomp.profile_type, runtime_default, "seccomp profile of a sandbox")


@conformance(
    id="cri-namespaces-one-by-one",
    rules=["LIFE-134.1", "LIFE-134.2", "CRI-033.2"],
    needs=[STATUS],
    alone=True,
)
async def each_namespace_of_the_node_is_asked_for_by_its_own_field(node: Node) -> None:
    """hostNetwork, hostPID and hostIPC each give the pod one namespace of the node and no other; a
    pod on the node's network has no host name at the runtime."""
    plans: dict[str, tuple[dict[str, Any], tuple[int, int, int]]] = {
        "none": ({}, (POD, OF_CONTAINER, POD)),
        "network": ({"hostNetwork": True}, (OF_NODE, OF_CONTAINER, POD)),
        "pid": ({"hostPID": True}, (POD, OF_NODE, POD)),
        "ipc": ({"hostIPC": True}, (POD, OF_CONTAINER, OF_NODE)),
    }
    for name, (fields, _) in plans.items():
        await node.apply_static(pod(name, **fields))
    await started(node, *plans, within_s=2 * limits.START_S)
    for name, (_, expected_modes) in plans.items():
        for config in (sandbox_config(node, name), container_config(node, "main", name)):
            spaces = config.linux.security_context.namespace_options
            modes = (spaces.network, spaces.pid, spaces.ipc)
            expect_equal(node, modes, expected_modes, f"network, pid and ipc of {name}")
    named = {name: bool(sandbox_config(node, name).hostname) for name in plans}
    expect_equal(
        node, [n for n, has in named.items() if not has], ["network"], "pods without a host name"
    )


@conformance(id="cri-sandbox-overhead", rules=["LIFE-139.7"], needs=[STATUS], alone=True)
async def overhead_is_told_beside_the_resources_of_the_containers(node: Node) -> None:
    """The sandbox gets the sum of its containers as `resources`, without the pod's overhead, which
    is told as `overhead`."""
    resources = {"requests": {"cpu": "200m"}, "limits": {"cpu": "300m", "memory": "64Mi"}}
    overhead = {"cpu": "100m", "memory": "16Mi"}
    main = container("main", resources=resources)
    await node.apply_static(pod("web", main, overhead=overhead))
    await started(node, "web")
    linux = sandbox_config(node, "web").linux
    shares = {
        name: (amounts.cpu_shares, amounts.cpu_quota, amounts.memory_limit_in_bytes >> 20)
        for name, amounts in (("resources", linux.resources), ("overhead", linux.overhead))
    }
    expected_shares = {"resources": (204, 30_000, 64), "overhead": (102, 10_000, 16)}
    expect_equal(node, shares, expected_shares, "shares, quota, memory in MiB")


@conformance(
    id="cri-sandbox-new-attempt",
    rules=["CRI-024.1", "LIFE-101"],
    needs=[STATUS, Feature.OUTSIDE_KILL],
)
async def each_new_sandbox_is_the_next_attempt(node: Node) -> None:
    """The attempt of a new sandbox is one more than that of the newest one, whatever state that is
    in, and its containers go on counting from the last ones."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")

    def started_after(count: int) -> bool:
        return node.count("StartContainer", pod="web") > count

    for attempt in (1, 2):
        await node.runtime.stop_sandbox("web")
        await node.run_until(
            partial(started_after, attempt),
            within_s=limits.STOP_S + 4 * limits.SYNC_ERROR_S,
            what=f"sandbox {attempt} and its container",
        )
    runs = [c.request.config.metadata.attempt for c in node.calls("RunPodSandbox", pod="web")]
    expect_equal(node, runs, [0, 1, 2], "attempts of the sandboxes")
    creations = node.calls("CreateContainer", pod="web")
    pairs = [(c.request.config.metadata.attempt, c.request.sandbox_config.metadata.attempt)
            for c in creations]  # fmt: skip
    expect_equal(
        node, pairs, [(0, 0), (1, 1), (2, 2)], "attempts of containers and their sandboxes"
    )
