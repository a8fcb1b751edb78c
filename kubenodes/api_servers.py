"""The API servers that nodes of tests can be at: the fake one, one that a kubeconfig names, and
envtest's (`envtest.py`). Each is a file for clients and a client for the nodes, on one loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from fakekubeapi import FakeApi, ServerOptions
from fakekubeapi.cli import kubeconfig as kubeconfig_text
from fakekubeapi.http import serve
from kubenodes.wire import client_of
from refkubelet.api.lightkube_client import LightkubeApiClient
from simclock import Ids, Rng
from simclock.loop_thread import LoopThread


class ApiServer(Struct, frozen=True):
    """An API server of tests."""

    kubeconfig: Path
    """By which clients reach it."""
    client: LightkubeApiClient
    """That of nodes; to be used on its loop."""
    fake: FakeApi | None = None
    """It, if it is the fake one; to be used on its loop."""


@contextmanager
def fake_server(thread: LoopThread, directory: Path) -> Iterator[ApiServer]:
    """A fake API server on a port of 127.0.0.1, on the thread's loop, until the block ends."""

    async def make() -> FakeApi:
        return FakeApi(ids=Ids(Rng.from_system()), options=ServerOptions(field_managers=True))

    api: FakeApi = thread.run(make)
    server = thread.run(lambda: serve(api))
    try:
        file = directory / "kubeconfig"
        file.write_text(kubeconfig_text(server.url, ""))
        yield ApiServer(file, client_of(api), api)
    finally:
        thread.run(server.close)


@contextmanager
def server_of(thread: LoopThread, kubeconfig: Path) -> Iterator[ApiServer]:
    """The API server of that file; connections of nodes are closed with the block. Raises
    ConfigError, which names the file."""

    async def connect() -> LightkubeApiClient:
        return LightkubeApiClient.from_kubeconfig(kubeconfig)

    client: LightkubeApiClient = thread.run(connect)
    try:
        yield ApiServer(kubeconfig, client)
    finally:
        thread.run(client.aclose)
