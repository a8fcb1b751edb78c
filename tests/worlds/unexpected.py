"""Unforeseen errors, wherever a step of a pod calls for help.

How it works. All classes whose objects the steps can reach are found by walking from `PodSteps`
through attributes; each public method of theirs is wrapped. A wrapped method knows by a context
variable for which pod and in which step it is called: it notes that (`Calls.seen`), and raises if
that pod is to suffer from it in that step (`Calls.faults`). So one run of a node tries as many
errors as it has pods.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final

import pytest
from msgspec.structs import asdict, replace

from refkubelet.failures import Complaints
from refkubelet.kubelet import Kubelet
from refkubelet.model.pod import uid
from refkubelet.pod_workers.steps import PodSteps

STEPS: Final = (
    "sync_pod",
    "sync_terminating_pod",
    "sync_terminated_pod",
    "sync_terminating_runtime_pod",
)
KINDS: Final = (RuntimeError, ValueError, KeyError, AssertionError)
HERE: ContextVar[tuple[str, str]] = ContextVar("step and pod", default=("", ""))
NOT_WRAPPED: Final = (Complaints, PodSteps)  # it tells of errors; the steps themselves


class Calls:
    """What is called for pods, and what is to fail. `faults`: by the pod's name the step and the
    method; `steps`: how often each step of a pod was begun; `tracebacks` by pod."""

    def __init__(self) -> None:
        self.seen: dict[str, set[str]] = {step: set() for step in STEPS}
        self.faults: dict[str, tuple[str, str]] = {}
        self.hits: Counter[str] = Counter()
        self.steps: Counter[tuple[str, str]] = Counter()
        self.tracebacks: Counter[str] = Counter()

    def hit(self, method: str) -> None:
        step, pod = HERE.get()
        if not step:
            return
        self.seen[step].add(method)
        if self.faults.get(pod) == (step, method):
            self.hits[pod] += 1
            raise KINDS[len(method) % len(KINDS)](f"surprise in {method}")


class Tracebacks(logging.Handler):
    """Counts them by the pod whose worker tells them."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self._calls.tracebacks[HERE.get()[1]] += 1


def collaborators(kubelet: Kubelet) -> set[type]:
    """The classes of everything that the steps can reach."""
    found: set[type] = set()
    waiting, known = [kubelet.work.workers._steps._syncer], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in known:
            continue
        known.add(id(one))
        if type(one).__module__.startswith("refkubelet.") and not isinstance(one, Kubelet):
            if not issubclass(type(one), NOT_WRAPPED):
                found.add(type(one))
            waiting.extend(_attributes(one))
    return found


def _attributes(one: Any) -> Iterator[Any]:
    names = [*getattr(one, "__dict__", ()), *getattr(type(one), "__slots__", ())]
    for name in names:
        value = getattr(one, name, None)
        yield value
        if isinstance(value, tuple):
            yield from value


def _methods(cls: type) -> Iterator[tuple[type, str, Any]]:
    for base in cls.__mro__:
        for name, value in vars(base).items():
            if inspect.isfunction(value) and not name.startswith("_"):
                yield base, name, value


def wrap_all(kubelet: Kubelet, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on all of them note their calls."""
    done: set[tuple[type, str]] = set()
    for cls in collaborators(kubelet):
        for base, name, function in _methods(cls):
            if (base, name) not in done and base.__module__.startswith("refkubelet."):
                done.add((base, name))
                wrapped = _wrapped(function, f"{base.__name__}.{name}", calls)
                monkeypatch.setattr(base, name, wrapped)
    for step in STEPS:
        monkeypatch.setattr(PodSteps, step, _step(getattr(PodSteps, step), step, calls))
    steps: Any = kubelet.work.workers._steps._syncer
    hooks = {
        name: _wrapped(function, f"hooks.{name}", calls)
        for name, function in asdict(steps._deps.hooks).items()
    }
    steps._deps = replace(steps._deps, hooks=replace(steps._deps.hooks, **hooks))


def _wrapped(function: Callable[..., Any], name: str, calls: Calls) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*args: Any, **named: Any) -> Any:
            calls.hit(name)
            return await function(*args, **named)

        return later

    @functools.wraps(function)
    def now(*args: Any, **named: Any) -> Any:
        calls.hit(name)
        return function(*args, **named)

    return now


def _step(function: Callable[..., Any], step: str, calls: Calls) -> Callable[..., Any]:
    @functools.wraps(function)
    async def within(steps: PodSteps, *args: Any, **named: Any) -> Any:
        pod = _name(args)
        calls.steps[pod, step] += 1
        HERE.set((step, pod))
        try:
            return await function(steps, *args, **named)
        finally:
            HERE.set(("", pod))

    return within


def _name(args: tuple[Any, ...]) -> str:
    """Of the pod that a step is given: an object, or one that the runtime knows."""
    for one in args:
        if hasattr(one, "metadata") and uid(one):
            return str(one.metadata.name)
    return str(args[0].name)
