"""What tests program beyond answers to calls: behaviours of containers, names that stay taken,
answers from the past, calls that break off."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from google.protobuf.message import Message

from fakecri.behaviors.matching import Match, require_count
from fakecri.behaviors.plan import Plan, plan_for
from fakecri.calls.answers import HANDLERS
from fakecri.calls.halfway import HALVES
from fakecri.clockwork.clockwork import Clockwork
from fakecri.core import copies
from fakecri.core.names import name_of_create
from fakecri.core.objects import Container
from fakecri.core.runtime import Core
from fakecri.programs.main_programs import MainPrograms
from fakecri.rules.faults import Rule, RuleBook
from fakecri.scripts.annotations import annotated
from fakecri.words.behaviors import Behavior, start_fails
from fakecri.words.kinds import WordError
from fakecri.words.word import shown


class BehaviorRule(Rule):
    """A rule on what containers do. Each start that it decides is a use."""

    def __init__(
        self,
        match: Match,
        behaviors: tuple[Behavior, ...],
        *,
        times: int | None = None,
        first_attempts: int | None = None,
    ) -> None:
        for given in behaviors:
            if not isinstance(given, Behavior):
                raise WordError(f"wanted behaviours such as exits(1), got {given!r}")
        if first_attempts is not None:
            require_count("first_attempts", first_attempts)
        when = "" if first_attempts is None else f" in their first {first_attempts} attempts"
        what = ", ".join(map(shown, behaviors))
        super().__init__(f"containers ({match}){when}: {what}", times, ("", *match.handle))
        self.match = match
        self.behaviors = behaviors
        self._before_attempt = first_attempts

    def fits(self, container: Container) -> bool:
        """Whether it decides this start of a container."""
        if self._before_attempt is not None and container.attempt >= self._before_attempt:
            return False
        return self.match.fits(container.subject)


class Programming:
    """Holds the rules on what containers do, and plans the runs of containers by them."""

    def __init__(self, core: Core, clockwork: Clockwork, main_programs: MainPrograms) -> None:
        self.behaviors = RuleBook()
        self._core = core
        self._clockwork = clockwork
        self._main_programs = main_programs

    def behaves(
        self,
        *behaviors: Behavior,
        pod: str | None = None,
        container: str | None = None,
        image: str | None = None,
        attempt: int | None = None,
        first_attempts: int | None = None,
        times: int | None = None,
    ) -> Rule:
        """See `FakeCRI.behaves`."""
        match = Match(pod, container, image, attempt)
        rule = BehaviorRule(match, behaviors, times=times, first_attempts=first_attempts)
        return self.behaviors.add(rule)

    def plan_of(self, container: Container) -> Plan:
        """What the next run of a container does; counts as a use of the rules that decide it."""
        rules = [
            rule
            for rule in self.behaviors.about("", container.subject)
            if isinstance(rule, BehaviorRule) and rule.fits(container)
        ]
        for rule in rules:
            rule.take()
        layers = [rule.behaviors for rule in rules]
        try:
            layers.append(annotated(container.sandbox.config.annotations, container.name))
        except ValueError as error:  # its writer sees it where failed starts are seen
            layers.append((start_fails(str(error)),))
        return self._main_programs.check(container, plan_for(layers))

    def hold_name(self, request: Message) -> Callable[[], None]:
        """Reserve the name that a create request takes; returns what frees it. Raises CriError if
        it is taken (CRI-025)."""
        holder = self._core.ids.hex()
        self._core.names.take(name_of_create(request), holder)
        return partial(self._core.names.free, holder)

    def as_of_now(self, method: str) -> Callable[[Message], Message]:
        """A function that answers `method` from what the runtime knows now, whatever happens
        later."""
        self._clockwork.pump()
        return partial(HANDLERS[method], copies.snapshot(self._core))

    def do_half(self, method: str, request: Message) -> str:
        """Do the first half of a call that breaks off in the middle; returns the text of its
        error."""
        try:
            return HALVES[method](self._core, request)
        finally:
            self._clockwork.pump()
