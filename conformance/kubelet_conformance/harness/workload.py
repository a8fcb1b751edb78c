"""What a container does, declared once for fake and real runtimes.

A `Workload` is the words of a fake (`fakecri.words.behaviors`) for each run of a container, as far
as a shell can do them. `shell` renders them as a script for a busybox image; `runtimes.played`
hands them to a fake runtime. The two do not differ in anything that a case can see.

The script counts the runs of its container in /dev/shm, which the containers of one sandbox share
and which survives their restarts.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from fakecri.words import behaviors as words
from fakecri.words.behaviors import FOREVER, Behavior

B = TypeVar("B", bound=Behavior)
Run: TypeAlias = tuple[Behavior, ...]
"""One run of a container. Without words it runs until SIGTERM and then exits 0 at once."""
FOREVER_S: Final = 3600
_LOOK: Final = ("test", "-e")
DEFAULT_STOP: Final = words.stops(0)
"""How a run stops of which nothing else is said."""


class Workload(Struct, frozen=True):
    """What the successive runs of a container do; the last entry repeats."""

    runs: tuple[Run, ...] = ((),)

    def also(self, *more: Behavior) -> Workload:
        """The same, and this too in every run."""
        return Workload(tuple((*run, *more) for run in self.runs))


def runs(*said: Behavior) -> Workload:
    """A workload that runs until it is stopped, and does this."""
    return Workload((said,))


def exits(code: int, *said: Behavior, after_s: float = 0.0, message: str = "") -> Workload:
    """A workload that ends by itself with exit code `code` in every run, `after_s` seconds after
    its start, and leaves `message` as its termination message."""
    left = (words.writes_termination_message(message),) if message else ()
    return Workload(((words.exits(code, after_s=after_s), *left, *said),))


def ignores_term(*said: Behavior) -> Workload:
    """A workload that ignores SIGTERM, so that only SIGKILL at the end of the grace period ends
    it."""
    return runs(words.ignores(), *said)


def in_turn(*workloads: Workload) -> Workload:
    """A workload whose first run is that of the first argument, and so on; further runs are like
    the last one."""
    return Workload(tuple(run for workload in workloads for run in workload.runs))


def has_file(path: str, from_s: float = 0.0, until_s: float | None = None) -> Behavior:
    """A file in the container that comes and goes, so many seconds after the container's start;
    `until_s` None: it stays."""
    gone_s = FOREVER if until_s is None else until_s
    return words.replies([*_LOOK, path], from_s=from_s, until_s=gone_s)


def redirects(
    port: int, locations: Iterable[tuple[str, str]], status: int = 302, *, delay_s: float = 0.0
) -> Iterator[Behavior]:
    """HTTP paths of a port that lead to these locations; `{ip}` in one is the pod's address."""
    for path, location in locations:
        yield words.serves(port, status=status, path=path, location=location, delay_s=delay_s)


def of_kind(kind: type[B], run: Run) -> list[B]:
    """The words of that kind in a run."""
    return [word for word in run if isinstance(word, kind)]


def files_of(run: Run) -> list[words.replies]:
    """The files that come and go in a run (`has_file`)."""
    return [one for one in of_kind(words.replies, run) if (one.command or ())[:2] == _LOOK]


def command(name: str, workload: Workload) -> list[str]:
    """The command of a container named `name` that does the workload in a busybox image."""
    return ["/bin/sh", "-c", shell(name, workload)]


def shell(name: str, workload: Workload) -> str:
    """The script of that workload."""
    if len(workload.runs) == 1:
        return _one_run(workload.runs[0])
    counter = f"/dev/shm/runs-{name}"
    lines = [f"n=$(cat {counter} 2>/dev/null || echo 0)", f"echo $((n+1)) > {counter}"]
    lines.append("case $n in")
    for number, run in enumerate(workload.runs):
        pattern = "*" if number == len(workload.runs) - 1 else str(number)
        lines += [f"{pattern})", _one_run(run), ";;"]
    return "\n".join([*lines, "esac"])


def _one_run(run: Run) -> str:
    """The lines of the script for one run."""
    lines = [_trap(run)]
    for message in of_kind(words.writes_termination_message, run):
        lines.append(f"printf %s {shlex.quote(message.text)} > /dev/termination-log")
    for amounts in of_kind(words.uses, run):
        lines += _use(amounts)
    return "\n".join([*lines, *_timeline(run)])


def _trap(run: Run) -> str:
    if of_kind(words.ignores, run):
        return "trap '' TERM"
    *_, stop = (DEFAULT_STOP, *of_kind(words.stops, run))
    wait = f"sleep {stop.after_s:g}; " if stop.after_s else ""
    return f"trap '{wait}exit {stop.code}' TERM"


