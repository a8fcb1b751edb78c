"""What a container does, declared once for fake and real runtimes.

A `Workload` is plain data. `shell` renders it as a script for a busybox image; `runtimes.played`
makes behaviours of a fake runtime of it. The two do not differ in anything that a case can see.

The script counts the runs of its container in /dev/shm, which the containers of one sandbox share
and which survives their restarts.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

FOREVER_S: Final = 3600


@dataclass(frozen=True, slots=True)
class Flag:
    """A file in the container that comes and goes. Times: seconds after the container's start."""

    path: str
    from_s: float = 0.0
    until_s: float | None = None
    """None: it stays."""


@dataclass(frozen=True, slots=True)
class Port:
    """A TCP port of the container. Times: seconds after the container's start."""

    port: int
    protocol: str = "http"
    """`http`, `https`, `tcp` or `grpc`. A shell can only do `http` and `tcp`: cases with the others
    need a fake (Feature.POD_SERVERS)."""
    status: int = 200
    """The HTTP status for every path."""
    then_s: float = 0.0
    then_status: int = 0
    """The HTTP status from `then_s` on; 0: `status` stays."""
    redirects: tuple[tuple[str, str], ...] = ()
    """HTTP paths that answer `redirect_status`, and their locations; `{ip}` in one is the pod's
    address."""
    redirect_status: int = 302
    lost_bytes: int = 0
    """Bytes of the HTTP body that are announced and never sent."""
    health: str = "SERVING"
    """The answer of the gRPC health service."""
    delay_s: float = 0.0
    """Seconds before each answer."""
    from_s: float = 0.0
    """When the port begins to listen."""
    until_s: float | None = None
    """When it stops to listen; None: never."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a container. By default it runs until SIGTERM and then exits 0 at once."""

    exit_code: int = 0
    """The exit code of a run that ends by itself."""
    exit_after_s: float | None = None
    """Seconds until it ends by itself; None: it does not."""
    ignores_term: bool = False
    """Whether only SIGKILL ends it."""
    stop_takes_s: float = 0.0
    """Seconds from SIGTERM to its end."""
    stop_exit_code: int = 0
    """The exit code after SIGTERM."""
    prints: str = ""
    """A line that it prints at each of `prints_at_s`."""
    prints_at_s: tuple[float, ...] = (0.0,)
    """Seconds after its start."""
    prints_to: str = "stdout"
    """Where: `stdout` or `stderr`."""
    termination_message: str = ""
    """Written to /dev/termination-log at its start."""
    memory_bytes: int = 0
    """Memory that it holds."""
    disk_bytes: int = 0
    """Bytes that it writes into its root filesystem."""
    inodes: int = 0
    """Files that it makes in its root filesystem."""
    processes: int = 1
    """The processes it consists of, as far as it may have so many; a shell has at least two."""
    flags: tuple[Flag, ...] = ()
    """Files that come and go."""
    ports: tuple[Port, ...] = ()
    """Ports that it listens on."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What the successive runs of a container do; the last entry repeats."""

    runs: tuple[Run, ...] = field(default=(Run(),))

    def with_flag(self, flag: Flag) -> Workload:
        """The same, with one more file that comes and goes in every run."""
        return Workload(tuple(replace(run, flags=(*run.flags, flag)) for run in self.runs))

    def with_port(self, port: Port) -> Workload:
        """The same, with one more port that every run listens on."""
        return Workload(tuple(replace(run, ports=(*run.ports, port)) for run in self.runs))


def runs(**changes: float | str | bool | tuple[float, ...]) -> Workload:
    """A workload that runs until it is stopped; `changes` are fields of `Run`."""
    return Workload((Run(**changes),))  # type: ignore[arg-type]


def exits(code: int, *, after_s: float = 0.0, message: str = "") -> Workload:
    """A workload that ends by itself with exit code `code` in every run, `after_s` seconds after
    its start, and leaves `message` as its termination message."""
    return Workload((Run(exit_code=code, exit_after_s=after_s, termination_message=message),))


def ignores_term() -> Workload:
    """A workload that ignores SIGTERM, so that only SIGKILL at the end of the grace period ends
    it."""
    return Workload((Run(ignores_term=True),))


