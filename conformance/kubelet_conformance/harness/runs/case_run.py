"""Runs the body of one case against its parts, and judges how it ended: `Outcome`, `Result`.

Outcomes are seven different things that are never mixed: a failed case says something about the
kubelet, a known bug that it is as wrong as the case expects, an error says something about the
harness, an inconclusive case about the machine, which was too busy to tell, a skip about what the
pair of kubelet and runtime lacks, a disabled case about the choice of the user."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from kubelet_conformance.harness.expect import ExpectationFailed
from kubelet_conformance.harness.kubelets.base import KubeletDied, NodePaths
from kubelet_conformance.harness.kubelets.watches import MachineLacks
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.observing.kubelet_log import kept
from kubelet_conformance.harness.runs.choice import Choice, Traces
from kubelet_conformance.laws import LAWS, ask
from kubelet_conformance.registry import Case, Minor
from kubelet_conformance.traces.entries import Trace
from kubeobjects.structs import replace
from simclock import RealClock

PartsFactory = Callable[[Case, NodePaths], AbstractAsyncContextManager[Parts]]
"""Makes the parts of a case in its directories; they end with the block."""
REAL_CLOCK: Final = RealClock()
MOST_BREACHES: Final = 10
"""So many breaches of laws are told of a case."""
CASES: Final = Path(__file__).parents[2] / "cases"
OURS: Final = "kubelet_conformance.cases."
"""The cases that the laws are asked after: what files and cases of others do to a node need not be
known to the history."""


class Outcome(Enum):
    """How a case ended, or why it did not run."""

    PASSED = "passed"
    FAILED = "failed"
    KNOWN_BUG = "known bug"
    INCONCLUSIVE = "inconclusive"
    SKIPPED = "skipped"
    DISABLED = "disabled"
    ERROR = "error"


class Breach(Enum):
    """What a failed case has met: what tells its known bug from other failures."""

    NONE = "none"
    EXPECTED = "an expectation that is not met on kubelets with the bug of the case"
    ENDED = "the kubelet ended in the midst of the case"
    OTHER = "something else: another expectation, a kubelet that does not start, the time limit"


class Result(Struct, frozen=True):
    """The result of one case, run or not."""

    case: Case
    outcome: Outcome
    detail: str = ""
    """Why it ended so; "" for PASSED."""
    breach: Breach = Breach.NONE
    """Of FAILED, what it has met."""
    case_s: float = 0.0
    """Seconds inside the case, virtual in a virtual run."""
    real_s: float = 0.0
    """Seconds of wall time, set-up and clean-up included."""
    trace: tuple[str, ...] = ()
    """The recorded calls, one line each, where what happened is kept."""
    log: tuple[str, ...] = ()
    """Of a case that did not pass: what the kubelet's log says of its pods, and the end of it."""
    record: Trace | None = None
    """What happened, for result files; None where it is not kept."""
    seed: int | None = None
    """The seed of a virtual run; None in a real one."""
    shared: bool = False
    """Whether the case shared its kubelet with others."""
    must_be_alone: tuple[str, ...] = ()
    """What it did that a case which shares its kubelet cannot do."""
    warning: str = ""
    """A problem of the harness that did not change the outcome, for example a pod left behind in
    the runtime."""


NOT_ASKED: Final = "--check-since runs the cases that this kubelet is too old for"


def too_old(case: Case, minor: Minor | None) -> str:
    """Why a kubelet of that minor does not run the case; "" if it does. None: it tells none."""
    if not case.since or not minor or minor >= case.since:
        return ""
    return "needs kubelet {}.{} or newer, this one is {}.{}".format(*case.since, *minor)


def not_to_run(case: Case, choice: Choice, disabled: Sequence[str]) -> Result | None:
    """The result of a case that is not run at all: disabled, or skipped with the reason."""
    seed = choice.seed if choice.virtual else None
    if case.id in disabled:
        return Result(case, Outcome.DISABLED, "switched off with --disable", seed=seed)
    older = too_old(case, choice.kubelet_minor)
    if bool(older) is not choice.check_since:
        return Result(case, Outcome.SKIPPED, older or NOT_ASKED, seed=seed)
    missing = case.missing(choice.features)
    if missing:
        why = f"needs {'; '.join(f.value for f in missing)}"
        if lacks := choice.why_no_machine(missing):
            why += f" (this machine cannot give one: {lacks})"
        return Result(case, Outcome.SKIPPED, why, seed=seed)
    return None


