"""The static pods behind a URL: asked for at once, then every period.

An answer that cannot be had, or does not hold pods, changes nothing; an empty one means no pods.
The bytes of the last answer are remembered before they are read, so the same wrong answer is told
once (SRC-023). Rules: SRC-020..024. Upstream: pkg/kubelet/config/http.go.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from refkubelet.failures import Complaints
from refkubelet.host.network import HttpRequest, Network, NetworkError
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.config import Deliver
from refkubelet.pods.manifest import ManifestError
from refkubelet.pods.manifest_list import read_manifests
from simclock import Clock

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 10.0
MOST_BYTES: Final = 10 * 1024 * 1024


class UrlSettings(Struct, frozen=True):
    """Where the pods are."""

    url: str
    """`staticPodURL`."""
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """`staticPodURLHeader`: all values of each name are sent."""
    period_s: float = 20.0
    """`httpCheckFrequency`."""


class UrlSource:
    """Delivers the pods of one URL. `error`: why the last answer gave none; "": it did."""

    source = PodSource.HTTP

    def __init__(
        self, settings: UrlSettings, network: Network, *, node_name: str, clock: Clock
    ) -> None:
        self._settings = settings
        self._network = network
        self._node_name = node_name
        self._clock = clock
        self._last = ""
        self._complaints = Complaints(log, clock)
        self.error = ""

    async def run(self, deliver: Deliver) -> None:
        """Ask until cancelled."""
        while True:
            await self._ask(deliver)
            await self._clock.sleep(self._settings.period_s)

    async def _ask(self, deliver: Deliver) -> None:
        complaint = f"cannot read static pods from {self._settings.url}"
        try:
            await self._read(deliver)
        except (NetworkError, ManifestError) as error:
            self.error = str(error)
            self._complaints.failed(complaint, error, NetworkError, ManifestError)
        else:
            self._complaints.over(complaint)

    async def _read(self, deliver: Deliver) -> None:
        """Deliver what the URL has, if that is new. Raises: NetworkError, ManifestError."""
        text = await self._body()
        if not text:
            await deliver(())  # so that the source counts as heard
            raise ManifestError(f"zero-length data received from {self._settings.url}")
        if text == self._last:
            return
        self._last = text
        pods = read_manifests(
            text.encode(),
            source=self.source,
            origin=self._settings.url,
            node_name=self._node_name,
        )
        self.error = ""
        await deliver(pods)

    async def _body(self) -> str:
        """The body of an answer with status 200. Raises: NetworkError."""
        pairs = self._settings.headers.items()
        headers = tuple((name, value) for name, values in pairs for value in values)
        request = HttpRequest(self._settings.url, headers, MOST_BYTES)
        answer = await self._network.http_get(request, TIMEOUT_S)
        if answer.broken:
            raise NetworkError(answer.broken)
        if answer.status != 200:
            raise NetworkError(f"{self._settings.url}: HTTP status {answer.status}")
        return answer.body
