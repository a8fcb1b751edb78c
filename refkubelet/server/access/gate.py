"""The gate of the main port: who asks, and whether they may. No path is without it (SRV-011).

Upstream: pkg/kubelet/server/server.go: InstallAuthFilter.
"""

from __future__ import annotations

import logging

from msgspec import Struct

from refkubelet.server.access.attributes import attributes_of, failed, forbidden
from refkubelet.server.access.authentication import Authenticator
from refkubelet.server.access.authorization import Authorizer, CannotTell
from refkubelet.server.common.exchange import Answer, Request, text

log = logging.getLogger(__name__)


class Gate(Struct, frozen=True):
    """`fine_grained`: the gate KubeletFineGrainedAuthz."""

    authenticator: Authenticator
    authorizer: Authorizer
    node_name: str
    fine_grained: bool = True

    async def refusal(self, request: Request) -> Answer | None:
        """The answer to a request that may not come in; None: it may."""
        user = await self.authenticator.user_of(request)
        if user is None:
            return text("Unauthorized", 401)
        asks = attributes_of(request, user, self.node_name, fine_grained=self.fine_grained)
        for attributes in asks:
            try:
                if await self.authorizer.allows(attributes):
                    return None
            except CannotTell as problem:
                log.warning("Authorization error: %s", problem)
                return text(failed(attributes), 500)
        return text(forbidden(asks), 403)
