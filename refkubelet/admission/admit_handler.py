"""What an admission handler is asked and may answer, and the order rule: the first refusal wins.
Pure.

A handler is a function of `PodAdmitAttributes`. Most only look and answer at once; some have
effects (they allocate devices or CPUs, they end less important pods) and may be awaited.
What must never happen here: a handler is asked after a refusal.
Upstream: pkg/kubelet/lifecycle/interfaces.go, handlers.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from typing import Final, Protocol

from msgspec import Struct

from refkubelet.model.objects import Pod


class Operation(Enum):
    """Why a pod is asked about: it is new here, or its resources are to change."""

    ADD = "add"
    RESIZE = "resize"


class PodAdmitAttributes(Struct, frozen=True):
    """What a decision is about.

    `pod`: for ADD with the resources allocated to it earlier, if there are any; for RESIZE with
    those it wants. `others`: the other active pods, each with the resources *allocated* to it.
    """

    pod: Pod
    others: tuple[Pod, ...] = ()
    operation: Operation = Operation.ADD


class Refusal(Protocol):
    """Reason (a word) and message (a sentence)."""

    @property
    def reason(self) -> str: ...

    @property
    def message(self) -> str: ...


class Rejection(Struct, frozen=True):
    """Why a pod is not admitted; the status message is `Pod was rejected: <message>`."""

    reason: str
    message: str


UNEXPECTED: Final = "UnexpectedAdmissionError"  # the reason for what no handler foresees (CG-080)
Check = Callable[[PodAdmitAttributes], Rejection | None]  # answers at once and changes nothing
AdmitHandler = Callable[[PodAdmitAttributes], Awaitable[Refusal | None] | Refusal | None]


async def admit(attributes: PodAdmitAttributes, handlers: Iterable[AdmitHandler]) -> Refusal | None:
    """Ask the handlers one after the other. The first refusal; None: the pod may run.

    Other tasks run meanwhile only if a handler is awaited.
    """
    for handler in handlers:
        answer = handler(attributes)
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer is not None:
            return answer
    return None
