"""The questions that a fake or a proxy answers about its calls, and the assertions over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fakecri.recording.call import Call
from fakecri.recording.questions import ASKED
from fakecri.recording.recorder import Recorder
from kubeobjects.arguments import arguments_told, tells_arguments


@arguments_told
class Asked:
    """What has a recorder and answers questions from it.

    `which` calls are meant is said as in `Recorder`: by pod, container, image, attempt, since_s,
    until_s and where.
    """

    recorder: Recorder

    @tells_arguments(*ASKED)
    def calls(
        self, /, method: str | None = None, *, since_s: float = 0.0, **which: Any
    ) -> list[Call]:
        """The recorded calls that fit, oldest first; see `Recorder.calls`. `method` None: of all
        methods."""
        return self.recorder.calls(method, since_s=since_s, **which)

    @tells_arguments(*ASKED)
    def count(self, /, method: str | None = None, **which: Any) -> int:
        """How many recorded calls fit."""
        return self.recorder.count(method, **which)

    @tells_arguments(*ASKED)
    def times_s(self, /, method: str | None = None, **which: Any) -> list[float]:
        """When the calls that fit arrived, in seconds on the clock's monotonic time."""
        return self.recorder.times_s(method, **which)

    @tells_arguments(*ASKED)
    def assert_called(self, /, method: str, *, times: int | None = None, **which: Any) -> None:
        """Assert that calls fit: at least one, or exactly `times`. Raises AssertionError with the
        nearest miss and the last calls."""
        __tracebackhide__ = True
        self.recorder.assert_called(method, times=times, **which)

    @tells_arguments(*ASKED)
    def assert_not_called(self, /, method: str, **which: Any) -> None:
        """Assert that no call fits. Raises AssertionError."""
        __tracebackhide__ = True
        self.recorder.assert_not_called(method, **which)

    def assert_order(self, steps: Sequence[str | tuple[str, str]]) -> None:
        """Assert that calls came in this order; others may lie between them. Raises AssertionError.
        See `Recorder.assert_order` for the shapes of a step."""
        __tracebackhide__ = True
        self.recorder.assert_order(steps)

    @tells_arguments(*ASKED)
    def assert_series(
        self, /, method: str, expected_s: Sequence[float], *, slack_s: float = 1.0, **which: Any
    ) -> None:
        """Assert that the calls that fit came `expected_s` seconds after the first of them, with at
        most `slack_s` more in each gap. Raises AssertionError."""
        __tracebackhide__ = True
        self.recorder.assert_series(method, expected_s, slack_s=slack_s, **which)
