"""The admission handlers and their order. Pure but for what the handlers themselves look up.

What must never happen here: a handler that changes anything; a rejection that is tried again.
Upstream: pkg/kubelet/lifecycle/handlers.go, pkg/kubelet/lifecycle/predicate.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from refkubelet.model.objects import Pod

NODE_OS: Final = "linux"


class Refusal(Protocol):
    """Reason (a word) and message (a sentence)."""

    @property
    def reason(self) -> str: ...

    @property
    def message(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Rejection:
    """A `Refusal` by one of the handlers below."""

    reason: str
    message: str


AdmitHandler = Callable[[Pod, tuple[Pod, ...]], Refusal | None]


def admit(pod: Pod, active: tuple[Pod, ...], handlers: Iterable[AdmitHandler]) -> Refusal | None:
    """The first rejection of `pod`, given the other pods that are active; None: it may run."""
    for handler in handlers:
        rejection = handler(pod, active)
        if rejection is not None:
            return rejection
    return None


def operating_system(pod: Pod, active: tuple[Pod, ...]) -> Rejection | None:
    """LIFE-224: a pod that names another operating system than this node's."""
    named = pod.spec.os.name if pod.spec is not None and pod.spec.os is not None else NODE_OS
    if named == NODE_OS:
        return None
    return Rejection(
        "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
    )
