"""A baseline: the cases that are known to fail on a kubelet, so that only new failures make a run
fail.

One case a line, a reason after `#`; empty lines and lines of comment alone are allowed:

    stop-minimum         # expected: a grace period of 2 s, see our issue 12
    backoff-maximum
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.registry import ID
from kubelet_conformance.sources import all_cases
from kubeobjects.structs import replace

HEAD: Final = (
    "# Cases that are known to fail; kubelet-conformance run --baseline FILE reads this.\n"
)
REASON_LENGTH: Final = 100


class BaselineError(Exception):
    """The file cannot be used; the text names the file, the line and what was wanted. Exit code
    4."""


class Baseline(Struct, frozen=True):
    """The known failures. `reasons`: case ID -> why, "" where the file says nothing."""

    path: Path
    reasons: Mapping[str, str]

    def judged(self, result: Result) -> Result:
        """The same result; a failure that is listed is a known bug. An error of the harness stays
        one: it says nothing about the kubelet."""
        case_id = result.case.id
        if result.outcome is not Outcome.FAILED or case_id not in self.reasons:
            return result
        why = self.reasons[case_id] or "no reason is given there"
        detail = f"known failure, in {self.path}: {why}\n{result.detail}"
        return replace(result, outcome=Outcome.KNOWN_BUG, detail=detail)

    def fixed(self, results: Sequence[Result]) -> list[str]:
        """The listed cases that ran and passed, under every seed."""
        passed = {r.case.id for r in results if r.outcome is Outcome.PASSED}
        not_passed = {r.case.id for r in results if r.outcome is not Outcome.PASSED}
        return [case_id for case_id in self.reasons if case_id in passed - not_passed]

    def unknown(self, case_ids: Iterable[str]) -> list[str]:
        """The listed names that no case has, of all there are."""
        existing = set(case_ids)
        return [case_id for case_id in self.reasons if case_id not in existing]

    def told(self, fixed: Sequence[str], unknown: Sequence[str]) -> list[str]:
        """The same in sentences."""
        return [
            *(f"fixed: {case}: take it out of the baseline" for case in fixed),
            *(f"no such case: {case}, in the baseline" for case in unknown),
        ]


def baseline_of(file: Path | None, *, write: bool) -> Baseline | None:
    """The baseline of `--baseline FILE`, which need not be there with `--write-baseline`; None
    without that option. Raises BaselineError."""
    if file is None:
        if write:
            raise BaselineError("--write-baseline needs --baseline FILE, the file to write")
        return None
    return Baseline(file, {}) if write and not file.exists() else read_baseline(file)


def known_ids(collected: set[str], baseline: Baseline) -> set[str]:
    """The IDs of all cases: those of this run's files, whichever part of them ran, and those of the
    suite. All are loaded only when the baseline names one that was not collected."""
    if collected >= baseline.reasons.keys():
        return collected
    return collected | {case.id for case in all_cases()}


def read_baseline(path: Path) -> Baseline:
    """The baseline in that file. Raises BaselineError."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise BaselineError(
            f"--baseline {path}: no such file; --write-baseline beside it makes it of this run"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BaselineError(f"--baseline {path}: cannot be read: {error}") from None
    return Baseline(path, _parsed(path, text))


def _parsed(path: Path, text: str) -> dict[str, str]:
    reasons: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        case_id, _, reason = (part.strip() for part in line.partition("#"))
        if not case_id:
            continue
        if not ID.match(case_id):
            raise BaselineError(
                f"--baseline {path}, line {number}: {case_id!r} is no case ID; wanted one case a "
                "line, and a reason after #"
            )
        if case_id in reasons:
            raise BaselineError(f"--baseline {path}, line {number}: {case_id!r} is there twice")
        reasons[case_id] = reason
    return reasons


def updated(known: Mapping[str, str], results: Sequence[Result]) -> dict[str, str]:
    """The reasons of a new baseline: what failed in this run, and what was known of cases that were
    not judged in it. Reasons that are there stay; a new one is the first line of the failure."""
    failed = {r.case.id: r for r in results if r.outcome is Outcome.FAILED}
    passed = {r.case.id for r in results if r.outcome is Outcome.PASSED}
    again = {r.case.id for r in results if r.outcome is Outcome.KNOWN_BUG}
    listed = {case: why for case, why in known.items() if case in again or case not in passed}
    new = {case_id: _reason(result) for case_id, result in failed.items()}
    return dict(sorted({**new, **listed}.items()))


def _reason(result: Result) -> str:
    first = next((line for line in result.detail.splitlines() if line.strip()), "")
    text = " ".join(first.split())
    if len(text) <= REASON_LENGTH:
        return text
    # No word is cut: half a path leads nowhere.
    whole_words = text[: REASON_LENGTH + 1].rpartition(" ")[0] or text.partition(" ")[0]
    return f"{whole_words} ..."


def write_baseline(path: Path, reasons: Mapping[str, str]) -> None:
    """Write the file. Raises OSError."""
    width = max(map(len, reasons), default=0)
    lines = [f"{case:{width}}  # {why}" if why else case for case, why in reasons.items()]
    path.write_text(HEAD + "".join(f"{line}\n" for line in lines))


def write_updated(baseline: Baseline, results: Sequence[Result]) -> str:
    """Write the baseline that these results make of it; returns what it has now. Raises OSError."""
    reasons = updated(baseline.reasons, results)
    write_baseline(baseline.path, reasons)
    number = f"{len(reasons)} known failure{'' if len(reasons) == 1 else 's'}"
    return f"baseline: {baseline.path} has {number} now"
