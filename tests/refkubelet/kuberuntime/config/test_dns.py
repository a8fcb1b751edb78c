"""The DNS settings of a sandbox: of the node, of the cluster, and of the pod itself."""

from __future__ import annotations

from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from pods import make_pod

from refkubelet.kuberuntime.common.runtime_options import DnsOptions
from refkubelet.kuberuntime.config.dns import (
    dns_config,
    dns_problems,
    needs_missing_cluster_dns_event,
    node_resolver,
    resolv_conf_problem,
)

NODE = DnsOptions(
    cluster_dns=("10.96.0.10",),
    cluster_domain="cluster.local",
    node_servers=("192.0.2.1",),
    node_searches=("example.com",),
    node_options=("timeout:2",),
)
WITHOUT_CLUSTER = DnsOptions(
    node_servers=("192.0.2.1",), node_searches=("example.com",), node_options=("timeout:2",)
)
OF_CLUSTER = (
    ["10.96.0.10"],
    ["default.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.com"],
    ["ndots:5"],
)
OF_NODE = (["192.0.2.1"], ["example.com"], ["timeout:2"])


@pytest.mark.parametrize(
    ("text", "servers", "searches", "options"),
    [
        ("", (), (), ()),
        ("\n  \nnameserver\nsearch\noptions\n", (), (), ()),
        ("nameserver 1.1.1.1 2.2.2.2\n nameserver\t::1\n", ("1.1.1.1", "::1"), (), ()),
        ("# nameserver 1.1.1.1\n#nameserver 1.1.1.1\nnames 1.1.1.1\n", (), (), ()),
        ("search a b\nsearch c d\nnameserver 1.1.1.1\n", ("1.1.1.1",), ("c", "d"), ()),
        ("search a. . b..\n", (), ("a", "b."), ()),
        ("search a\nsearch\n", (), (), ()),
        ("domain a\n", (), (), ()),
        ("options a ndots:2\noptions b ndots:3 a:1\n", (), (), ("a:1", "ndots:3", "b")),
    ],
)
def test_the_text_of_a_resolv_conf_NODE_221(
    text: str, servers: tuple[str, ...], searches: tuple[str, ...], options: tuple[str, ...]
) -> None:
    assert node_resolver(text) == DnsOptions(
        node_servers=servers, node_searches=searches, node_options=options
    )


@pytest.mark.parametrize(
    ("spec", "options", "wanted"),
    [
        ({}, NODE, OF_CLUSTER),
        ({"dnsPolicy": "ClusterFirst"}, NODE, OF_CLUSTER),
        ({"dnsPolicy": "ClusterFirst", "hostNetwork": True}, NODE, OF_NODE),
        ({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True}, NODE, OF_CLUSTER),
        ({"dnsPolicy": "ClusterFirstWithHostNet"}, NODE, OF_CLUSTER),
        ({"dnsPolicy": "Default"}, NODE, OF_NODE),
        ({"dnsPolicy": "None"}, NODE, ([], [], [])),
        ({}, WITHOUT_CLUSTER, OF_NODE),
        (
            {},
            DnsOptions(cluster_dns=("10.96.0.10",), node_searches=("example.com",)),
            (["10.96.0.10"], ["example.com"], ["ndots:5"]),
        ),
        (
            {},
            DnsOptions(cluster_dns=("1.1.1.1",), cluster_domain="a", node_searches=("b", "a")),
            (["1.1.1.1"], ["default.svc.a", "svc.a", "a", "b"], ["ndots:5"]),
        ),
        ({}, DnsOptions(no_resolv_conf=True), (["127.0.0.1"], ["."], [])),
        ({"dnsPolicy": "None"}, DnsOptions(no_resolv_conf=True), ([], [], [])),
    ],
)
def test_each_policy_LIFE_135(
    spec: dict[str, Any], options: DnsOptions, wanted: tuple[list[str], list[str], list[str]]
) -> None:
    servers, searches, words = wanted
    assert dns_config(make_pod(**spec), options) == cri.DNSConfig(
        servers=servers, searches=searches, options=words
    )


