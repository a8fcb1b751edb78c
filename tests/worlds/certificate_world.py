"""A certificate manager in front of a fake API server with an authority."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fakekubeapi import CertificateAuthority, FakeApi, ServerOptions
from fakekubeapi.httpx_transport import InProcessTransport
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.certificates.deadlines import Held, Wanted
from refkubelet.certificates.manager import CertificateManager, CertificateSettings
from refkubelet.certificates.pem import new_key, request_for
from refkubelet.certificates.requests import SERVING, Purpose
from refkubelet.certificates.store import CertificateStore
from simclock import Clock, VirtualLoop

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
HOUR = 3600
WANTED = Wanted("system:node:n", ("system:nodes",), ("n",), ("192.0.2.1",))


def the_clock() -> Clock:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.clock


class World:
    """One manager at a time over the same directory; `wanted` is what it wants."""

    def __init__(self, directory: Path, lasts_s: int = 100 * HOUR) -> None:
        self.directory = directory
        self.clock = the_clock()
        authority = CertificateAuthority.make(self.clock.now())
        self.api = FakeApi(self.clock, options=ServerOptions(authority=authority))
        self.api.signing.lasts_s = lasts_s
        self.wanted: Wanted | None = WANTED
        self.client = LightkubeApiClient.in_process(InProcessTransport(self.api))
        self.renewed: list[Path] = []

    def store(self, purpose: Purpose = SERVING, **more: Any) -> CertificateStore:
        return CertificateStore(self.directory, purpose.files, self.clock, **more)

    def manager(self, purpose: Purpose = SERVING, **more: Any) -> CertificateManager:
        async def renewed(pair: tuple[Path, Path]) -> None:
            self.renewed.append(pair[0])

        settings = CertificateSettings(
            purpose, lambda: self.wanted, lambda: self.client, renewed=renewed, **more
        )
        return CertificateManager(settings, self.store(purpose), self.clock, lambda: 0.5)

    @asynccontextmanager
    async def running(self, **more: Any) -> AsyncIterator[CertificateManager]:
        manager = self.manager(**more)
        task = asyncio.create_task(manager.run())
        try:
            yield manager
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def requests(self) -> list[Mapping[str, Any]]:
        """The requests at the server, the oldest first."""
        found = self.api.store.items("certificatesigningrequests.certificates.k8s.io")
        return sorted(found, key=lambda one: one["metadata"]["creationTimestamp"])

    def posted_s(self) -> list[float]:
        """When each was made, in seconds."""
        return [record.started_s for record in self.api.requests("POST", CSRS)]

    async def until(self, true: Callable[[], object], within_s: float = 100 * HOUR) -> None:
        async with asyncio.timeout(within_s):
            while not true():
                await self.clock.sleep(0.1 if within_s <= HOUR else 1)

    def issue(self, wanted: Wanted = WANTED, lasts_s: int = HOUR) -> tuple[bytes, bytes]:
        """A certificate and its key, made at once."""
        key = new_key()
        authority = self.api.authority
        assert authority is not None
        request = request_for(wanted, key)
        usages = ("digital signature", "server auth")
        return authority.sign(request, usages, self.clock.now(), lasts_s).encode(), key

    def hold(self, purpose: Purpose = SERVING, **how: Any) -> Held:
        """Keep such a certificate, as of an earlier run."""
        return self.store(purpose).update(*self.issue(**how))
