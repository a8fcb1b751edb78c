"""A blocking client of a control socket: one connection a request, standard library only.

For `fakecri ctl` and for tests without an event loop. It waits in real time, since what it waits
for happens in another process.
"""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import quote, urlencode

from fakecri.cri.endpoint import EndpointError, require_listener, socket_path
from kubeobjects.arguments import arguments_told, tells_arguments
from simclock import RealClock

_POLL_S = 0.02


class ControlError(Exception):
    """The other side refused a request: `status` is the HTTP status, the text says why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class WaitTimeout(ControlError):
    """`wait_for_calls` waited in vain."""


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, timeout_s: float | None) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@arguments_told
class ControlClient:
    """A client of one control socket.

    `timeout_s` limits each request; None: no limit (an advance takes as long as its work takes).
    Raises EndpointError for a malformed endpoint; that nothing listens there shows at the first
    request.
    """

    def __init__(self, endpoint: str, *, timeout_s: float | None = None) -> None:
        self.path = socket_path(endpoint)
        self._timeout_s = timeout_s

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """The answer to a request: the parsed JSON document, or a list of documents for JSON lines.

        `body`: data that is sent as JSON, or a `str` that is sent as it is. Raises ControlError
        with the other side's words, EndpointError when nothing listens.
        """
        filled = {key: value for key, value in (query or {}).items() if value is not None}
        target = quote(path) + (f"?{urlencode(filled)}" if filled else "")
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        connection = _UnixConnection(str(self.path), self._timeout_s)
        try:
            connection.request(method, target, None if text is None else text.encode())
            answer = connection.getresponse()
            status, kind, data = answer.status, answer.getheader("Content-Type"), answer.read()
        except (OSError, HTTPException) as error:
            require_listener(self.path, hint="start one:  fakecri serve --control unix:///PATH ...")
            if isinstance(error, HTTPException):
                raise EndpointError(
                    f"what listens on unix://{self.path} is no control socket; give the path that "
                    "`fakecri serve` or `fakecri proxy` got as --control"
                ) from None
            raise EndpointError(f"no answer from unix://{self.path}: {error!r}") from None
        finally:
            connection.close()
        if kind == "application/x-ndjson":
            return [json.loads(line) for line in data.splitlines()]
        parsed = json.loads(data)
        if status >= 400:
            raise ControlError(status, parsed["error"])
        return parsed

    @tells_arguments("pod", "container", "image", "attempt", "since_s")
    def wait_for_calls(self, method: str, *, times: int, within_s: float, **filters: Any) -> int:
        """Wait until there were `times` such calls; returns how many there are.

        Raises WaitTimeout once `within_s` seconds of real time have passed.
        """

        clock = RealClock()
        end_s = clock.monotonic_s() + within_s
        while (count := self._count(method, filters)) < times:
            if clock.monotonic_s() >= end_s:
                raise WaitTimeout(
                    412, f"expected {times} x {method} within {within_s:g} s, got {count}"
                )
            select.select([], [], [], _POLL_S)  # another process: there is no event to wait for
        return count

    def wait_until_ready(self, *, within_s: float) -> None:
        """Wait until the other side answers; it does once the CRI is served.

        Raises WaitTimeout, with what was in the way last, once `within_s` seconds have passed.
        """
        clock = RealClock()
        end_s = clock.monotonic_s() + within_s
        while True:
            try:
                self.request("GET", "/v1")
                return
            except EndpointError as error:
                if clock.monotonic_s() >= end_s:
                    raise WaitTimeout(412, f"not ready within {within_s:g} s: {error}") from None
            select.select([], [], [], _POLL_S)  # another process: there is no event to wait for

    def _count(self, method: str, filters: Mapping[str, Any]) -> int:
        answer = self.request("GET", "/v1/calls/count", query={"method": method, **filters})
        return int(answer["count"])
