"""The steps that concern the node: kubelet, runtime, containers, machine, API server."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import Final

from msgspec import UNSET

from kubelet_conformance.harness.expect import failure
from kubelet_conformance.scenarios.look.node import path_of
from kubelet_conformance.scenarios.look.view import View
from kubelet_conformance.scenarios.play.deaths import Deaths
from kubelet_conformance.scenarios.play.programming import Programmer
from kubelet_conformance.scenarios.shape.faults import ApiFault
from kubelet_conformance.scenarios.shape.ranges import Wording
from kubelet_conformance.scenarios.shape.steps import (
    DiesAt,
    DropContainers,
    EndContainer,
    ExitContainer,
    Kubelet,
    Machine,
    NodeFile,
)

API_DOWN = "api: down"
AWAY = "runtime: away"
PLENTY: Final = {"memory": 8 << 30, "disk": 100 << 30, "inodes": 6_553_600, "pids": 32_768}
"""What the machine has left when nothing else takes it."""


class NodeSteps:
    """What a scenario does with its node."""

    def __init__(self, view: View, programmer: Programmer) -> None:
        self._view = view
        self._node = view.node
        self._programmer = programmer
        self._kubelet_runs = True
        self._deaths = Deaths(view)

    # --- kubelet ----------------------------------------------------------------------------

    async def kubelet(self, given: Kubelet | str) -> None:
        step = Kubelet(do=given) if isinstance(given, str) else given  # type: ignore[arg-type]
        config = {} if step.set is UNSET else step.set
        kubelet = self._node.kubelet
        if step.refused is not UNSET:
            self._kubelet_runs = False
            error_text = await kubelet.refused_start(**config)
            wording = Wording(tuple(f"*{text}*" for text in step.refused.texts))
            if not wording.fits(error_text):
                raise failure(self._node, f"a kubelet that ends with: {step.refused}", error_text)
            return
        match step.do:
            case "stop":
                await kubelet.stop()
            case "kill":
                await kubelet.kill()
            case "start":
                await kubelet.start(**config)
            case "restart":
                await kubelet.restart(**config)
        self._kubelet_runs = step.do in ("start", "restart")

    async def dies_at(self, step: DiesAt) -> None:
        rule = self._deaths.add(step)
        if not step.maybe:
            self._programmer.must_act(rule, step)

    async def leave(self) -> None:
        """No kubelet is killed or started any more."""
        await self._deaths.leave()

    async def reboot(self, _: bool) -> None:
        """A kubelet that runs is killed before, and started afterwards."""
        runs = self._kubelet_runs
        if runs:
            await self._node.kubelet.kill()
        self._node.runtime.reboot()
        for driver in self._view.csi_drivers.values():
            driver.reboot()
        if runs:
            await self._node.kubelet.start()

    async def calm(self) -> None:
        """All faults end, and what is down comes back."""
        await self._deaths.end()
        self._programmer.end_all()
        with suppress(RuntimeError):  # a real runtime is never down here
            fake = self._node.runtime.programmed
            if fake.is_down:
                fake.restart()
            fake.restore_network()
        for key, left in PLENTY.items():
            with suppress(RuntimeError, AttributeError):
                getattr(self._node.machine, f"leave_{key}")(left)
        with suppress(RuntimeError):
            self._node.machine.call_off_shutdown()
        if not self._kubelet_runs:
            await self.kubelet("start")
        self._node.calm()

    # --- runtime and containers ---------------------------------------------------------------

    async def runtime(self, word: str) -> None:
        runtime = self._node.runtime
        match word:
            case "away":
                self._programmer.remember(AWAY, runtime.away())
            case "back":
                self._programmer.end(AWAY, release=False)
            case "crash":
                runtime.fake.crash()
            case "lose_state":
                runtime.fake.crash(loses_state=True)
            case "restart":
                runtime.fake.restart()
            case "lose_network":
                runtime.fake.lose_network()
            case "network":
                runtime.fake.restore_network()

    async def exit(self, step: ExitContainer) -> None:
        pod = self._view.runtime_name(step.pod)
        self._node.runtime.programmed.exit(step.container, pod=pod, code=step.code)

    async def kill(self, step: EndContainer) -> None:
        await self._node.runtime.kill_container(step.container, pod=self._view.name(step.pod))

    async def drop(self, step: DropContainers) -> None:
        container = None if step.container is UNSET else step.container
        await self._node.runtime.forget(self._view.name(step.pod), container)

    async def stop_sandbox(self, key: str) -> None:
        await self._node.runtime.stop_sandbox(self._view.name(key))

    async def kill_sandbox(self, key: str) -> None:
        self._node.runtime.fake.kill_sandbox(pod=self._view.runtime_name(key))

    # --- API server -----------------------------------------------------------------------

    async def api(self, word: str) -> None:
        if word == "down":
            self._programmer.remember(API_DOWN, self._node.api.fake.down())
        else:
            self._programmer.end(API_DOWN, release=False)

    async def api_fault(self, step: ApiFault) -> None:
        fake = self._node.api.fake
        method = None if step.on == "*" else step.on
        times = {name: n for name, n in step.given().items() if name in ("times", "nth")}
        if step.fails is not UNSET:
            rule = fake.fails(method, step.path, **step.fails.given(), **times)
        elif step.delays is not UNSET:
            rule = fake.delays(method, step.path, step.delays.delay_s, **times)
        else:
            rule = fake.hangs(method, step.path, **times)
        if not step.maybe:
            self._programmer.must_act(rule, step)
        if step.label is not UNSET:
            self._programmer.remember(step.label, rule)

    # --- machine --------------------------------------------------------------------------

    async def machine(self, step: Machine) -> None:
        machine = self._node.machine
        disk = "node" if step.of is UNSET else step.of
        if step.memory is not UNSET:
            machine.leave_memory(step.memory)
        if step.disk is not UNSET:
            machine.leave_disk(step.disk, disk=disk)
        if step.inodes is not UNSET:
            machine.leave_inodes(step.inodes, disk=disk)
        if step.pids is not UNSET:
            machine.leave_pids(step.pids)

    async def disks(self, word: str) -> None:
        await self._node.machine.separate_disks(split=word == "split")

    async def oom(self, _: bool) -> None:
        self._node.machine.run_out_of_memory()

    async def kernel_says(self, line: str) -> None:
        self._node.machine.kernel_says(line)

    async def shutdown(self, word: str) -> None:
        if word == "announce":
            self._node.machine.shut_down()
        else:
            self._node.machine.call_off_shutdown()

    async def file(self, step: NodeFile) -> None:
        below = path_of(self._view, step)
        if below is None:
            raise LookupError(f"the UID of pod {step.pod} is not known")
        path = self._node.machine.directory(step.at) / below
        if not step.remove:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("" if step.text is UNSET else step.text)
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
