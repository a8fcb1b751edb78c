"""The options of the topology manager's policies. Pure.

Rules: CG-083. Upstream: pkg/kubelet/cm/topologymanager/policy_options.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kubeobjects.golang.strconv import atoi, parse_bool, quoted

PREFER_CLOSEST: Final = "prefer-closest-numa-nodes"
MAX_NODES: Final = "max-allowable-numa-nodes"
DEFAULT_MAX_NODES: Final = 8


class TopologyOptions(Struct, frozen=True):
    """`prefer_closest`: of hints of the same size take the closest together. `max_nodes`: with more
    NUMA nodes the kubelet does not start; at least 8."""

    prefer_closest: bool = False
    max_nodes: int = DEFAULT_MAX_NODES


def topology_options(texts: Mapping[str, str]) -> TopologyOptions:
    """The options of a configuration. Raises ValueError with upstream's text."""
    for name in texts:
        if name not in (PREFER_CLOSEST, MAX_NODES):
            raise ValueError(f"unknown Topology Manager Policy option: {quoted(name)}")
    return TopologyOptions(_prefer_closest(texts), _max_nodes(texts))


def _prefer_closest(texts: Mapping[str, str]) -> bool:
    try:
        return parse_bool(texts.get(PREFER_CLOSEST, "false"))
    except ValueError as error:
        raise ValueError(f"bad value for option {quoted(PREFER_CLOSEST)}: {error}") from None


def _max_nodes(texts: Mapping[str, str]) -> int:
    name = quoted(MAX_NODES)
    try:
        value = atoi(texts.get(MAX_NODES, str(DEFAULT_MAX_NODES)))
    except ValueError as error:
        text = f"unable to convert policy option to integer {name}: {error}"
        raise ValueError(text) from None
    if value < DEFAULT_MAX_NODES:
        text = f"the minimum value of {name} should not be less than {DEFAULT_MAX_NODES}"
        raise ValueError(text)
    return value
