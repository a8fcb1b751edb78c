"""Which programs a container has: the fake's, the test's, and those that it names itself.

A container has the program that it was started with, and those that its behaviours answer for
(`replies`, `ready_after`; without a command: every program). They are there and succeed where no
behaviour answers. Everything else is not there, as in an image that lacks it (CRI-111). No I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from fakecri import fakesh
from fakecri.behaviors.matching import Subject
from fakecri.behaviors.plan import Plan
from fakecri.core.objects import Container
from fakecri.programs.ports import Ports

EVERY: Final = "*"
"""An image with this program has every program."""


class Known(Struct, frozen=True):
    """The programs of a container by name. `every`: each other name is a program, too, which does
    nothing and succeeds."""

    programs: Mapping[str, fakesh.Program]
    every: bool


class ProgramTable:
    """The programs of all containers.

    `of_images`: names of programs that images have beside the fake's own; they do nothing and
    succeed. `commands_of`: the programs that a test has added for one container, by name. `ports`:
    what programs can reach over the network.
    """

    def __init__(
        self,
        of_images: Iterable[str],
        commands_of: Callable[[Subject], Mapping[str, fakesh.Program]],
        ports: Ports,
    ) -> None:
        self.of_images = tuple(of_images)
        self._commands_of = commands_of
        self._ports = ports
        self._of_network: Mapping[str, fakesh.Program] | None = None

    def programs_of(self, container: Container, plan: Plan | None = None) -> Known:
        """The programs of a container in a run with `plan`; None: the run that goes on."""
        if self._of_network is None:
            self._of_network = fakesh.NetworkPrograms(self._ports).by_name()
        of_fake = {**fakesh.PROGRAMS, **self._of_network}
        made = {**of_fake, **self._commands_of(container.subject)}
        return known_programs(container, plan or container.run.plan, made, self.of_images)


def known_programs(
    container: Container,
    plan: Plan,
    made: Mapping[str, fakesh.Program],
    of_images: Iterable[str],
) -> Known:
    """The programs of a container in a run with `plan`. `made`: programs of the fake and the test,
    by name; `of_images`: names of programs that images have."""
    commands = [rule.command for rule in plan.replies]
    names = [command[0] for command in commands if command]
    if plan.runs is None or plan.runs.program is not None:
        names += [*container.config.command, *container.config.args][:1]
    names += of_images
    every = EVERY in names or any(command is None for command in commands)
    return Known({**dict.fromkeys(names, fakesh.nothing), **made}, every)
