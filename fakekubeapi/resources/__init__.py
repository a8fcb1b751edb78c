"""What the server knows about each resource: names, defaults, rules, and the columns of its Table.

`registry` lists the resources; `common.strategy` has the rules common to all, `pods`, `services`,
`storage` and the modules here those of single ones (what a pod may be is in kubeobjects); `wire`
writes objects as the API server does; `printers` makes Tables.
"""

from fakekubeapi.resources.common.strategy import Strategy
from fakekubeapi.resources.registry import GROUP_VERSIONS, RESOURCES, Resource, find_resource

__all__ = ["GROUP_VERSIONS", "RESOURCES", "Resource", "Strategy", "find_resource"]