def _use(amounts: words.uses) -> Iterator[str]:
    """What takes memory, disk and processes, of each as much as it is said of the start."""
    memory, disk, inodes, processes = (
        curve[0][1] if curve else 0
        for curve in (amounts.memory_bytes, amounts.disk_bytes, amounts.inodes, amounts.pids)
    )
    if memory:
        yield f"held=$(head -c {memory} /dev/zero | tr '\\0' x)"
    if disk:
        yield f"head -c {disk} /dev/zero > /filled"
    if inodes:
        yield f"mkdir -p /many; for n in $(seq {inodes}); do : > /many/$n; done"
    if processes > 2:
        others = processes - 2  # the shell itself, and the `sleep` that it waits for at its end
        # A shell that cannot fork ends: one of its own has as many as it can, and they stay.
        yield f"( for n in $(seq {others}); do sleep {FOREVER_S} & done )"


def _timeline(run: Run) -> Sequence[str]:
    """What happens at the start, then what happens later, in the background so that a container
    goes on while it stops, and the end. `wait` lets a trap run at once."""
    steps: list[tuple[float, str]] = []
    for line in of_kind(words.prints, run):
        where = " >&2" if line.stream == "stderr" else ""
        steps.append((line.at_s, f"echo {shlex.quote(line.text)}{where}"))
    for file in files_of(run):
        path = (file.command or ())[-1]
        steps.append((file.from_s, f"touch {path}"))
        if file.until_s < FOREVER:
            steps.append((file.until_s, f"rm -f {path}"))
    served = of_kind(words.serves, run)
    for port in dict.fromkeys(rule.port for rule in served):
        steps += _port_steps([rule for rule in served if rule.port == port])
    *_, end = (words.exits(after_s=FOREVER_S), *of_kind(words.exits, run))
    lines = [what for at_s, what in steps if at_s <= 0]
    later = sorted((s for s in steps if 0 < s[0] < end.after_s), key=lambda step: step[0])
    if later:
        lines += ["(", *_one_after_the_other(later), ") &"]
    if end.after_s > 0:
        lines.append(f"sleep {end.after_s:g} & wait $!")
    return [*lines, f"exit {end.code}"]


def _one_after_the_other(steps: Sequence[tuple[float, str]]) -> Sequence[str]:
    lines, now_s = [], 0.0
    for at_s, what in steps:
        if at_s > now_s:
            lines.append(f"sleep {at_s - now_s:g}")
            now_s = at_s
        lines.append(what)
    return lines


def _port_steps(rules: Sequence[words.serves]) -> list[tuple[float, str]]:
    """What happens to a port, each step with the second when it does: one `nc` serves the port and
    reads the HTTP status to answer with from a file. A shell can only do `http` and `tcp`: cases
    with the others need a fake (Feature.POD_SERVERS)."""
    first, *_ = rules
    if first.protocol not in ("http", "tcp"):
        return []
    number, status = first.port, f"/tmp/status-{first.port}"
    program = "/bin/true" if first.protocol == "tcp" else f"/bin/sh /tmp/serve-{number}"
    serve = f"nc -ll -p {number} -e {program} & port{number}=$!"
    says, *others = (
        (rule.from_s, f"echo {rule.status} > {status}") for rule in rules if rule.path is None
    )
    steps = [says]
    if first.protocol == "http":
        answer = _answer(rules)
        steps.append((first.from_s, f"cat > /tmp/serve-{number} <<'END'\n{answer}\nEND"))
    steps += [(first.from_s, serve), *others]
    if first.until_s < FOREVER:
        steps.append((first.until_s, f"kill $port{number}"))
    return steps


def _answer(rules: Sequence[words.serves]) -> str:
    """The script that answers one HTTP request, with the connection as standard input and
    output."""
    first, *_ = rules
    end = f"\\r\\nContent-Length: {first.lost_bytes}\\r\\nConnection: close\\r\\n\\r\\n"
    lines = ["read -r _ path _", "while read -r line && [ ${#line} -gt 1 ]; do :; done"]
    if first.delay_s:
        lines.append(f"sleep {first.delay_s:g}")
    lines.append("case ${path%%\\?*} in")
    for rule in rules:
        if rule.path is not None:
            head = f"HTTP/1.1 {rule.status} Found\\r\\nLocation: "
            target = rule.location.replace("{ip}", "$(hostname -i)")
            lines.append(f'{rule.path}) printf "{head}{target}{end}";;')
    lines.append(f'*) printf "HTTP/1.1 $(cat /tmp/status-{first.port}) Said{end}";;')
    return "\n".join([*lines, "esac"])
