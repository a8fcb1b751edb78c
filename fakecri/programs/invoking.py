"""An invocation of a program in a container: what the program then sees of it."""

from __future__ import annotations

from typing import Any

from fakecri.core.objects import Container
from fakecri.invocations.invocation import Invocation
from fakecri.programs.container_files import files_of
from fakecri.programs.environment import env_of, identity_of
from fakecri.programs.known import Known


def invocation_in(
    container: Container, command: tuple[str, ...], known: Known, **streams: Any
) -> Invocation:
    """`command` in `container`, which has the programs `known`. `streams`: the other fields of
    `Invocation`, such as stdin, stdout, tty, lenient."""

    def traps_stop(traps: bool) -> None:
        container.traps_stop = traps

    return Invocation(
        command=command,
        pod=str(container.pod.name),
        namespace=str(container.pod.namespace),
        container=container.name,
        identity=identity_of(container),
        files=files_of(container),
        now_ns=container.now_ns,
        traps_stop=traps_stop,
        env=env_of(container, tty=bool(streams.get("tty"))),
        programs=known.programs,
        any_program=known.every,
        cwd=container.config.working_dir or "/",
        **streams,
    )
