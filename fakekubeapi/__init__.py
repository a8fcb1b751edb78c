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

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from fakekubeapi.access.certificates import CertificateAuthority as CertificateAuthority
    from fakekubeapi.access.users import User as User
    from fakekubeapi.api import FakeApi as FakeApi
    from fakekubeapi.api import RequestRecord as RequestRecord
    from fakekubeapi.errors import ApiUnreachable as ApiUnreachable
    from fakekubeapi.errors import StatusError as StatusError
    from fakekubeapi.faults import Fault as Fault
    from fakekubeapi.latency import api_latency as api_latency
    from fakekubeapi.options import ServerOptions as ServerOptions
    from fakekubeapi.verbs.dispatch import Response as Response
else:  # `fakekubeapi --help` answers at once
    __getattr__, __dir__ = face(
        __name__,
        {
            "access.certificates": "CertificateAuthority",
            "access.users": "User",
            "api": "FakeApi RequestRecord",
            "errors": "ApiUnreachable StatusError",
            "faults": "Fault",
            "latency": "api_latency",
            "options": "ServerOptions",
            "verbs.dispatch": "Response",
        },
    )

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
