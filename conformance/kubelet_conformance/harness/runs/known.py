"""What a result means on a kubelet that is known to have a bug: the failure was expected, and to
pass is the surprise; and on one that is too old for the case."""

from __future__ import annotations

from kubelet_conformance.harness.runs.case_run import Breach, Outcome, Result, too_old
from kubelet_conformance.known_bugs import KnownBug, Release
from kubelet_conformance.registry import Minor
from kubeobjects.structs import replace


def with_known_bugs(result: Result, release: Release | None) -> Result:
    """The same result, judged by the bugs that the case says a kubelet of that version has. A
    failure of what they break is a known bug; another failure says so and stays one, as does an
    error. A case that passes there has failed, for what it says is wrong; but with bugs that show
    by chance it may pass.

    `release`: None of a kubelet that tells no version: it is expected to have none of them.
    """
    bugs = [bug for bug in result.case.bugs if release and bug.is_in(release)]
    if not bugs or not release:
        return result
    named = "; ".join(map(str, bugs))
    if result.outcome is Outcome.FAILED:
        if not any(_made_by(bug, result.breach) for bug in bugs):
            extended = f"{result.detail}\nThis is not how its known bug shows: {named}"
            return replace(result, detail=extended)
        return replace(result, outcome=Outcome.KNOWN_BUG, detail=f"{named}\n{result.detail}")
    if result.outcome is Outcome.PASSED and not all(bug.by_chance for bug in bugs):
        version = ".".join(map(str, release))
        detail = f"expected: a failure on kubelet {version}: {named}\nseen:     the case passed"
        return replace(result, outcome=Outcome.FAILED, detail=detail)
    return result


def with_since_checked(result: Result, minor: Minor | None) -> Result:
    """The result of a case that ran on a kubelet which is too old for it: not to pass is right, and
    counts as skipped, also if the case met something that it cannot read (a status without the
    new field); one that passes says `since` wrongly, or does not look at what was new."""
    older = too_old(result.case, minor)
    if not older or result.outcome not in (Outcome.PASSED, Outcome.FAILED, Outcome.ERROR):
        return result
    if result.outcome is Outcome.PASSED:
        detail = f"expected: a failure, for the case {older}\nseen:     the case passed"
        return replace(result, outcome=Outcome.FAILED, detail=detail)
    return replace(result, outcome=Outcome.SKIPPED, detail=f"{older}, and fails there")


def _made_by(bug: KnownBug, breach: Breach) -> bool:
    """Whether such a failure is one that the bug makes."""
    return breach is Breach.EXPECTED or (breach is Breach.ENDED and bug.ends_kubelet)
