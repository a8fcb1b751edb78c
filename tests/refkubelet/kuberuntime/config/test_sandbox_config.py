"""The config of RunPodSandbox: host names, ports, and the fields that come from the spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from pods import container, make_pod

from refkubelet.kuberuntime.common.runtime_options import DnsOptions, RuntimeOptions
from refkubelet.kuberuntime.config.sandbox import (
    SandboxConfigError,
    hostname,
    hostname_and_domain,
    port_mappings,
    sandbox_config,
)

LONG = "a" * 63


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, ("web", "")),
        ({"name": LONG}, (LONG, "")),
        ({"name": LONG + "b"}, (LONG, "")),
        ({"name": "a" * 61 + "-.b"}, ("a" * 61, "")),
        ({"hostname": "h", "subdomain": "s"}, ("h", "s.default.svc.c.local")),
        ({"subdomain": "s"}, ("web", "s.default.svc.c.local")),
        ({"hostnameOverride": "o", "hostname": "h", "subdomain": "s"}, ("o", "")),
        ({"hostNetwork": True, "subdomain": "s"}, ("web", "s.default.svc.c.local")),
    ],
)
def test_names_of_hosts_and_domains_LIFE_133(spec: dict[str, Any], wanted: tuple[str, str]) -> None:
    assert hostname_and_domain(make_pod(**spec), "c.local") == wanted


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"setHostnameAsFQDN": True}, "web"),
        ({"subdomain": "s"}, "web"),
        ({"subdomain": "s", "setHostnameAsFQDN": True}, "web.s.default.svc.c.local"),
        ({"subdomain": "s", "setHostnameAsFQDN": True, "hostNetwork": True}, ""),
        (
            {"hostname": "h" * 42, "subdomain": "s", "setHostnameAsFQDN": True},
            "h" * 42 + ".s.default.svc.c.local",
        ),
    ],
)
def test_the_host_name_of_a_sandbox_LIFE_133(spec: dict[str, Any], wanted: str) -> None:
    assert hostname(make_pod(**spec), "c.local") == wanted


def test_a_full_name_has_64_characters_at_most_LIFE_133() -> None:
    pod = make_pod(hostname="h" * 43, subdomain="s", setHostnameAsFQDN=True)
    with pytest.raises(SandboxConfigError) as refused:
        hostname(pod, "c.local")
    assert str(refused.value) == (
        f"failed to construct FQDN from pod hostname and cluster domain, FQDN {'h' * 43}"
        ".s.default.svc.c.local is too long (64 characters is the max, 65 characters requested)"
    )


def test_ports_of_a_container_LIFE_133() -> None:
    ports = [
        {"containerPort": 80},
        {"containerPort": 53, "protocol": "UDP", "hostPort": 5353, "hostIP": "::1"},
        {"containerPort": 9, "protocol": "SCTP"},
    ]
    (main, bare) = make_pod(container("main", ports=ports), "bare").spec.containers
    assert port_mappings(main) == [
        cri.PortMapping(protocol=cri.TCP, container_port=80),
        cri.PortMapping(protocol=cri.UDP, container_port=53, host_port=5353, host_ip="::1"),
        cri.PortMapping(protocol=cri.SCTP, container_port=9),
    ]
    assert port_mappings(bare) == []


def test_the_fields_of_a_sandbox_LIFE_133() -> None:
    sysctls = [{"name": "net/ipv4/a.b", "value": "1"}, {"name": "kernel.x", "value": "2"}]
    pod = make_pod(
        container("a", ports=[{"containerPort": 1}]),
        container("b", ports=[{"containerPort": 2}]),
        uid="u-1",
        meta={"labels": {"l": "1"}, "annotations": {"n": "2"}},
        securityContext={"sysctls": sysctls},
        dnsPolicy="Default",
    )
    options = RuntimeOptions(
        root_dir=Path("/r"),
        pod_logs_dir=Path("/l"),
        node_name="n1",
        dns=DnsOptions(node_servers=("192.0.2.1",)),
        pod_cgroup=lambda asked: f"/kubepods/{asked.metadata.name}",
    )
    made = sandbox_config(pod, 3, options)
    assert made.metadata == cri.PodSandboxMetadata(
        name="web", uid="u-1", namespace="default", attempt=3
    )
    assert (made.hostname, made.log_directory) == ("web", "/l/default_web_u-1")
    assert made.dns_config == cri.DNSConfig(servers=["192.0.2.1"])
    assert [port.container_port for port in made.port_mappings] == [1, 2]
    assert dict(made.labels) == {
        "l": "1",
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": "u-1",
    }
    assert dict(made.annotations) == {"n": "2"}
    assert made.linux.cgroup_parent == "/kubepods/web"
    assert dict(made.linux.sysctls) == {"net.ipv4.a/b": "1", "kernel.x": "2"}
