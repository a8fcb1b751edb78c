"""What the server knows about each resource: its names, its defaults, its rules."""

from fakeapi.resources.strategy import Strategy
from fakeapi.resources.table import GROUP_VERSIONS, RESOURCES, Resource, find_resource

__all__ = ["GROUP_VERSIONS", "RESOURCES", "Resource", "Strategy", "find_resource"]
