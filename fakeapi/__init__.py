"""A fake kube-apiserver: storage, watches, patches and pod deletion, in one process.

`FakeApi` is the server; `fakeapi.httpx_transport` connects a lightkube client to it without a
socket (and so in virtual time), `fakeapi.http` and `fakeapi serve` put it on a port.
"""

from fakeapi.api import FakeApi, RequestRecord
from fakeapi.dispatch import Response
from fakeapi.errors import ApiUnreachable, StatusError
from fakeapi.faults import Fault

__all__ = ["ApiUnreachable", "FakeApi", "Fault", "RequestRecord", "Response", "StatusError"]
