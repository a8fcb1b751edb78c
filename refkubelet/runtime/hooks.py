"""Lifecycle hooks: postStart and preStop handlers (LIFE-142, LIFE-143).

Exec and sleep handlers are carried out. httpGet and tcpSocket handlers fail with a clear text:
this kubelet has no network of its own to call out to.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from refkubelet.model.objects import LifecycleHandler
from refkubelet.runtime.client import CriCallError, CriClient
from simtime import Clock


class HookError(Exception):
    """The handler failed; the text says how."""


@dataclass(frozen=True, slots=True)
class HookPlace:
    """Whose hook it is: the container's name, and the pod as `name_namespace(uid)`."""

    container: str
    pod: str


class HookRunner:
    """Runs handlers in containers. Upstream: pkg/kubelet/lifecycle/handlers.go."""

    def __init__(self, client: CriClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def run(self, container_id: str, handler: LifecycleHandler, where: HookPlace) -> None:
        """Until the handler ends; there is no time limit here. Raises `HookError`."""
        if handler.exec is not None:
            await self._exec(container_id, handler.exec.command or [], where)
        elif handler.sleep is not None:
            await self._clock.sleep(float(handler.sleep.seconds))
        elif handler.httpGet is not None or handler.tcpSocket is not None:
            kind = "httpGet" if handler.httpGet is not None else "tcpSocket"
            raise HookError(f"{kind} hooks are not carried out; use exec or sleep")
        else:
            raise HookError("the handler names no action (exec, sleep, httpGet or tcpSocket)")

    async def _exec(self, container_id: str, command: list[str], where: HookPlace) -> None:
        try:
            result = await self._client.exec_sync(container_id, command)
        except CriCallError as error:
            raise HookError(hook_message(command, where, error.text, b"")) from None
        if result.exit_code != 0:
            stderr = result.stderr.decode(errors="replace")
            text = f"command '{' '.join(command)}' exited with {result.exit_code}: {stderr}"
            output = result.stdout + result.stderr
            raise HookError(hook_message(command, where, text, output))


def hook_message(command: list[str], where: HookPlace, error: str, output: bytes) -> str:
    """The message of PostStartHookError, as the kubelet words it."""
    quoted = json.dumps(output.decode(errors="replace"), ensure_ascii=False)
    return (
        f'Exec lifecycle hook ([{" ".join(command)}]) for Container "{where.container}" '
        f'in Pod "{where.pod}" failed - error: {error}, message: {quoted}'
    )
