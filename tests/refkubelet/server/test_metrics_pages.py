"""The pages /metrics/resource and /metrics/cadvisor, line by line (SRV-031, SRV-032)."""

from __future__ import annotations

from typing import Any

import pytest

from refkubelet.cri.records import (
    ContainerState,
    ListedContainer,
    ListedSandbox,
    RuntimePod,
    SandboxState,
)
from refkubelet.cri.usage import ContainerUsage, SandboxUsage
from refkubelet.model.traffic import InterfaceTraffic, Traffic
from refkubelet.server.pages.cadvisor_metrics import MachineSize
from refkubelet.server.pages.cadvisor_metrics import page as cadvisor_page
from refkubelet.server.pages.resource_metrics import NamedSample, page, text_of

AT = "2026-01-01T00:00:01.5Z"
MS = 1767225601500
NO_ERROR = {
    "resource_scrape_error": "gauge",
}


def values(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def kinds(text: str) -> dict[str, str]:
    lines = (line.split() for line in text.splitlines() if line.startswith("# TYPE "))
    return {name: kind for _, _, name, kind in lines}


def used(cpu: int, memory: int, swap: int) -> dict[str, Any]:
    return {
        "cpu": {"time": AT, "usageCoreNanoSeconds": cpu},
        "memory": {"time": AT, "workingSetBytes": memory},
        "swap": {"time": AT, "swapUsageBytes": swap},
    }


def summary(node: Any, pod: Any, container: Any) -> dict[str, Any]:
    one = {"podRef": {"name": "web", "namespace": "ns"}, "containers": [{"name": "c", **container}]}
    return {"node": node, "pods": [{**one, **pod}]}


def test_what_is_used_of_node_pods_and_containers_SRV_031() -> None:
    container = used(2_500_000_000, 7, 5)
    container["swap"]["swapAvailableBytes"] = 20
    text = page(summary(used(10**9, 1, 2), used(0, 3, 4), {"startTime": AT, **container}))
    of_container, of_pod = 'container="c",pod="web",namespace="ns"', 'pod="web",namespace="ns"'
    assert values(text) == [
        f"container_cpu_usage_seconds_total{{{of_container}}} 2.5 {MS}",
        f"container_memory_working_set_bytes{{{of_container}}} 7.0 {MS}",
        f"container_start_time_seconds{{{of_container}}} 1767225601.5",
        f"container_swap_limit_bytes{{{of_container}}} 25.0 {MS}",
        f"container_swap_usage_bytes{{{of_container}}} 5.0 {MS}",
        f"node_cpu_usage_seconds_total 1.0 {MS}",
        f"node_memory_working_set_bytes 1.0 {MS}",
        f"node_swap_usage_bytes 2.0 {MS}",
        f"pod_cpu_usage_seconds_total{{{of_pod}}} 0.0 {MS}",
        f"pod_memory_working_set_bytes{{{of_pod}}} 3.0 {MS}",
        f"pod_swap_usage_bytes{{{of_pod}}} 4.0 {MS}",
        "resource_scrape_error 0.0",
    ]
    counters = {name for name, kind in kinds(text).items() if kind == "counter"}
    assert counters == {f"{part}_cpu_usage_seconds_total" for part in ("container", "node", "pod")}
    assert set(kinds(text).values()) == {"counter", "gauge"}


@pytest.mark.parametrize(
    ("container", "wanted"),
    [
        ({}, []),
        ({"cpu": None, "memory": {}, "swap": None}, []),
        ({"memory": {"workingSetBytes": 7}}, ["container_memory_working_set_bytes 7.0"]),
        ({"startTime": "1970-01-01T00:00:00Z"}, []),
        ({"startTime": "1970-01-01T00:00:01Z"}, ["container_start_time_seconds 1.0"]),
        ({"startTime": "1970-01-01T00:00:00.001Z"}, ["container_start_time_seconds 0.001"]),
        ({"swap": {"swapAvailableBytes": 1}}, []),
        ({"swap": {"swapUsageBytes": 1}}, ["container_swap_usage_bytes 1.0"]),
    ],
)
def test_what_is_not_known_has_no_line_SRV_031(
    container: dict[str, Any], wanted: list[str]
) -> None:
    text = page(summary({}, {}, container))
    labels = '{container="c",pod="web",namespace="ns"}'
    assert [line.replace(labels, "") for line in values(text)[:-1]] == wanted
    assert values(page(summary(None or {}, {}, {})))[-1:] == [
        "resource_scrape_error 0.0",
    ]


def test_without_a_summary_there_is_an_error_on_the_page_SRV_031() -> None:
    text = page(None)
    assert values(text) == ["resource_scrape_error 1.0"]
    assert kinds(text) == NO_ERROR


def test_the_text_format_is_that_of_prometheus_SRV_031() -> None:
    odd = NamedSample("b_memory_working_set_bytes", "gauge", (("l", 'a\\b"c\nd'),), 1.0)
    timed = NamedSample("b_memory_working_set_bytes", "gauge", (("l", "x"), ("m", "")), 2.5, 0)
    assert text_of([odd, NamedSample("a_total", "counter", (), 0.0), timed]) == (
        "# HELP a_total a_total\n"
        "# TYPE a_total counter\n"
        "a_total 0.0\n"
        "# HELP b_memory_working_set_bytes Working set in bytes\n"
        "# TYPE b_memory_working_set_bytes gauge\n"
        'b_memory_working_set_bytes{l="a\\\\b\\"c\\nd"} 1.0\n'
        'b_memory_working_set_bytes{l="x",m=""} 2.5 0\n'
    )
    assert text_of([]) == ""


def container(name: str, *, created_at_ns: int = 0) -> ListedContainer:
    return ListedContainer(
        id=f"id-{name}",
        name=name,
        state=ContainerState.RUNNING,
        sandbox_id="s",
        created_at_ns=created_at_ns,
        image="busybox:1",
    )


def usage(name: str, **fields: Any) -> ContainerUsage:
    return ContainerUsage(f"id-{name}", name, "u", "web", "ns", **fields)


MACHINE = MachineSize(cpus=4, memory_bytes=1024)
OF_MACHINE = ["machine_cpu_cores 4.0", "machine_memory_bytes 1024.0"]
ALL_USED: dict[str, Any] = {
    "cpu_usage_core_ns": 1_500_000_000,
    "cpu_time_ns": 5_000_000_000,
    "memory_time_ns": 6_000_000_000,
    "memory_working_set_bytes": 1,
    "memory_usage_bytes": 2,
    "memory_rss_bytes": 3,
    "swap_usage_bytes": 4,
    "memory_page_faults": 5,
    "memory_major_page_faults": 6,
    "rootfs_used_bytes": 7,
    "rootfs_mountpoint": "/mnt",
}


def shown(*rows: ContainerUsage, pods: tuple[RuntimePod, ...], **cgroups: str) -> str:
    return cadvisor_page(MACHINE, pods, rows, cgroups)


def test_what_containers_use_with_cadvisors_names_SRV_032() -> None:
    pod = RuntimePod("u", "web", "ns", containers=(container("c", created_at_ns=2_500_000_000),))
    text = shown(usage("c", **ALL_USED), pods=(pod,), u="/kubepods/podu")
    of = (
        'container="c",id="/kubepods/podu/id-c",image="busybox:1",name="id-c",namespace="ns",'
        'pod="web"'
    )
    assert values(text) == [
        f'container_cpu_usage_seconds_total{{{of},cpu="total"}} 1.5 5000',
        f'container_fs_usage_bytes{{{of},device="/mnt"}} 7.0',
        f'container_memory_failures_total{{{of},failure_type="pgfault",scope="container"}} 5.0',
        f'container_memory_failures_total{{{of},failure_type="pgmajfault",scope="container"}} 6.0',
        f"container_memory_rss{{{of}}} 3.0 6000",
        f"container_memory_swap{{{of}}} 4.0 6000",
        f"container_memory_usage_bytes{{{of}}} 2.0 6000",
        f"container_memory_working_set_bytes{{{of}}} 1.0 6000",
        f"container_start_time_seconds{{{of}}} 2.5",
        *OF_MACHINE,
    ]
    counters = {name for name, kind in kinds(text).items() if kind == "counter"}
    assert counters == {"container_cpu_usage_seconds_total", "container_memory_failures_total"}
    assert set(kinds(text).values()) == {"counter", "gauge"}


def test_what_the_runtime_does_not_tell_has_no_line_SRV_032() -> None:
    pod = RuntimePod("u", "web", "ns", containers=(container("none"), container("c")))
    text = shown(usage("c"), usage("gone", **ALL_USED), pods=(pod,))
    assert values(text) == OF_MACHINE
    without_times = {**ALL_USED, "cpu_time_ns": 0, "memory_time_ns": 0}
    lines = values(shown(usage("c", **without_times), pods=(pod,)))
    assert [line.rpartition("} ")[2] for line in lines[:-2]] == [
        *("1.5", "7.0", "5.0", "6.0", "3.0", "4.0", "2.0", "1.0")
    ]
    assert all('id="/id-c"' in line for line in lines[:-2])


def test_what_the_interfaces_of_pods_have_carried_SRV_032() -> None:
    pod = RuntimePod("u", "web", "ns", (ListedSandbox("s", SandboxState.READY),))
    told = Traffic(2_000_000, InterfaceTraffic("eth0", 1, 2, 3, 4), (InterfaceTraffic("eth1", 5),))
    rows = [
        SandboxUsage("u", 0, 0, 0, (), sandbox_id="s", traffic=told),
        SandboxUsage("u", 0, 0, 0, (), sandbox_id="older", traffic=Traffic(1)),
        SandboxUsage("v", 0, 0, 0, (), sandbox_id="silent"),
    ]
    text = cadvisor_page(MACHINE, [pod], [], {"u": "/kubepods/podu"}, rows)
    of = (
        'container="",id="/kubepods/podu/s",image="",name="s",namespace="ns",pod="web",'
        'interface="eth0"'
    )
    eth1 = of.replace("eth0", "eth1")
    assert values(text) == [
        f"container_network_receive_bytes_total{{{of}}} 1.0 2",
        f"container_network_receive_bytes_total{{{eth1}}} 5.0 2",
        f"container_network_receive_errors_total{{{of}}} 2.0 2",
        f"container_network_transmit_bytes_total{{{of}}} 3.0 2",
        f"container_network_transmit_errors_total{{{of}}} 4.0 2",
        *OF_MACHINE,
    ]
    assert kinds(text)["container_network_receive_bytes_total"] == "counter"
