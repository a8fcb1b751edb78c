"""The health pages: one check, and all of them (SRV-002). Pure.

Upstream: staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from refkubelet.server.common.exchange import NOSNIFF, Answer, Request, error, text

Checks = Mapping[str, Callable[[], str | None]]
"""Name -> why that is not healthy, None if it is."""


def all_checks(checks: Checks, request: Request) -> Answer:
    """`ok`, or 500 with a line for each check. `?verbose` shows the lines in any case, `?exclude=`
    leaves a check out; reasons are shown by the page of the check alone."""
    excluded = set(request.every("exclude"))
    lines, failed = [], False
    for name, check in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok\n")
        elif check() is None:
            lines.append(f"[+]{name} ok\n")
        else:
            failed = True
            lines.append(f"[-]{name} failed: reason withheld\n")
    if unknown := sorted(excluded - checks.keys()):
        names = ", ".join(f'"{name}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
    check_lines = "".join(lines)
    if failed:
        return error(500, f"{check_lines}healthz check failed")
    if not request.every("verbose"):
        return Answer(body=b"ok", headers=NOSNIFF)
    return Answer(body=f"{check_lines}healthz check passed\n".encode(), headers=NOSNIFF)


def one_check(checks: Checks, request: Request) -> Answer:
    """`ok`, or 500 with the reason."""
    problem = checks[request.path.removeprefix("/healthz/")]()
    return text("ok") if problem is None else error(500, f"internal server error: {problem}")
