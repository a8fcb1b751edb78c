"""What a program finds in a container: its user, environment and processes; its invocation."""

from __future__ import annotations

from typing import Any, Final

from fakecri import fakesh
from fakecri.core import running
from fakecri.core.identities import identity_of, user_of
from fakecri.core.objects import Container, State
from fakecri.core.security import security_of
from fakecri.programs.container_files import files_of
from fakecri.programs.kernel_files import first_process, pid_owner
from fakecri.programs.known import Known
from kubeobjects.structs import replace

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def env_of(container: Container, *, tty: bool = False) -> dict[str, str]:
    """The environment of a program in a container."""
    env = {"PATH": PATH, "HOSTNAME": container.sandbox.config.hostname or container.pod.name}
    env["HOME"] = user_of(container).home
    env |= {"TERM": "xterm"} if tty else {}
    return env | {v.key: v.value.decode("utf-8", "replace") for v in container.config.envs}


def table_of(container: Container) -> fakesh.ProcessTable:
    """The processes of a container; its main process is in it even if no program of the fake is
    behind it."""
    if container.inside.table is None:
        container.inside.table = fakesh.ProcessTable(
            (*container.config.command, *container.config.args)
        )
    assert isinstance(container.inside.table, fakesh.ProcessTable)
    return container.inside.table


def seen_by(container: Container) -> list[fakesh.Entry]:
    """The processes that those of a container see: those of all containers in its PID namespace,
    which is its own, another container's (`kubectl debug --target`), its pod's or the node's."""
    owner = pid_owner(container)
    found = [fakesh.Entry(1, 0, first_process(container))] if owner is None else []
    for other in container.sandbox.containers.values():
        if other is container or (other.state is State.RUNNING and pid_owner(other) is owner):
            first = 1 if other is owner else other.run.pid
            found += [
                replace(entry, pid=first) if entry.pid == 1 else entry
                for entry in table_of(other).entries()
            ]
    return found


def invocation_in(
    container: Container, command: tuple[str, ...], known: Known, **streams: Any
) -> fakesh.Invocation:
    """An invocation of `command` in `container`, which has the programs `known`. `streams`: other
    fields of `Invocation`, such as stdin, stdout, tty, lenient."""

    def traps_stop(traps: bool) -> None:
        container.stop.trapped = traps

    def signal_main(signal: str) -> None:
        if signal == "TERM" and container.stop.trapped and container.stop.heard is not None:
            container.stop.heard()  # any other signal it does not hear (CRI-058)

    table = table_of(container)
    streams.setdefault("processes", fakesh.Processes(pid=table.next_pid()))
    return fakesh.Invocation(
        command=command,
        pod=str(container.pod.name),
        namespace=str(container.pod.namespace),
        container=container.name,
        address=container.sandbox.ip,
        identity=identity_of(container),
        files=files_of(container),
        now_ns=container.inside.now_ns,
        security=security_of(container),
        table=table,
        seen=lambda: seen_by(container),
        take_memory=lambda size_bytes: running.has_memory(container, size_bytes),
        traps_stop=traps_stop,
        signal_main=signal_main,
        env=env_of(container, tty=bool(streams.get("tty"))),
        programs=known.programs,
        any_program=known.every,
        cwd=container.config.working_dir or "/",
        **streams,
    )
