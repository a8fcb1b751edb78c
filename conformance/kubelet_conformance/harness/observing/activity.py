"""Whether a kubelet is at work, by what others see of it.

A look at a kubelet program costs more than letting a tenth of a second pass in jumping time. A run
that lets time pass, or waits for something else than the kubelet's pods, looks at a kubelet that is
at work at every tick, and at a quiet one now and then.
"""

from __future__ import annotations

from typing import Final

from kubelet_conformance.harness.api_server import ApiServer
from kubelet_conformance.harness.runtimes.base import Runtime

LIVELY_S: Final = 1.0
"""How long after something was seen of a kubelet it counts as being at work."""


class Activity:
    """What the runtime and the API server see of a kubelet; `api` None: there is none.

    `quiet_s`: how long a quiet kubelet may go without a look; 0: not at all.
    """

    def __init__(self, runtime: Runtime, api: ApiServer | None, quiet_s: float) -> None:
        self._runtime = runtime
        self._api = api
        self._quiet_s = quiet_s
        self._seen: tuple[int, int] = (-1, -1)
        self._lively_until_s = 0.0
        self._looked_s = 0.0

    def stir(self, now_s: float) -> None:
        """Count the kubelet as being at work: its case may just have changed something."""
        self._lively_until_s = now_s + LIVELY_S

    def wants_look(self, now_s: float) -> bool:
        """Whether to look at the kubelet now; the caller does so if it is."""
        if not self._quiet_s:
            return True
        activity = (self._runtime.activity(), self._api.revision if self._api is not None else 0)
        if activity != self._seen:
            self._seen = activity
            self.stir(now_s)
        if now_s > self._lively_until_s and now_s < self._looked_s + self._quiet_s:
            return False
        self._looked_s = now_s
        return True
