"""What a result means on a kubelet that is known to have a bug: the failure was expected, and to
pass is the surprise."""

from __future__ import annotations

from dataclasses import replace

from conformance.harness.runs.case_run import Outcome, Result
from conformance.known_bugs import Release


def with_known_bugs(result: Result, release: Release | None) -> Result:
    """The same result, judged by the bugs that the case says a kubelet of that version has. A
    failure there is a known bug; a case that passes there has failed, for what it says is wrong.

    `release`: None of a kubelet that tells no version: it is expected to have none of them.
    """
    bugs = [bug for bug in result.case.bugs if release and bug.is_in(release)]
    if not bugs or not release:
        return result
    named = "; ".join(map(str, bugs))
    if result.outcome is Outcome.FAILED:
        return replace(result, outcome=Outcome.KNOWN_BUG, detail=f"{named}\n{result.detail}")
    if result.outcome is Outcome.PASSED:
        version = ".".join(map(str, release))
        detail = f"expected: a failure on kubelet {version}: {named}\nseen:     the case passed"
        return replace(result, outcome=Outcome.FAILED, detail=detail)
    return result
