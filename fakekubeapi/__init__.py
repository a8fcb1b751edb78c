"""A fake kube-apiserver: storage, watches, patches, server-side apply and pod deletion, in one
process.

`FakeApi` is the server; `fakekubeapi.httpx_transport` connects a lightkube client to it without a
socket (so it works in virtual time), `fakekubeapi.http` and the command `fakekubeapi serve` put it
on a TCP port, where `--data DIR` keeps the objects over restarts. How a request goes through the
folders: `asked` reads it, once (path and query with `requests`, the body with `bodies` and
`protobuf`), `negotiation` chooses the format of the answer, `api` takes it, `faults` may make it
fail, `verbs.dispatch` carries it out with `verbs` (read `verbs.creation`, `verbs.changing` and
`verbs.deletion` for the steps of an object that is made, changed and deleted), under the rules of
`resources` and, for who owns which field, of `apply`, on the objects of `storage`; `answers` writes
the answer. The API's types are in `kubeobjects.schema`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakekubeapi.access.certificates import CertificateAuthority
    from fakekubeapi.access.users import User
    from fakekubeapi.api import FakeApi, RequestRecord
    from fakekubeapi.errors import ApiUnreachable, StatusError
    from fakekubeapi.faults import Fault
    from fakekubeapi.latency import api_latency
    from fakekubeapi.options import ServerOptions
    from fakekubeapi.verbs.dispatch import Response

# Where each public name lives; imported when first used: `fakekubeapi --help` answers at once.
_HOMES = {
    "ApiUnreachable": "errors",
    "CertificateAuthority": "access.certificates",
    "FakeApi": "api",
    "Fault": "faults",
    "RequestRecord": "api",
    "Response": "verbs.dispatch",
    "ServerOptions": "options",
    "StatusError": "errors",
    "User": "access.users",
    "api_latency": "latency",
}

__all__ = [
    "ApiUnreachable",
    "CertificateAuthority",
    "FakeApi",
    "Fault",
    "RequestRecord",
    "Response",
    "ServerOptions",
    "StatusError",
    "User",
    "api_latency",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fakekubeapi' has no attribute {name!r}")
    return getattr(import_module(f"fakekubeapi.{_HOMES[name]}"), name)
