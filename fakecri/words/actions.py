"""What happens without a call: the words of `POST /v1/actions/{word}` and of `fakecri ctl`.

Each is a method of `FakeCRI` with the same name and fields, which does it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from fakecri.words.kinds import ExitCode, Name, whole
from fakecri.words.word import Word, spoken


class Action(Word):
    """One thing that happens to a fake."""

    known: ClassVar[dict[str, type[Action]]] = {}
    """All of them by their words."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Action.known[cls.__name__] = cls


class exit(Action):
    """The newest running container that fits ends by itself."""

    pod: Name | None = None
    name: Name | None = spoken(default=None, said="container")
    code: ExitCode | None = None


class kill(Action):
    """The newest running container that fits is killed."""

    pod: Name | None = None
    name: Name | None = spoken(default=None, said="container")
    exit_code: ExitCode | None = None
    reason: str | None = None


class drop(Action):
    """The newest container that fits vanishes from the runtime."""

    pod: Name | None = None
    name: Name | None = spoken(default=None, said="container")


class kill_sandbox(Action):
    """The newest sandbox that fits dies."""

    pod: Name | None = None


class stop_sandbox(Action):
    """Another client stops the newest sandbox that fits."""

    pod: Name | None = None


class lose_network(Action):
    """The node has no pod network."""


class restore_network(Action):
    """The pod network is back."""


class crash(Action):
    """The runtime goes down: calls fail with UNAVAILABLE."""

    loses_state: bool | None = None


class restart(Action):
    """The runtime is up again."""

    lost_exits: bool | None = None


class reboot(Action):
    """The node reboots."""


class oom(Action):
    """The node is out of memory: the kernel kills a process."""

    process: Annotated[str, "one outside of all pods"] | None = None
    pid: Annotated[int, whole()] | None = None


class kernel_says(Action):
    """The node's kernel writes a line into its log."""

    text: str
