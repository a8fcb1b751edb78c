"""Rules on what containers do: which starts they decide, and what then happens."""

from __future__ import annotations

from fakecri.behaviors.behavior import KINDS, Behavior
from fakecri.behaviors.checked import BehaviorError
from fakecri.behaviors.matching import Match, require_count
from fakecri.core.objects import Container
from fakecri.rules.faults import Rule


class BehaviorRule(Rule):
    """A rule on what containers do; it is used up by the starts it decides."""

    def __init__(
        self,
        match: Match,
        behaviors: tuple[Behavior, ...],
        *,
        times: int | None = None,
        first_attempts: int | None = None,
    ) -> None:
        kinds = tuple(KINDS.values())
        for given in behaviors:
            if not isinstance(given, kinds):
                raise BehaviorError(f"wanted behaviours such as exits(1), got {given!r}")
        if first_attempts is not None:
            require_count("first_attempts", first_attempts)
        when = "" if first_attempts is None else f" in their first {first_attempts} attempts"
        super().__init__(f"containers ({match}) behave{when}", times)
        self.match = match
        self.behaviors = behaviors
        self._before_attempt = first_attempts

    def fits(self, container: Container) -> bool:
        """Whether it decides this start."""
        if self._before_attempt is not None and container.attempt >= self._before_attempt:
            return False
        return self.match.fits(container.subject)
