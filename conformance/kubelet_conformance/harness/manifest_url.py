"""A web server with manifests, for `staticPodURL`: what it answers, and who asked.

The kubelet in this process asks it through its network (`kubelets.fake_network`), without a socket;
for kubelet programs it is served (`manifest_server`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

URL: Final = "http://manifests.test/pods"


class Asked(Struct, frozen=True):
    """One request of the kubelet."""

    at_s: float
    """When it came, in seconds of the loop's clock."""
    headers: tuple[tuple[str, str], ...]


@dataclass
class ManifestUrl:
    """The server. `status` 0: it does not listen."""

    url: str = URL
    status: int = 404
    body: str = ""
    delay_s: float = 0.0
    """How long it takes to answer."""
    asked: list[Asked] = field(default_factory=list)

    def answers(self, body: str, status: int = 200) -> None:
        """Answer so from now on."""
        self.status, self.body = status, body

    async def ask(self, headers: tuple[tuple[str, str], ...]) -> tuple[int, str]:
        """Status and body for one request."""
        self.asked.append(Asked(asyncio.get_running_loop().time(), headers))
        status, body = self.status, self.body
        await asyncio.sleep(self.delay_s)
        return status, body
