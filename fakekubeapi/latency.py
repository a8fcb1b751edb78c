"""How long an API server takes for its requests: `FakeApi(latency=api_latency(Rng(1)))`.

The means are of the size that kube-apiserver with an etcd beside it shows; they are chosen, not
measured."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kubeobjects.arguments import tells_arguments
from simclock import Latency, Rng

EVENT: Final = "watch event"
MEANS_S: Final[Mapping[str, float]] = MappingProxyType(
    {
        "GET": 0.0015,  # lists, and the opening of a watch, too
        "POST": 0.005,
        "PUT": 0.005,
        "PATCH": 0.005,
        "DELETE": 0.005,
        EVENT: 0.0015,  # from a change to the watches that are told of it
    }
)
"""Mean seconds by HTTP method."""


@tells_arguments()
def api_latency(rng: Rng, factor: float = 1.0) -> Latency:
    """The latency of an API server. `factor` makes all requests slower or quicker; 0: they take no
    time. Raises ValueError for a factor that cannot be."""
    return Latency(rng, MEANS_S, factor=factor, purpose="latency of API")
