"""Requests as texts, for the fuzzer: a line `METHOD TARGET`, lines with headers, an empty line, and
a body. What no HTTP server lets through to the readers below it is refused with a `BadRequest`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final, NamedTuple, TypeVar

from server_world import body, port

from fakekubeapi import FakeApi
from refkubelet.server.common.exchange import Request
from refkubelet.server.request_line import BadRequest, path_of, query_of
from simclock import VirtualLoop

T = TypeVar("T")
KNOWN: Final = (
    ("/api/v1/namespaces", {"metadata": {"name": "a"}}),
    ("/api/v1/nodes", {"metadata": {"name": "n"}}),
    (
        "/api/v1/namespaces/a/pods",
        {
            "metadata": {"name": "p"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
        },
    ),
)
"""What the API server has before each request: path -> object."""
_LOOP: Final = VirtualLoop()


class _Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


_COMPLAINTS: Final = _Kept()
logging.getLogger("refkubelet.server").addHandler(_COMPLAINTS)


class _Sent(NamedTuple):
    """A request; `headers` by their names in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def kubelet_request(data: bytes) -> None:
    """The kubelet's main port, open to everybody, answers, and complains of no error of its own:
    what the runtime refuses is a 500, too, and is not complained of."""
    sent = _sent(data)
    asked = Request(
        method=sent.method,
        path=path_of(sent.target),
        query=query_of(sent.target),
        headers=sent.headers,
    )

    async def ask() -> None:
        await body(await port().answer(asked))

    _COMPLAINTS.records.clear()
    _run(ask())
    assert not _COMPLAINTS.records, _COMPLAINTS.records[0].getMessage()


def fakekubeapi_request(data: bytes) -> None:
    """fakekubeapi answers, be it with a 500: kube-apiserver does so, too, to an apply that it
    cannot read."""
    sent = _sent(data)
    path, params = path_of(sent.target), dict(query_of(sent.target))

    async def ask() -> None:
        api = FakeApi()
        for place, known in KNOWN:
            await api.request("POST", place, body=known)
        await api.request(
            sent.method,
            path,
            params=params,
            body=sent.body or None,
            content_type=sent.headers.get("content-type", "application/json"),
            user_agent=sent.headers.get("user-agent", ""),
        )

    _run(ask())


def _run(asked: Awaitable[T]) -> T:
    async def within_an_hour() -> T:
        async with asyncio.timeout(3600):
            return await asked

    return _LOOP.run_until_complete(within_an_hour())


def _sent(data: bytes) -> _Sent:
    head, _, content = data.partition(b"\n\n")
    line, *lines = head.decode(errors="replace").split("\n")
    method, _, target = line.partition(" ")
    if not method.isalpha() or not target:
        raise BadRequest("no method, or no target")
    pairs = [one.partition(":") for one in lines]
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return _Sent(method.upper(), target, headers, content)
