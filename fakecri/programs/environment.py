"""What a program finds in a container: its user, its environment, its files.

The files are those of the image and of the create request, in memory. What must never happen here:
a file of the machine that the fake really runs on is read or written.
"""

from __future__ import annotations

from typing import Any, Final

from fakecri.core.identities import identity_of, user_of
from fakecri.core.objects import Container
from fakecri.invocations.invocation import Invocation
from fakecri.programs.container_files import files_of
from fakecri.programs.known import Known

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def env_of(container: Container, *, tty: bool = False) -> dict[str, str]:
    """The environment of a program in a container."""
    env = {"PATH": PATH, "HOSTNAME": container.sandbox.config.hostname or container.pod.name}
    env["HOME"] = user_of(container).home
    env |= {"TERM": "xterm"} if tty else {}
    return env | {v.key: v.value.decode("utf-8", "replace") for v in container.config.envs}


def invocation_in(
    container: Container, command: tuple[str, ...], known: Known, **streams: Any
) -> Invocation:
    """An invocation of `command` in `container`, which has the programs `known`. `streams`: other
    fields of `Invocation`, such as stdin, stdout, tty, lenient."""

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