@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        ({}, OF_NODE),
        (
            {"nameservers": ["9.9.9.9", "192.0.2.1"], "searches": ["own", "example.com"]},
            (["192.0.2.1", "9.9.9.9"], ["example.com", "own"], ["timeout:2"]),
        ),
        (
            {
                "options": [
                    {"name": "timeout", "value": "9"},
                    {"name": "edns0"},
                    {"name": "empty", "value": ""},
                    {"value": "nameless"},
                ]
            },
            (["192.0.2.1"], ["example.com"], ["timeout:9", "edns0", "empty"]),
        ),
    ],
)
def test_the_pod_s_own_settings_come_on_top_LIFE_135(
    own: dict[str, Any], wanted: tuple[list[str], list[str], list[str]]
) -> None:
    servers, searches, options = wanted
    pod = make_pod(dnsPolicy="Default", dnsConfig=own)
    assert dns_config(pod, NODE) == cri.DNSConfig(
        servers=servers, searches=searches, options=options
    )


@pytest.mark.parametrize(
    ("spec", "wants"),
    [
        ({}, True),
        ({"hostNetwork": True}, False),
        ({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True}, True),
        ({"dnsPolicy": "Default"}, False),
        ({"dnsPolicy": "None"}, False),
    ],
)
def test_a_missing_cluster_dns_is_told_to_pods_that_want_it_LIFE_135(
    spec: dict[str, Any], wants: bool
) -> None:
    pod = make_pod(**spec)
    assert needs_missing_cluster_dns_event(pod, WITHOUT_CLUSTER) is wants
    assert not needs_missing_cluster_dns_event(pod, NODE)


def test_three_servers_are_kept_and_the_rest_is_told_NODE_221() -> None:
    servers = tuple(f"192.0.2.{number}" for number in range(1, 5))
    options = DnsOptions(node_servers=servers)
    pod = make_pod(dnsPolicy="Default")
    assert list(dns_config(pod, options).servers) == list(servers[:3])
    assert dns_problems(pod, options) == (
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied "
        "nameserver line is: 192.0.2.1 192.0.2.2 192.0.2.3",
    )
    few = DnsOptions(node_servers=servers[:3])
    assert dns_problems(pod, few) == ()


@pytest.mark.parametrize(
    ("searches", "kept"),
    [
        ([f"s{number}" for number in range(32)], 32),
        ([f"s{number}" for number in range(33)], 32),
        (["a" * 253, "b" * 254, "c"], 2),
        ([f"{number:02}" + "a" * 251 for number in range(8)], 8),  # 8 * 254 - 1 = 2031
        ([*(f"{number:02}" + "a" * 251 for number in range(8)), "b" * 16], 9),  # 2048
        ([*(f"{number:02}" + "a" * 251 for number in range(8)), "b" * 17], 8),
    ],
)
def test_searches_are_cut_from_the_end_NODE_221(searches: list[str], kept: int) -> None:
    options = DnsOptions(node_searches=tuple(searches))
    pod = make_pod(dnsPolicy="Default")
    found = list(dns_config(pod, options).searches)
    assert len(found) == kept
    assert found == [search for search in searches if len(search) < 254][:kept]
    told = dns_problems(pod, options)
    assert bool(told) is (kept < len(searches))
    if told:
        assert told[0].startswith("Search Line limits were exceeded, some search paths have been")
        assert told[0].endswith(f"the applied search line is: {' '.join(found)}")


def test_the_limits_count_after_the_pods_own_settings_NODE_220_5_NODE_221() -> None:
    own = {"nameservers": ["198.51.100.1", "198.51.100.2", "198.51.100.3"]}
    pod = make_pod(dnsPolicy="Default", dnsConfig=own)
    assert list(dns_config(pod, NODE).servers) == ["192.0.2.1", "198.51.100.1", "198.51.100.2"]


@pytest.mark.parametrize(
    ("count", "domain", "told"),
    [(29, "c", False), (30, "c", True), (32, "", False), (33, "", True)],
)
def test_the_nodes_file_leaves_room_for_the_clusters_searches_NODE_221_4(
    count: int, domain: str, told: bool
) -> None:
    searches = tuple(f"s{number}" for number in range(count))
    options = DnsOptions(node_searches=searches, cluster_domain=domain)
    found = resolv_conf_problem("/r", options)
    most = 29 if domain else 32
    wanted = f"Resolv.conf file '/r' contains search line consisting of more than {most} domains!"
    assert found == (wanted if told else None)


def test_long_searches_of_the_nodes_file_are_told_NODE_221_4() -> None:
    long = resolv_conf_problem("/r", DnsOptions(node_searches=("a" * 254,)))
    assert long is not None
    assert 'file "/r" contains a search path which length is more than allowed 253 chars!' in long
    whole = resolv_conf_problem("/r", DnsOptions(node_searches=tuple(["a" * 253] * 9)))
    assert whole is not None
    assert "contains search line which length is more than allowed 2048 chars!" in whole
