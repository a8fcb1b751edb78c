"""Rules on what containers do: which starts they decide, and what then happens."""

from __future__ import annotations

from fakecri.behavior import Behavior
from fakecri.faults import Rule
from fakecri.matching import Match
from fakecri.objects import Container
from fakecri.world import subject_of


class BehaviorRule(Rule):
    """A rule on what containers do; it is used up by the starts it decides."""

    def __init__(
        self,
        rules: list[Rule],
        match: Match,
        behaviors: tuple[Behavior, ...],
        times: int | None,
        first_attempts: int | None = None,
    ) -> None:
        when = "" if first_attempts is None else f" in their first {first_attempts} attempts"
        super().__init__(rules, f"containers ({match}) behave{when}", times)
        self.match = match
        self.behaviors = behaviors
        self._before_attempt = first_attempts

    def fits(self, container: Container) -> bool:
        """Whether it decides this start."""
        if self._before_attempt is not None and container.attempt >= self._before_attempt:
            return False
        return self.match.fits(subject_of(container))
