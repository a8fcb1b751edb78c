"""Ends a kubelet that the API server does not let in any more, so that it may be started anew, with
other credentials.

Rules: SRV-005.5. Upstream: pkg/kubelet/certificate/transport.go: UpdateTransport.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from refkubelet.certificates.deadlines import Held, is_expired
from refkubelet.certificates.manager import CertificateManager
from refkubelet.certificates.store import CertificateError
from refkubelet.failures import Complaints
from simclock import Clock

log = logging.getLogger(__name__)

LOOK_S: Final = 10.0
WITHOUT_S: Final = 5 * 60.0
_RESTART: Final = "A restart may be necessary to retrieve new initial credentials."


class ClientGuard:
    """Looks every 10 s whether the kubelet still has a client certificate."""

    def __init__(self, manager: CertificateManager, clock: Clock) -> None:
        self._manager = manager
        self._clock = clock
        self._complaints = Complaints(log, clock)

    async def run(self) -> None:
        """Look until cancelled. Raises `CertificateError` when the kubelet shall end."""
        seen_s = self._clock.monotonic_s()
        while True:
            await self._clock.sleep(LOOK_S)
            certificate, now_s = self._manager.last, self._clock.monotonic_s()
            if certificate is not None:
                seen_s = now_s
            text = trouble(certificate, self._clock.now(), now_s - seen_s)
            if text and self._manager.server_answers:
                raise CertificateError(f"{text}, and the API server is responsive")
            if text and self._complaints.again(text) is not None:
                log.error("%s, but the API server is not responsive. %s", text, _RESTART)


def trouble(held: Held | None, now: datetime, without_s: float) -> str:
    """Why no request can succeed; "": the certificate is valid, or missing for a short
    time."""
    if held is None:
        long = without_s >= WITHOUT_S
        return "no valid client certificate was found for 5 minutes" if long else ""
    if is_expired(held, now):
        return "the client certificate of the kubelet has expired"
    return ""
