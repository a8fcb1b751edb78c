"""Network traffic in the summary (SRV-030)."""

from __future__ import annotations

from refkubelet.model.traffic import InterfaceTraffic, Traffic
from refkubelet.stats.network import network, of_node

ETH0 = InterfaceTraffic("eth0", 1, 2, 3, 4)
ENS3 = InterfaceTraffic("ens3", 5, 6, 7, 8)
AT_NS = 5 * 10**9
AT = "1970-01-01T00:00:05Z"
SHOWN = {"name": "eth0", "rxBytes": 1, "rxErrors": 2, "txBytes": 3, "txErrors": 4}


def test_the_default_interface_stands_beside_the_time_SRV_030() -> None:
    shown = network(of_node(AT_NS, [ENS3, ETH0]))["network"]
    names = [each["name"] for each in shown.pop("interfaces")]
    assert shown == {"time": AT, **SHOWN}
    assert names == ["ens3", "eth0"]


def test_a_node_without_the_usual_name_has_no_default_SRV_030() -> None:
    shown = network(of_node(AT_NS, [ENS3]))["network"]
    assert shown.pop("interfaces")[0]["txErrors"] == 8
    assert shown == {"time": AT, "name": ""}
    assert network(of_node(AT_NS, []))["network"] == shown


def test_what_is_not_told_is_left_out_SRV_030() -> None:
    assert network(None) == {}
    told = Traffic(AT_NS, InterfaceTraffic("eth0", rx_bytes=0))
    assert network(told) == {"network": {"time": AT, "name": "eth0", "rxBytes": 0}}