async def run_case(
    case: Case, parts_of: PartsFactory, directory: Path, traces: Traces = "none"
) -> Result:
    """Run one case on the running loop, against the parts that `parts_of` makes in `directory`.
    `traces`: of which cases what happened is kept."""
    began_s = REAL_CLOCK.monotonic_s()
    paths = NodePaths(directory)
    paths.make()
    result: Result | None = None
    try:
        async with parts_of(case, paths) as parts:
            result = await _run_body(case, parts, traces)
    except Exception as problem:
        # With a result this is the clean-up's problem, which must not hide how the case ended.
        if result is None:
            result = Result(case, *_judge(problem, None), breach=_breach(problem, None))
        else:
            result = replace(result, warning=f"clean-up: {problem}")
    return replace(result, real_s=REAL_CLOCK.monotonic_s() - began_s)


async def _run_body(case: Case, parts: Parts, traces: Traces) -> Result:
    """Start the kubelet and run the body of the case, within its time limit."""
    node: Node | None = None
    outcome, detail, breach = Outcome.PASSED, "", Breach.NONE
    shown = None
    try:
        await parts.kubelet.start(parts.config)
        node = Node(parts)
        async with asyncio.timeout(parts.pace.limit_s):
            await case.body(node)
            if traces == "all":  # of the case alone, without the removal of its pods
                shown = tuple(node.trace()), node.record()
        if case.asks_laws or (parts.pace.asks_laws and case.module.startswith(OURS)):
            async with asyncio.timeout(parts.pace.limit_s):
                await _keep_laws(case, node)
    except Exception as problem:
        outcome, detail = _judge(problem, node)
        breach = _breach(problem, node)
        why = parts.pace.overload()
        if outcome is Outcome.FAILED and why:
            outcome, detail = Outcome.INCONCLUSIVE, f"the machine was overloaded: {why}\n{detail}"
    if node is None:
        return Result(case, outcome, detail, breach, log=kept(parts.kubelet.log_lines(), ()))
    result = Result(case, outcome, detail, breach, case_s=node.now_s)
    if outcome is not Outcome.PASSED:
        result = replace(result, log=node.kept_log())
        if traces != "none":
            shown = tuple(node.trace()), node.record()
    return result if shown is None else replace(result, trace=shown[0], record=shown[1])


async def _keep_laws(case: Case, node: Node) -> None:
    """Ask the laws of all that has happened. Raises ExpectationFailed."""
    history = await node.settled()
    asked = [law for law in LAWS if law.name not in case.except_laws]
    breaches = [str(breach) for breach in islice(ask(asked, history), MOST_BREACHES)]
    if breaches:
        raise ExpectationFailed("\n".join(breaches))


def _judge(problem: Exception, node: Node | None) -> tuple[Outcome, str]:
    """The outcome that an exception means, and the text for the report: what the kubelet did wrong
    is a failure, everything else an error of the harness."""
    if isinstance(problem, ExpectationFailed):
        return Outcome.FAILED, str(problem)
    if isinstance(problem, MachineLacks):
        return Outcome.ERROR, str(problem)
    if isinstance(problem, KubeletDied):
        last = "\n".join(node.report()) if node else ""
        return Outcome.FAILED, f"expected: a running kubelet\nseen:     {problem}\n{last}"
    if isinstance(problem, TimeoutError) and node is not None:
        return Outcome.FAILED, f"the case did not end within its time limit, {node.now_s:.0f} s"
    line = _read_in_vain(problem)
    if line and node is not None:
        reason = f"it is not there ({type(problem).__name__}: {problem})"
        text = f"expected: what the case reads with {line}\nseen:     {reason}"
        return Outcome.FAILED, "\n".join((text, *node.report()))
    return Outcome.ERROR, "".join(traceback.format_exception(problem))


def _read_in_vain(problem: Exception) -> str:
    """The line of a case that reads something which the kubelet has not sent: a key, an item, a
    field of nothing; "" if the exception says something else, or comes from elsewhere."""
    is_of_nothing = "'NoneType'" in str(problem) and isinstance(problem, AttributeError | TypeError)
    if not is_of_nothing and not isinstance(problem, LookupError):
        return ""
    innermost = traceback.extract_tb(problem.__traceback__)[-1]
    return (innermost.line or "").strip() if CASES in Path(innermost.filename).parents else ""


def _breach(problem: Exception, node: Node | None) -> Breach:
    """What an exception of a case says of a bug that its kubelet is known to have."""
    if isinstance(problem, ExpectationFailed) and problem.shows_bug:
        return Breach.EXPECTED
    if isinstance(problem, KubeletDied) and problem.ended and node is not None:
        return Breach.ENDED
    return Breach.OTHER


def verdict(beside: Result, alone: Result) -> Result:
    """The result of a case that did not pass beside others, and was run again alone."""
    if beside.must_be_alone:
        why = f"it needs a kubelet to itself (alone=True): {beside.must_be_alone[0]}"
    elif alone.outcome is beside.outcome:
        return alone
    else:
        why = f"the verdict depends on sharing: beside others it {beside.outcome.value}"
        why += f" ({beside.detail.splitlines()[0] if beside.detail else ''})"
    return replace(alone, warning="; ".join(filter(None, (alone.warning, why))))
