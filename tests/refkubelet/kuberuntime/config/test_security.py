"""Security contexts, host names and resources of sandboxes and containers: LIFE-133..141."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from kubecri.v1 import api_pb2 as cri
from pods import make_pod

from kubeobjects.structs import replace
from refkubelet.cri.records import ImageRecord
from refkubelet.kuberuntime import run_options
from refkubelet.kuberuntime.common.runtime_options import (
    DnsOptions,
    MemoryOptions,
    ResourceOptions,
    RuntimeOptions,
)
from refkubelet.kuberuntime.config.hosts_file import hosts_text
from refkubelet.kuberuntime.config.linux_resources import container_resources, oom_score_adj
from refkubelet.kuberuntime.config.sandbox import SandboxConfigError, sandbox_config
from refkubelet.kuberuntime.config.security import SecurityError, container_security
from refkubelet.kuberuntime.options_from_config import read_resolv_conf

ROOT_IMAGE = ImageRecord("id", 1)
RESOURCES = ResourceOptions(memory=MemoryOptions(capacity_bytes=1000 << 20))
OPTIONS = RuntimeOptions(Path("/kubelet"), Path("/l"), resources=RESOURCES)


def security(
    own: dict[str, Any] | None = None,
    shared: dict[str, Any] | None = None,
    *,
    image: ImageRecord = ROOT_IMAGE,
    annotations: dict[str, str] | None = None,
    options: RuntimeOptions = OPTIONS,
) -> Any:
    main = {"name": "main", "securityContext": own} if own is not None else {"name": "main"}
    pod = make_pod(main, meta={"annotations": annotations}, securityContext=shared)
    return container_security(pod.spec.containers[0], pod, image, options)


def fields(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = MessageToDict(message)
    for name in ("namespaceOptions", "maskedPaths", "readonlyPaths"):
        found.pop(name, None)
    return found


def test_the_container_wins_over_the_pod_LIFE_141() -> None:
    shared = {
        "runAsUser": 1,
        "runAsGroup": 2,
        "fsGroup": 5,
        "supplementalGroups": [6, 7],
        "supplementalGroupsPolicy": "Strict",
        "seLinuxOptions": {"level": "s0"},
        "seccompProfile": {"type": "RuntimeDefault"},
        "appArmorProfile": {"type": "RuntimeDefault"},
    }
    inherited = security({}, shared)
    assert fields(inherited) == {
        "runAsUser": {"value": "1"},
        "runAsGroup": {"value": "2"},
        "supplementalGroups": ["5", "6", "7"],
        "supplementalGroupsPolicy": "Strict",
        "selinuxOptions": {"level": "s0"},
        "seccomp": {},
        "apparmor": {},
        "apparmorProfile": "runtime/default",
    }
    own = security(
        {
            "runAsUser": 11,
            "runAsGroup": 12,
            "seLinuxOptions": {"type": "t"},
            "seccompProfile": {"type": "Localhost", "localhostProfile": "a/b.json"},
            "appArmorProfile": {"type": "Localhost", "localhostProfile": "mine"},
            "privileged": True,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
        },
        shared,
    )
    assert fields(own) == {
        "runAsUser": {"value": "11"},
        "runAsGroup": {"value": "12"},
        "supplementalGroups": ["5", "6", "7"],
        "supplementalGroupsPolicy": "Strict",
        "selinuxOptions": {"type": "t"},
        "seccomp": {"profileType": "Localhost", "localhostRef": "/kubelet/seccomp/a/b.json"},
        "apparmor": {"profileType": "Localhost", "localhostRef": "mine"},
        "apparmorProfile": "localhost/mine",
        "privileged": True,
        "readonlyRootfs": True,
        "noNewPrivs": True,
        "capabilities": {"addCapabilities": ["NET_ADMIN"], "dropCapabilities": ["ALL"]},
    }


def test_without_wishes_root_unconfined_and_masked_LIFE_141() -> None:
    made = security()
    assert fields(made) == {
        "runAsUser": {},
        "seccomp": {"profileType": "Unconfined"},
    }
    assert "/proc/kcore" in made.masked_paths
    assert "/proc/sys" in made.readonly_paths
    unmasked = security({"procMount": "Unmasked"})
    assert not unmasked.masked_paths
    assert not unmasked.readonly_paths
    default = security(options=replace(OPTIONS, seccomp_default=True))
    assert default.seccomp.profile_type == cri.SecurityProfile.RuntimeDefault


@pytest.mark.parametrize(
    ("text", "kind", "old"),
    [
        ("runtime/default", cri.SecurityProfile.RuntimeDefault, "runtime/default"),
        ("unconfined", cri.SecurityProfile.Unconfined, "unconfined"),
        ("localhost/x", cri.SecurityProfile.Localhost, "localhost/x"),
    ],
)
def test_the_old_apparmor_annotation_beats_the_pods_profile_LIFE_141(
    text: str, kind: int, old: str
) -> None:
    key = "container.apparmor.security.beta.kubernetes.io/main"
    shared = {"appArmorProfile": {"type": "Localhost", "localhostProfile": "pod"}}
    made = security(shared=shared, annotations={key: text})
    assert (made.apparmor.profile_type, made.apparmor_profile) == (kind, old)
    other = security(shared=shared, annotations={f"{key}2": text})
    assert other.apparmor_profile == "localhost/pod"


@pytest.mark.parametrize(
    ("own", "image", "text"),
    [
        ({"runAsUser": 0}, ROOT_IMAGE, "container's runAsUser breaks non-root policy"),
        ({}, ROOT_IMAGE, "container has runAsNonRoot and image will run as root"),
        ({}, ImageRecord("i", 1, uid=0), "container has runAsNonRoot and image will run as root"),
        (
            {},
            ImageRecord("i", 1, username="www"),
            "container has runAsNonRoot and image has non-numeric user (www), cannot verify user "
            "is non-root",
        ),
    ],
)
def test_run_as_non_root_is_kept_LIFE_141(
    own: dict[str, Any], image: ImageRecord, text: str
) -> None:
    with pytest.raises(SecurityError) as caught:
        security(own, {"runAsNonRoot": True}, image=image)
    assert str(caught.value) == f'{text} (pod: "web_default(uid-web)", container: main)'
    security({**own, "runAsNonRoot": False}, {"runAsNonRoot": True}, image=image)


def test_a_non_root_user_of_spec_or_image_runs_LIFE_141() -> None:
    wanted = {"runAsNonRoot": True}
    assert security({"runAsUser": 3}, wanted).run_as_user.value == 3
    assert security({}, wanted, image=ImageRecord("i", 1, uid=9)).run_as_user.value == 9
    named = security({}, image=ImageRecord("i", 1, username="www"))
    assert named.run_as_username == "www"
    assert not named.HasField("run_as_user")


@pytest.mark.parametrize(
    ("own", "text"),
    [
        ({"seccompProfile": {"type": "Localhost"}}, "localhostProfile must be set"),
        ({"appArmorProfile": {"type": "Localhost"}}, "missing localhost apparmor profile name"),
        ({"appArmorProfile": {"type": "Odd"}}, 'unknown apparmor profile type: "Odd"'),
    ],
)
def test_a_profile_without_a_name_is_an_error_LIFE_141(own: dict[str, Any], text: str) -> None:
    with pytest.raises(SecurityError, match=text):
        security(own)


# -- host names and the rest of the sandbox ------------------------------------------------------


CLUSTER = RuntimeOptions(Path("/r"), Path("/l"), dns=DnsOptions(cluster_domain="cluster.local"))


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({}, "web"),
        ({"hostname": "h"}, "h"),
        ({"hostname": "h", "subdomain": "s"}, "h"),
        (
            {"hostname": "h", "subdomain": "s", "setHostnameAsFQDN": True},
            "h.s.default.svc.cluster.local",
        ),
        ({"setHostnameAsFQDN": True}, "web"),
        ({"hostname": "h", "subdomain": "s", "hostnameOverride": "x.y"}, "x.y"),
        ({"hostname": "a" * 62 + "-bc"}, "a" * 62),
        ({"hostname": "a" * 61 + ".-bc"}, "a" * 61),
        ({"hostNetwork": True}, ""),
    ],
)
def test_the_host_name_LIFE_133_NODE_210(spec: dict[str, Any], name: str) -> None:
    assert sandbox_config(make_pod(**spec), 0, CLUSTER).hostname == name


def test_a_full_name_too_long_for_the_kernel_is_an_error_LIFE_133() -> None:
    pod = make_pod(hostname="a" * 40, subdomain="s", setHostnameAsFQDN=True)
    with pytest.raises(SandboxConfigError, match=r"is too long \(64 characters is the max, 68"):
        sandbox_config(pod, 0, CLUSTER)


def test_the_node_s_hosts_file_may_be_any_bytes_LIFE_138_NODE_209(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hosts").write_bytes(b"127.0.0.1 localhost # caf\xe9\n")
    monkeypatch.setattr(run_options, "NODE_HOSTS", tmp_path / "hosts")
    mount = run_options.etc_hosts_mount(make_pod(hostNetwork=True), (), tmp_path, "")
    assert Path(mount.host_path).read_bytes().endswith(b"# caf\xe9\n")


def test_the_node_s_resolv_conf_may_be_any_bytes_LIFE_135(tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_bytes(b"# caf\xe9\nnameserver 192.0.2.53\n")
    assert read_resolv_conf(str(tmp_path / "resolv.conf")).node_servers == ("192.0.2.53",)


def test_the_hosts_file_names_the_subdomain_and_the_aliases_LIFE_138_NODE_209() -> None:
    pod = make_pod(
        subdomain="s", hostAliases=[{"ip": "10.9.9.9", "hostnames": ["a", "b"]}], hostname="h"
    )
    text = hosts_text(pod, ("10.0.0.1", "fd00::1"), "cluster.local")
    assert text.startswith(
        "# Kubernetes-managed hosts file.\n"
        "127.0.0.1\tlocalhost\n"
        "::1\tlocalhost ip6-localhost ip6-loopback\n"
        "fe00::0\tip6-localnet\n"
        "fe00::0\tip6-mcastprefix\n"
        "fe00::1\tip6-allnodes\n"
        "fe00::2\tip6-allrouters\n"
    )
    assert text.endswith(
        "10.0.0.1\th.s.default.svc.cluster.local\th\n"
        "fd00::1\th.s.default.svc.cluster.local\th\n"
        "\n# Entries added by HostAliases.\n10.9.9.9\ta\tb\n"
    )


def test_privilege_sysctls_and_user_of_the_sandbox_LIFE_133() -> None:
    sysctls = [{"name": "net/ipv4/ip_forward", "value": "1"}]
    pod = make_pod(
        securityContext={"sysctls": sysctls, "runAsUser": 5, "fsGroup": 8},
        ephemeralContainers=[{"name": "e", "securityContext": {"privileged": True}}],
    )
    linux = sandbox_config(pod, 0, OPTIONS).linux
    assert dict(linux.sysctls) == {"net.ipv4.ip_forward": "1"}
    assert linux.security_context.privileged
    assert linux.security_context.run_as_user.value == 5
    assert list(linux.security_context.supplemental_groups) == [8]


# -- resources -----------------------------------------------------------------------------------


def test_overhead_is_told_apart_from_the_pods_resources_LIFE_133() -> None:
    limits = {"limits": {"cpu": "1", "memory": "64Mi"}}
    pod = make_pod(
        {"name": "main", "resources": limits}, overhead={"cpu": "250m", "memory": "16Mi"}
    )
    linux = sandbox_config(pod, 0, OPTIONS).linux
    assert (linux.resources.cpu_shares, linux.resources.memory_limit_in_bytes) == (1024, 64 << 20)
    assert (linux.overhead.cpu_shares, linux.overhead.cpu_quota) == (256, 25_000)
    assert linux.overhead.memory_limit_in_bytes == 16 << 20
    assert not sandbox_config(make_pod(), 0, OPTIONS).linux.overhead.ListFields()


def resources(pod: Any, options: ResourceOptions = RESOURCES) -> Any:
    return container_resources(pod.spec.containers[0], pod, options)


def test_a_missing_limit_is_the_pods_own_LIFE_139() -> None:
    own = {"limits": {"cpu": "2", "memory": "128Mi", "hugepages-2Mi": "4Mi"}}
    pod = make_pod(resources=own)
    made = resources(pod)
    assert (made.cpu_shares, made.cpu_quota) == (2048, 200_000)
    assert made.memory_limit_in_bytes == 128 << 20
    assert made.hugepage_limits[0].limit == 4 << 20
    request = {"name": "main", "resources": {"requests": {"cpu": "500m"}}}
    assert resources(make_pod(request, resources=own)).cpu_shares == 512
    limited = {"name": "main", "resources": {"limits": {"cpu": "1", "memory": "0"}}}
    made = resources(make_pod(limited, resources=own))
    assert (made.cpu_quota, made.memory_limit_in_bytes) == (100_000, 128 << 20)


def test_without_cfs_quota_neither_period_nor_quota_LIFE_139() -> None:
    pod = make_pod({"name": "main", "resources": {"limits": {"cpu": "1"}}})
    made = resources(pod, replace(RESOURCES, cpu_cfs_quota=False))
    assert (made.cpu_period, made.cpu_quota, made.cpu_shares) == (0, 0, 1024)


def memory(name: str, request: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"memory": request}}, **more}


@pytest.mark.parametrize(
    ("pod", "score"),
    [
        (make_pod("main"), 1000),
        (make_pod(memory("main", "100Mi")), 900),
        (make_pod(memory("main", "1Ki")), 999),
        (make_pod(memory("main", "999Mi")), 3),
        (make_pod({"name": "main", "resources": {"limits": {"cpu": "1", "memory": "1Mi"}}}), -997),
        (make_pod(memory("main", "100Mi"), resources={"requests": {"memory": "300Mi"}}), 700),
        (make_pod("main", "b", resources={"requests": {"memory": "300Mi"}}), 850),
        (make_pod("main", priority=2 * 10**9, priorityClassName="system-node-critical"), -997),
        (make_pod("main", priority=2 * 10**9, priorityClassName="system-cluster-critical"), 1000),
    ],
)
def test_oom_score_LIFE_140(pod: Any, score: int) -> None:
    assert oom_score_adj(pod.spec.containers[0], pod, 1000 << 20) == score


def test_a_sidecar_dies_no_earlier_than_any_regular_container_LIFE_140() -> None:
    pod = make_pod(
        memory("a", "300Mi"),
        memory("b", "200Mi"),
        init=(
            memory("small", "50Mi", restartPolicy="Always"),
            memory("big", "400Mi", restartPolicy="Always"),
            memory("plain", "50Mi"),
        ),
    )
    scores = [oom_score_adj(c, pod, 1000 << 20) for c in pod.spec.initContainers or ()]
    assert scores == [800, 600, 950]
