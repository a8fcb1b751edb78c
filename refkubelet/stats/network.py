"""Network traffic in the form of the summary API. Pure.

Of the default interface the values stand beside the time, and those of all that the source lists in
`interfaces`. Rules: SRV-030. Upstream: pkg/kubelet/stats/helper.go: cadvisorInfoToNetworkStats;
cri_stats_provider_linux.go: addCRIPodNetworkStats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from refkubelet.model.traffic import InterfaceTraffic, Traffic
from refkubelet.stats import wire

Json = dict[str, Any]
DEFAULT: Final = "eth0"
NO_INTERFACE: Final = InterfaceTraffic("")


def of_node(time_ns: int, interfaces: Sequence[InterfaceTraffic]) -> Traffic:
    """The node's traffic; its default interface is the one with the usual name."""
    default = next((i for i in interfaces if i.name == DEFAULT), None)
    return Traffic(time_ns, default, tuple(interfaces))


def network(traffic: Traffic | None) -> Json:
    """The part `network` in a dictionary of its own; empty without traffic."""
    if traffic is None:
        return {}
    document: Json = {"time": wire.shown_time(traffic.time_ns)}
    document |= _interface(traffic.default or NO_INTERFACE)
    if traffic.interfaces:
        document["interfaces"] = [_interface(each) for each in traffic.interfaces]
    return {"network": document}


def _interface(traffic: InterfaceTraffic) -> Json:
    return {
        "name": traffic.name,
        **wire.known(
            rxBytes=traffic.rx_bytes,
            rxErrors=traffic.rx_errors,
            txBytes=traffic.tx_bytes,
            txErrors=traffic.tx_errors,
        ),
    }
