"""OOM kills in the lines of the kernel's log (EVIC-124). Pure.

A kill is several lines: the first says that the killer runs; since kernel 5.0 another names the
cgroup and the process, unless the whole machine was short of memory; the last names the process.
Other lines may lie between. What must never happen here: a kill at the limit of a cgroup is taken
for a kill of the whole machine.
Upstream: github.com/google/cadvisor/utils/oomparser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

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


@dataclass(frozen=True, slots=True)
class OomKill:
    """Process `pid` was killed because `cgroup` was full; `/` is the machine itself."""

    cgroup: str
    process: str
    pid: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Where in a kill the reader is. `cgroup`: the full one, as far as the lines have named it."""

    inside: bool = False
    cgroup: str = ROOT


BETWEEN: Final = Reading()


def read(reading: Reading, text: str) -> tuple[Reading, OomKill | None]:
    """Read the next line; a kill once all of its lines have been read.

    >>> inside, _ = read(BETWEEN, "stress invoked oom-killer: gfp_mask=0x1100cca, order=0")
    >>> read(inside, "Out of memory: Killed process 71 (stress) total-vm:9kB, anon-rss:8kB")[1]
    OomKill(cgroup='/', process='stress', pid=71)
    """
    if not reading.inside:
        return replace(BETWEEN, inside=_BEGIN in text), None
    if found := _AT_LIMIT.search(text):
        return BETWEEN, OomKill(found["cgroup"], found["process"], int(found["pid"]))
    if found := _AT_LIMIT_BEFORE_5_0.search(text):
        return replace(reading, cgroup=found["cgroup"]), None
    if found := _KILLED.search(text):
        return BETWEEN, OomKill(reading.cgroup, found["process"], int(found["pid"]))
    return reading, None
