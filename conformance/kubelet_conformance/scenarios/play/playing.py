"""Plays a scenario on a node: its steps one after the other, then what it expects in the end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

import grpc
from msgspec import UNSET

from fakecri.errors import CriError
from kubelet_conformance.harness.expect import ExpectationFailed
from kubelet_conformance.harness.node import Node
from kubelet_conformance.scenarios.look.view import View
from kubelet_conformance.scenarios.look.waiting import Watcher
from kubelet_conformance.scenarios.play.on_csi import CsiSteps
from kubelet_conformance.scenarios.play.on_node import NodeSteps
from kubelet_conformance.scenarios.play.on_plugins import PluginSteps
from kubelet_conformance.scenarios.play.on_pods import Pods
from kubelet_conformance.scenarios.play.programming import Programmer
from kubelet_conformance.scenarios.play.struck import note
from kubelet_conformance.scenarios.shape.scenario import Scenario
from kubelet_conformance.scenarios.shape.steps import Step
from kubeobjects.strict.values import Value

WAIT_S: Final = 10.0
"""How long `wait` waits, unless it says otherwise."""
EXPECT_S: Final = 2.0
"""The same for what is expected: statuses and events come after what they tell of."""
Play = Callable[[Any], Coroutine[Any, Any, None]]
_EXPECTING: Final = ("advance", "wait", "expect", "kubelet")
"""Steps that may meet what is expected or must never be; the failures of others only prepare."""
_CANNOT: Final = (RuntimeError, LookupError, OSError, CriError, grpc.RpcError)


class Player:
    """Plays one scenario once. `begins`: called as each step begins; `leaves_out`: with each step
    of a world that cannot be done, and is left out."""

    def __init__(
        self,
        scenario: Scenario,
        node: Node,
        begins: Callable[[Step], None] = lambda step: None,
        leaves_out: Callable[[Step], None] = lambda step: None,
    ) -> None:
        self._scenario = scenario
        self._begins = begins
        self._leaves_out = leaves_out
        self._view = View(scenario, node)
        self._watcher = Watcher(scenario, self._view)
        self._programmer = Programmer(self._view)
        self._pods = Pods(self._view)
        self._node_steps = NodeSteps(self._view, self._programmer)
        self._plugin_steps = PluginSteps(self._view, self._programmer)
        self._csi_steps = CsiSteps(self._view, self._programmer)

    async def play(self) -> None:
        """Do all steps, and look at everything that is expected. Raises ExpectationFailed, and
        NeverHit when a rule of the scenario has not acted."""
        self._programmer.begin()
        try:
            await self._csi_steps.begin()
            for step in self._scenario.steps:
                self._begins(step)
                await self._step(step)
            if self._scenario.calm is not UNSET:
                await self._csi_steps.calm()
                await self._node_steps.calm()
                await self._watcher.run_for(self._scenario.calm)
            for expectation in self._scenario.expect:
                await self._watcher.until(expectation, EXPECT_S)
        finally:
            await self._node_steps.leave()
            note(self._scenario, self._view.node)
            await self._plugin_steps.leave()
            await self._csi_steps.leave()
        await self._view.node.refresh()
        await self._watcher.check()
        if self._scenario.calm is UNSET:
            self._programmer.check_hits()

    async def _step(self, step: Step) -> None:
        """One step. What cannot be done is a failure: the kubelet has not brought the node to where
        it is possible. A world of `search` goes on without it."""
        play = self._word(step.word)
        try:
            await play(step.argument)
        except ExpectationFailed as missed:
            if step.word not in _EXPECTING:
                missed.shows_bug = False
            raise
        except _CANNOT as problem:
            if self._scenario.calm is not UNSET:
                self._leaves_out(step)
                return
            place: Value | None = step.__dict__.get("place")
            where = f" ({place.file}:{place.node.line})" if place and place.node.line else ""
            lines = [f"expected: step {step.word} can be done{where}", f"seen:     {problem}"]
            text = "\n".join([*lines, *self._view.node.report()])
            raise ExpectationFailed(text, shows_bug=False) from problem

    def _word(self, word: str) -> Play:
        """What does the steps with that word."""
        own: dict[str, Play] = {
            "advance": self._watcher.run_for,
            "wait": lambda expectation: self._watcher.until(expectation, WAIT_S),
            "expect": lambda expectation: self._watcher.until(expectation, EXPECT_S),
            "mark": self._mark,
            "fault": self._fault,
            "behave": self._behave,
            "pulls": self._pulls,
            "release": self._release,
            "end": self._end,
        }
        if word in own:
            return own[word]
        places = (self._pods, self._node_steps, self._plugin_steps, self._csi_steps)
        play: Play = next(getattr(place, word) for place in places if hasattr(place, word))
        return play

    async def _mark(self, name: str) -> None:
        await self._view.node.refresh()
        self._view.set_mark(name)

    async def _fault(self, entry: Any) -> None:
        self._programmer.fault(entry)

    async def _behave(self, entry: Any) -> None:
        self._programmer.behave(entry)

    async def _pulls(self, table: Any) -> None:
        self._programmer.pulls(table)

    async def _release(self, label: str) -> None:
        self._programmer.end(label, release=True)

    async def _end(self, label: str) -> None:
        self._programmer.end(label, release=False)
