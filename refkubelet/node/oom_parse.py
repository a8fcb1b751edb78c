"""Parses OOM kills from the lines of the kernel's log (EVIC-124). Pure.

A kill has several lines, with other lines between them: the first says that the OOM killer runs;
the last names the killed process. If a cgroup reached its limit, another line names the cgroup
(since kernel 5.0 also the process). What must never happen here: a kill at the limit of a cgroup is
taken for a kill of the whole machine.
Upstream: github.com/google/cadvisor/utils/oomparser.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from kubeobjects.structs import replace

ROOT: Final = "/"
_BEGIN: Final = "invoked oom-killer:"
_AT_LIMIT: Final = re.compile(
    r"oom-kill:constraint=.*,nodemask=.*,cpuset=.*,mems_allowed=.*,oom_memcg=(?P<cgroup>.*),"
    r"task_memcg=.*,task=(?P<process>.*),pid=(?P<pid>\d+),uid=.*"
)
_AT_LIMIT_BEFORE_5_0: Final = re.compile(
    r"Task in .* killed as a result of limit of (?P<cgroup>.*)"
)
_KILLED: Final = re.compile(r"Killed process (?P<pid>\d+) \((?P<process>.+)\)")


class OomKill(Struct, frozen=True):
    """Process `pid` was killed because `cgroup` reached its limit; "/": the whole machine was out
    of memory."""

    cgroup: str
    process: str
    pid: int


class Reading(Struct, frozen=True):
    """The state between two lines. `inside`: a kill has begun; `cgroup`: the one named so far."""

    inside: bool = False
    cgroup: str = ROOT


BETWEEN: Final = Reading()


def read(reading: Reading, text: str) -> tuple[Reading, OomKill | None]:
    """Read one line; returns the next state, and the kill if this line completes one.

    >>> inside, _ = read(BETWEEN, "stress invoked oom-killer: gfp_mask=0x1100cca, order=0")
    >>> read(inside, "Out of memory: Killed process 71 (stress) total-vm:9kB, anon-rss:8kB")[1]
    OomKill(cgroup='/', process='stress', pid=71)
    """
    if not reading.inside:
        return replace(BETWEEN, inside=_BEGIN in text), None
    if match := _AT_LIMIT.search(text):
        return BETWEEN, OomKill(match["cgroup"], match["process"], int(match["pid"]))
    if match := _AT_LIMIT_BEFORE_5_0.search(text):
        return replace(reading, cgroup=match["cgroup"]), None
    if match := _KILLED.search(text):
        return BETWEEN, OomKill(reading.cgroup, match["process"], int(match["pid"]))
    return reading, None
