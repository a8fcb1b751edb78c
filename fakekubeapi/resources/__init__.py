"""What the server knows about each resource: names, defaults, rules, and the columns of its Table.

`registry` lists the resources; `strategy` has the rules common to all, `core` and `pods` those of
single ones (`pod_admission`, `pod_qos`, `pod_resizes` and `pod_updates` are parts of `pods`; what a
pod may be is in kubeobjects); `printers` makes Tables.
"""

from fakekubeapi.resources.common.strategy import Strategy
from fakekubeapi.resources.registry import GROUP_VERSIONS, RESOURCES, Resource, find_resource

__all__ = ["GROUP_VERSIONS", "RESOURCES", "Resource", "Strategy", "find_resource"]
