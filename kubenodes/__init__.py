"""Nodes for other people's tests: refkubelet on fakecri, one or many, in this process.

`KubeNode` is one node on the running loop, `NodePool` several of one API server, `ServedNode` one
that lives in a background thread for tests without a loop; pytest gets the fixtures `kube_node` and
`kube_nodes`. Read `node` first, then `pool`; `settings` is what a node is made with, `wire` how it
reaches its runtime and the API server, `running` one run of its kubelet, `network` what its probes
reach; `api_servers` and `envtest` are where nodes of tests can be, `leftovers` what is removed
after them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from kubenodes.api_servers import ApiServer as ApiServer
    from kubenodes.envtest import EnvtestError as EnvtestError
    from kubenodes.node import KubeNode as KubeNode
    from kubenodes.node import NodeError as NodeError
    from kubenodes.pool import NodePool as NodePool
    from kubenodes.served import ServedNode as ServedNode
    from kubenodes.settings import NodeSettings as NodeSettings
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "api_servers": "ApiServer",
            "envtest": "EnvtestError",
            "node": "KubeNode NodeError",
            "pool": "NodePool",
            "served": "ServedNode",
            "settings": "NodeSettings",
        },
    )

__all__ = [
    "ApiServer",
    "EnvtestError",
    "KubeNode",
    "NodeError",
    "NodePool",
    "NodeSettings",
    "ServedNode",
]
