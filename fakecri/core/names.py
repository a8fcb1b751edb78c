"""The names that sandboxes and containers hold: one holder each, also while a create goes on.

What must never happen here: two holders of one name (CRI-024).
"""

from __future__ import annotations

from typing import TypeAlias

from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb
from msgspec import Struct, field

from fakecri.core.lookups.lookup import shown
from fakecri.core.requests import container_name, sandbox_name
from fakecri.errors import unknown

Name: TypeAlias = tuple[str, str]
"""What kind of object, and what nothing else of that kind may be called."""


def name_of_create(request: Message) -> Name:
    """The name that a RunPodSandbox or CreateContainer request takes."""
    if isinstance(request, pb.RunPodSandboxRequest):
        return "sandbox", sandbox_name(request.config.metadata)
    assert isinstance(request, pb.CreateContainerRequest)
    return "container", container_name(request.config.metadata, request.sandbox_config.metadata)


class NameTable(Struct, eq=False):
    """Which object has which name."""

    _holders: dict[Name, str] = field(default_factory=dict)
    _names: dict[str, Name] = field(default_factory=dict)
    """The same by holder."""

    def require_free(self, name: Name) -> None:
        """Check that no object has the name. Raises CriError, in the words of containerd
        (CRI-025)."""
        holder = self._holders.get(name)
        if holder is not None:
            kind, text = name[0], shown(name[1])
            raise unknown(
                f'failed to reserve {kind} name "{text}": name "{text}" is reserved for "{holder}"'
            )

    def take(self, name: Name, holder: str) -> None:
        """Give the name to the object `holder`. Raises CriError if another object has it."""
        self.require_free(name)
        self._holders[name] = holder
        self._names[holder] = name

    def free(self, holder: str) -> None:
        """Free the name of the object `holder`. May be called again."""
        name = self._names.pop(holder, None)
        if name is not None:
            del self._holders[name]

    def clear(self) -> None:
        """All names are free."""
        self._holders.clear()
        self._names.clear()
