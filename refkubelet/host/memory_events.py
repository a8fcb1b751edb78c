"""Hears from the kernel when memory of a cgroup v1 passes a number of bytes (EVIC-058, CG-133).

The kernel counts an eventfd up, and the loop watches it. What must never happen: a descriptor that
stays open after `stop`, or a wait in a thread. Upstream: threshold_notifier_linux.go.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path


def watch_memory(
    directory: Path, usage_bytes: int, passed: Callable[[], None]
) -> Callable[[], None]:
    """Call `passed` each time memory.usage_in_bytes of that cgroup passes the number, upwards or
    downwards; call the answer to end it. Raises OSError."""
    event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    try:
        usage = os.open(directory / "memory.usage_in_bytes", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _register(directory / "cgroup.event_control", f"{event} {usage} {usage_bytes}")
        finally:
            os.close(usage)  # the kernel keeps what it needs
    except OSError:
        os.close(event)
        raise
    loop = asyncio.get_running_loop()

    def heard() -> None:
        os.eventfd_read(event)
        passed()

    def stop() -> None:
        loop.remove_reader(event)
        os.close(event)

    loop.add_reader(event, heard)
    return stop


def _register(control: Path, text: str) -> None:
    descriptor = os.open(control, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
