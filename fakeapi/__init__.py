"""A fake kube-apiserver: storage, watches, patches and pod deletion, in one process.

`FakeApi` is the server; `fakeapi.httpx_transport` connects a lightkube client to it without a
socket (and so in virtual time), `fakeapi.http` and `fakeapi serve` put it on a port.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakeapi.api import FakeApi, RequestRecord
    from fakeapi.dispatch import Response
    from fakeapi.errors import ApiUnreachable, StatusError
    from fakeapi.faults import Fault

# Where each public name lives; imported when first used, so that `fakeapi --help` answers at once.
_HOMES = {
    "ApiUnreachable": "errors",
    "FakeApi": "api",
    "Fault": "faults",
    "RequestRecord": "api",
    "Response": "dispatch",
    "StatusError": "errors",
}

__all__ = ["ApiUnreachable", "FakeApi", "Fault", "RequestRecord", "Response", "StatusError"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fakeapi' has no attribute {name!r}")
    return getattr(import_module(f"fakeapi.{_HOMES[name]}"), name)
