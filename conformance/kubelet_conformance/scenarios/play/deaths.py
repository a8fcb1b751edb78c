"""Kubelets that are killed at a call of theirs (step `dies_at`), and start again.

What must never happen here: a call of a killed kubelet that reaches the runtime, or one that is
counted while a kubelet is on its way to die or to start.
"""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import UNSET

from fakecri.csi import CsiFault
from kubelet_conformance.scenarios.look.view import View
from kubelet_conformance.scenarios.shape.steps import DiesAt


class Deaths:
    """Those of one scenario."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._node = view.node
        self._rules: list[Any] = []
        self._tasks: list[asyncio.Task[None]] = []

    def add(self, step: DiesAt) -> Any:
        """Kill the kubelet at that call; the rule says in `hits` whether it has come."""
        if step.driver is not UNSET:
            return self._at_driver(step, step.driver)
        on = self._node.runtime.nth_call(step.on, step.nth, lambda call: not self._under_way)

        async def effect(rule: Any, call: Any, proceed: Any) -> Any:
            if step.answered:
                await proceed()
            self._begin_to_die(step)
            return await asyncio.Event().wait()  # whoever asked is no more

        rule = on.calls.rule("kills the kubelet", effect, 1)
        self._rules.append(rule)
        return rule

    def _at_driver(self, step: DiesAt, driver: str) -> Any:
        """The same at a call to a CSI driver."""
        rule = CsiFault(step.on, nth=step.nth, times=1, done=step.answered, hangs=True)
        rule.on_strike = lambda _: self._begin_to_die(step)
        self._rules.append(rule)
        return self._view.csi_drivers[driver].add_fault(rule)

    def _begin_to_die(self, step: DiesAt) -> None:
        self._tasks.append(asyncio.create_task(self._die(step.down)))

    @property
    def _under_way(self) -> bool:
        """Whether a kubelet has just been killed, and the next one does not run yet."""
        return any(not task.done() for task in self._tasks)

    async def _die(self, down_s: float) -> None:
        await self._node.kubelet.kill()
        await asyncio.sleep(down_s)
        await self._node.kubelet.start()

    async def end(self) -> None:
        """None is killed any more; a kubelet runs if one ran before. Raises KubeletDied."""
        for rule in self._rules:
            rule.remove()
        await asyncio.gather(*self._tasks)

    async def leave(self) -> None:
        """Leave it all as it is."""
        for rule in self._rules:
            rule.remove()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
