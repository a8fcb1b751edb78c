"""Runs cases: one by one on virtual loops, or side by side on a real one."""

from __future__ import annotations

import asyncio
import os
import tempfile
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.harness.expect import ExpectationFailed
from conformance.harness.kubelets.base import KubeletDied, NodePaths
from conformance.harness.node import Node
from conformance.harness.parts import Parts
from conformance.harness.runs.choice import Choice
from conformance.harness.runs.results import Outcome, Result
from conformance.registry import Case
from simtime import RealClock, run_virtual

if TYPE_CHECKING:
    from conformance.harness.runs.real import RealEnvironment

PartsFactory = Callable[[Case, NodePaths], AbstractAsyncContextManager[Parts]]
REAL_CLOCK: Final = RealClock()
IN_MEMORY: Final = "/dev/shm"
END_WITHIN_S: Final = 30.0
AGAIN_S: Final = 1.0
CLEAN_UP_STEPS: Final = 10
"""How many steps of a clean-up may hang one after the other."""


def not_to_run(case: Case, choice: Choice, disabled: Sequence[str]) -> Result | None:
    """The result of a case that is not run at all: disabled, or skipped with the reason."""
    if case.id in disabled:
        return Result(case, Outcome.DISABLED, "switched off with --disable")
    missing = case.missing(choice.features)
    if missing:
        return Result(case, Outcome.SKIPPED, f"needs {'; '.join(f.value for f in missing)}")
    return None


def run_virtual_case(case: Case, choice: Choice) -> Result:
    """Run one case on a fresh virtual loop, in a fresh directory: of memory where that can be, for
    disks are slower than everything else here. TMPDIR says otherwise."""
    from conformance.harness.runs.virtual import virtual_parts

    in_memory = "TMPDIR" not in os.environ and os.access(IN_MEMORY, os.W_OK)
    parent = IN_MEMORY if in_memory else None
    with tempfile.TemporaryDirectory(prefix="conformance-", dir=parent) as directory:

        async def main() -> Result:
            factory: PartsFactory = lambda c, paths: virtual_parts(c, paths, choice.seed)  # noqa: E731
            return await run_case(case, factory, Path(directory))

        return run_virtual(main, seed=choice.seed)


async def run_case(case: Case, parts_of: PartsFactory, directory: Path) -> Result:
    """Run one case on the running loop, against the parts that `parts_of` makes."""
    began_s = REAL_CLOCK.monotonic_s()
    paths = NodePaths(directory)
    paths.make()
    result: Result | None = None
    try:
        async with parts_of(case, paths) as parts:
            result = await _run_body(case, parts)
    except Exception as problem:
        # With a result this is the clean-up's problem, which must not hide how the case ended.
        if result is None:
            result = Result(case, *_judge(problem, None))
        else:
            result = replace(result, warning=f"clean-up: {problem}")
    return replace(result, real_s=REAL_CLOCK.monotonic_s() - began_s)


async def _run_body(case: Case, parts: Parts) -> Result:
    node: Node | None = None
    outcome, detail = Outcome.PASSED, ""
    try:
        await parts.kubelet.start(parts.config)
        node = Node(parts)
        async with asyncio.timeout(parts.pace.limit_s * parts.pace.busy()):
            await case.body(node)
    except Exception as problem:
        outcome, detail = _judge(problem, node)
    if node is None:
        return Result(case, outcome, detail)
    return Result(case, outcome, detail, case_s=node.now_s, trace=tuple(node.trace()))


def _judge(problem: Exception, node: Node | None) -> tuple[Outcome, str]:
    if isinstance(problem, ExpectationFailed):
        return Outcome.FAILED, str(problem)
    if isinstance(problem, KubeletDied):
        last = "\n".join(node.report()) if node else ""
        return Outcome.FAILED, f"expected: a running kubelet\nseen:     {problem}\n{last}"
    if isinstance(problem, TimeoutError) and node is not None:
        return Outcome.FAILED, f"the case did not end within its time limit, {node.now_s:.0f} s"
    return Outcome.ERROR, "".join(traceback.format_exception(problem))


async def run_real_cases(
    cases: Sequence[Case], environment: RealEnvironment, jobs: int
) -> AsyncGenerator[Result, None]:
    """Run the cases side by side, at most `jobs` at a time; yields results as they come."""
    gate = asyncio.Semaphore(jobs)

    async def one(case: Case) -> Result:
        async with gate, _directory(environment.shared) as directory:
            return await run_case(case, environment.parts, directory)

    tasks = [asyncio.create_task(one(case)) for case in cases]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        await end_all(tasks)


async def end_all(
    tasks: Sequence[asyncio.Task[Any]], within_s: float = END_WITHIN_S, again_s: float = AGAIN_S
) -> None:
    """Cancel them and wait while they clean up. After `within_s` seconds a clean-up that hangs (a
    runtime that does not answer) is cancelled, too, step by step, every `again_s`."""
    left = {task for task in tasks if not task.done()}
    for wait_s in (within_s, *[again_s] * CLEAN_UP_STEPS):
        for task in left:
            task.cancel()
        if not left:
            break
        _, left = await asyncio.wait(left, timeout=wait_s)
    await asyncio.gather(*(task for task in tasks if task not in left), return_exceptions=True)


@asynccontextmanager
async def _directory(base: Path | None) -> AsyncIterator[Path]:
    # Removed with errors ignored: a real runtime may leave files of other users behind.
    with tempfile.TemporaryDirectory(
        prefix="case-", dir=base, ignore_cleanup_errors=True
    ) as directory:
        yield Path(directory)
