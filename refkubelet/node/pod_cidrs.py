"""The addresses of the node's pods, as the Node or the configuration says, told to the runtime.

Rules: NODE-014. Upstream: pkg/kubelet/kubelet_network.go: updatePodCIDR.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from refkubelet.cri.client import CriClient
from refkubelet.cri.target import CriCallError
from refkubelet.failures import Complaints
from refkubelet.model.objects import Node
from simclock import Clock

log = logging.getLogger(__name__)


def pod_cidrs(node: Node) -> tuple[str, ...]:
    """The ranges that the Node has been given; none yet: ()."""
    return tuple((node.spec.podCIDRs if node.spec is not None else None) or ())


class PodCidrs:
    """Tells the runtime each change of the ranges once; one that it does not take is told again
    with the next update of the Node's status. `own`: `podCIDR` of the configuration, which counts
    where there is no Node."""

    def __init__(self, client: CriClient, clock: Clock, own: str = "") -> None:
        self._client = client
        self._clock = clock
        self._own = own
        self._told = ""
        self._complaints = Complaints(log, clock)

    async def run(self) -> None:
        """For a kubelet without a Node: tell the range of the configuration."""
        if self._own:
            await self.follow([self._own])
        await asyncio.Event().wait()  # a part that ends would be started again

    async def follow(self, cidrs: Sequence[str]) -> bool:
        """Tell the ranges if there are any and they changed; whether they did."""
        text = ",".join(cidrs)
        if not text or text == self._told:
            return False
        complaint = "cannot tell the runtime the pod CIDR"
        try:
            await self._client.update_pod_cidr(text)
        except CriCallError as error:
            self._complaints.failed(complaint, error, CriCallError)
        else:
            self._complaints.over(complaint)
            log.info("the pod CIDR is now %s", text)
            self._told = text
        return True