def in_turn(*workloads: Workload) -> Workload:
    """A workload whose first run is that of the first argument, and so on; further runs are like
    the last one."""
    return Workload(tuple(run for workload in workloads for run in workload.runs))


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
    if run.termination_message:
        lines.append(f"printf %s {shlex.quote(run.termination_message)} > /dev/termination-log")
    if run.memory_bytes:
        lines.append(f"held=$(head -c {run.memory_bytes} /dev/zero | tr '\\0' x)")
    if run.disk_bytes:
        lines.append(f"head -c {run.disk_bytes} /dev/zero > /filled")
    if run.inodes:
        lines.append(f"mkdir -p /many; for n in $(seq {run.inodes}); do : > /many/$n; done")
    if run.processes > 2:
        others = run.processes - 2  # the shell itself, and the `sleep` that it waits for at its end
        # A shell that cannot fork ends: one of its own has as many as it can, and they stay.
        lines.append(f"( for n in $(seq {others}); do sleep {FOREVER_S} & done )")
    lines += _timeline(run)
    return "\n".join(lines)


def _trap(run: Run) -> str:
    if run.ignores_term:
        return "trap '' TERM"
    wait = f"sleep {run.stop_takes_s:g}; " if run.stop_takes_s else ""
    return f"trap '{wait}exit {run.stop_exit_code}' TERM"


def _timeline(run: Run) -> Sequence[str]:
    """What happens at the start, then what happens later, in the background so that a container
    goes on while it stops, and the end. `wait` lets a trap run at once."""
    steps: list[tuple[float, str]] = []
    if run.prints:
        where = " >&2" if run.prints_to == "stderr" else ""
        steps += [(at_s, f"echo {shlex.quote(run.prints)}{where}") for at_s in run.prints_at_s]
    for flag in run.flags:
        steps.append((flag.from_s, f"touch {flag.path}"))
        if flag.until_s is not None:
            steps.append((flag.until_s, f"rm -f {flag.path}"))
    for port in run.ports:
        steps += _port_steps(port)
    end_s = FOREVER_S if run.exit_after_s is None else run.exit_after_s
    lines = [what for at_s, what in steps if at_s <= 0]
    later = sorted((s for s in steps if 0 < s[0] < end_s), key=lambda step: step[0])
    if later:
        lines += ["(", *_one_after_the_other(later), ") &"]
    if end_s > 0:
        lines.append(f"sleep {end_s:g} & wait $!")
    return [*lines, f"exit {run.exit_code}"]


def _one_after_the_other(steps: Sequence[tuple[float, str]]) -> Sequence[str]:
    lines, now_s = [], 0.0
    for at_s, what in steps:
        if at_s > now_s:
            lines.append(f"sleep {at_s - now_s:g}")
            now_s = at_s
        lines.append(what)
    return lines


def _port_steps(port: Port) -> list[tuple[float, str]]:
    """What happens to a port, each step with the second when it does: one `nc` serves the port and
    reads the HTTP status to answer with from a file."""
    if port.protocol not in ("http", "tcp"):
        return []
    number, status = port.port, f"/tmp/status-{port.port}"
    program = "/bin/true" if port.protocol == "tcp" else f"/bin/sh /tmp/serve-{number}"
    serve = f"nc -ll -p {number} -e {program} & port{number}=$!"
    steps = [(port.from_s, f"echo {port.status} > {status}")]
    if port.protocol == "http":
        steps.append((port.from_s, f"cat > /tmp/serve-{number} <<'END'\n{_answer(port)}\nEND"))
    steps.append((port.from_s, serve))
    if port.then_status:
        steps.append((port.then_s, f"echo {port.then_status} > {status}"))
    if port.until_s is not None:
        steps.append((port.until_s, f"kill $port{number}"))
    return steps


def _answer(port: Port) -> str:
    """The script that answers one HTTP request, with the connection as standard input and
    output."""
    end = f"\\r\\nContent-Length: {port.lost_bytes}\\r\\nConnection: close\\r\\n\\r\\n"
    lines = ["read -r _ path _", "while read -r line && [ ${#line} -gt 1 ]; do :; done"]
    if port.delay_s:
        lines.append(f"sleep {port.delay_s:g}")
    lines.append("case ${path%%\\?*} in")
    for path, location in port.redirects:
        target = location.replace("{ip}", "$(hostname -i)")
        lines.append(
            f'{path}) printf "HTTP/1.1 {port.redirect_status} Found\\r\\nLocation: {target}{end}";;'
        )
    lines.append(f'*) printf "HTTP/1.1 $(cat /tmp/status-{port.port}) Said{end}";;')
    return "\n".join([*lines, "esac"])
