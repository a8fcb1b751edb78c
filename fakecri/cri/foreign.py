"""Messages of other stubs than kubecri's: taken, and given back, by their bytes on the wire.

A CRI client has classes of its own, made from the same contract by protoc, betterproto or another
generator. They are told by their names; of a protobuf class the package counts, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from kubecri.v1 import api_pb2

from fakecri.cri.services import API_VERSIONS, METHODS, require_method


def exchange(
    method: str, request: Any, response: type[Any] | None
) -> tuple[Message, Callable[[Message], Any]]:
    """A call as kubecri has it: its request, and what puts answers into the caller's class.

    That class is `response`; None: the one that is beside the class of the request, in its .proto
    file or its module, else kubecri's. Raises ValueError for a method that CRI does not have,
    TypeError for a request, or a `response`, that is another method's.
    """
    require_method(method)
    rpc_method = METHODS[method]
    own = _in_class(rpc_method.request_type, request)
    if own is None:
        raise _wrong(f"{method}: wanted a {rpc_method.request_type.__name__}", request)
    response_class = response or _beside(type(request), rpc_method.response_type)
    if not _is_same(rpc_method.response_type, response_class):
        class_name = rpc_method.response_type.__name__
        raise TypeError(f"{method}: response: wanted a class {class_name}, got {response_class!r}")

    def give_back(answer: Message) -> Any:
        if isinstance(answer, api_pb2.VersionResponse) and answer.runtime_api_version == "v1":
            answer.runtime_api_version = _api_version(response_class)  # CRI-010
        return _in_class(response_class, answer)

    return own, give_back


def own_answer(method: str, answer: Any) -> Message:
    """The answer of a unary method in kubecri's class. Raises TypeError for another method's."""
    response_type = METHODS[method].response_type
    own: Message | None = _in_class(response_type, answer)
    if own is None:
        raise _wrong(f"{method}: wanted a {response_type.__name__} as answer", answer)
    return own


def _in_class(kind: type[Any], message: Any) -> Any:
    """The message in that class, itself if it is one; None: it is a different message."""
    if type(message) is kind:
        return message
    if not _is_same(kind, type(message)):
        return None
    return kind.FromString(message.SerializeToString())


def _is_same(kind: type[Any], other: object) -> bool:
    """Whether both are classes of one message of the contract."""
    if not isinstance(other, type) or _bare_name(other) != _bare_name(kind):
        return False
    return hasattr(other, "SerializeToString") and hasattr(other, "FromString")


def _bare_name(kind: type[Any]) -> str:
    """The name without the package, if that is the CRI's."""
    package, _, name = _name(kind).rpartition(".")
    return name if package in _PACKAGES else _name(kind)


def _name(kind: type[Any]) -> str:
    """As the .proto has it, with its package, or of a class without such a name its own."""
    full_name = getattr(getattr(kind, "DESCRIPTOR", None), "full_name", None)
    return str(full_name or kind.__name__)


_PACKAGES = ("", *(f"runtime.{version}" for version in API_VERSIONS))


def _api_version(kind: type[Any]) -> str:
    package = _name(kind).rpartition(".")[0]
    return package.removeprefix("runtime.") or "v1"


def _beside(kind: type[Any], wanted: type[Message]) -> type[Any]:
    """The class of that message in the stubs that `kind` is of."""
    name, descriptor = wanted.__name__, getattr(kind, "DESCRIPTOR", None)
    if descriptor is not None and name in descriptor.file.message_types_by_name:
        return GetMessageClass(descriptor.file.message_types_by_name[name])
    return getattr(sys.modules.get(kind.__module__), name, wanted)


def _wrong(wanted: str, given: object) -> TypeError:
    return TypeError(f"{wanted}, got {_bare_name(type(given))} {given!r}"[:200])
