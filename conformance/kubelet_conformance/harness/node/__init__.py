"""What a case works with: one `Node`, and what can be done with it by subject.

`node` has `Node` itself; its facets, `node.api`, `node.kubelet`, `node.runtime`, `node.machine`,
`node.cgroups`, `node.plugins` and `node.storage`, have a module each. `parts` is what a node is
made of, `watch` the time of a case and the last look at the node; both are for the harness only.
"""

from kubelet_conformance.harness.node.node import Node

__all__ = ["Node"]
