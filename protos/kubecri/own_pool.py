"""The descriptor pool of kubecri, and the message classes of the files in it.

Protobuf's default pool takes each name once in a process. Other CRI clients bring stubs with the
same names (`runtime.v1.Protocol`, ...), so kubecri's are in a pool of their own, and both can be
imported, in any order. The generated modules call `build`, where those of protoc call protobuf's
builder, because that one makes all its classes known to the default pool.
"""

from typing import Any

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message_factory import GetMessageClass

POOL = DescriptorPool()
"""What kubecri's messages are found in by name (gRPC reflection, `Any`, text with extensions)."""


def build(file: FileDescriptor, module_name: str, module: dict[str, Any]) -> None:
    """Put a file's message classes and enums into the module with that name."""
    for name, service in file.services_by_name.items():
        module[f"_{name.upper()}"] = service
    for name, enum in file.enum_types_by_name.items():
        module[f"_{name.upper()}"] = enum
        module[name] = EnumTypeWrapper(enum)
        for value in enum.values:
            module[value.name] = value.number
    for name, descriptor in file.message_types_by_name.items():
        module[name] = _named(descriptor, module_name, name)


def _named(descriptor: Descriptor, module_name: str, path: str) -> Any:
    """The class of a message, with the name by which it is imported, shown and pickled."""
    made = GetMessageClass(descriptor)
    made.__module__, made.__qualname__ = module_name, path
    for name, nested in descriptor.nested_types_by_name.items():
        setattr(made, name, _named(nested, module_name, f"{path}.{name}"))
    return made
