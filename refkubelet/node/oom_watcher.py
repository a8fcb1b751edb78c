"""Records a node event for each OOM kill of the whole machine (EVIC-124).

Kills of containers that reach their own limit are left out: the runtime reports them in the
container's status (EVIC-123).
Upstream: pkg/kubelet/oom/oom_watcher_linux.go; pkg/kubelet/kubelet.go: NewMainKubelet.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from refkubelet.config import ConfigError
from refkubelet.events.recorder import EventRecorder
from refkubelet.failures import log_failure
from refkubelet.host.machine import KernelLogReader, Machine
from refkubelet.node.oom_parse import BETWEEN, ROOT, read

log = logging.getLogger(__name__)

REASON: Final = "SystemOOM"
GATE: Final = "KubeletInUserNamespace"


def follow_kernel_log(machine: Machine, *, may_fail: bool) -> KernelLogReader | None:
    """Open the kernel's log, from now on. If that fails: None if it `may_fail` (gate
    KubeletInUserNamespace), else raises `ConfigError`."""
    try:
        return machine.kernel_log()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if may_fail:
            log.info("no events of system OOMs: the kernel's log cannot be read: %s", reason)
            return None
        raise ConfigError(
            f"/dev/kmsg: wanted to read the kernel's log, for events of system OOMs: {reason}; "
            f"give the kubelet the device, or set featureGates.{GATE}: true to do without"
        ) from None


class OomWatcher:
    """Sends a node event for each kill of the whole machine. Closes `messages` when it ends."""

    def __init__(self, messages: KernelLogReader, events: EventRecorder) -> None:
        self._messages = messages
        self._events = events

    async def run(self) -> None:
        """Read until cancelled. If the kernel's log breaks off, that is logged once and no more
        events follow."""
        reading = BETWEEN
        try:
            async for message in self._messages:
                reading, kill = read(reading, message.text)
                if kill is None or kill.cgroup != ROOT:
                    continue
                victim = f"victim process: {kill.process}, pid: {kill.pid}"
                text = f"System OOM encountered, {victim}"
                self._events.node_event("Warning", REASON, text)
        except Exception as error:
            log_failure(
                log, "the kernel's log broke off; no more events of system OOMs", error, OSError
            )
        else:
            log.error("the kernel's log ended; no more events of system OOMs")
        finally:
            self._messages.close()
        await asyncio.get_running_loop().create_future()  # parts of the kubelet must not return
