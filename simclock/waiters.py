"""The unfinished tasks of a loop and what they wait for, as text."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import FrameType
from typing import Any, Final

_ASYNCIO: Final = str(Path(asyncio.__file__).parent)


def describe_tasks(loop: asyncio.AbstractEventLoop) -> str:
    """One line per unfinished task of the loop: name, coroutine, where it waits, and for what."""
    lines = sorted(_describe_task(task) for task in asyncio.all_tasks(loop))
    return "\n".join(lines) or "  (no task at all)"


def _describe_task(task: asyncio.Task[Any]) -> str:
    coroutine = task.get_coro()
    name = getattr(coroutine, "__qualname__", repr(coroutine))
    frames = _frames(coroutine)
    # The last frame outside asyncio is the place a reader knows; the innermost one inside says
    # what is awaited there (Queue.get, Event.wait, ...).
    own = [frame for frame in frames if not frame.f_code.co_filename.startswith(_ASYNCIO)]
    own = own or frames[:1]
    if not own:
        return f"  {task.get_name()} ({name})"
    place = f"{own[-1].f_code.co_filename}:{own[-1].f_lineno} in {own[-1].f_code.co_qualname}"
    return f"  {task.get_name()} ({name}) waits at {place} for {_awaited(task, frames, own)}"


def _awaited(task: asyncio.Task[Any], frames: list[FrameType], own: list[FrameType]) -> str:
    if frames[-1] is not own[-1]:
        return str(frames[-1].f_code.co_qualname)
    future = getattr(task, "_fut_waiter", None)
    if isinstance(future, asyncio.Task):
        return f"task {future.get_name()}"
    return "its turn" if future is None else f"a {type(future).__name__}"


def _frames(coroutine: Any) -> list[FrameType]:
    """The frames of a suspended coroutine, outermost first."""
    frames = []
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is not None:
            frames.append(frame)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return frames
