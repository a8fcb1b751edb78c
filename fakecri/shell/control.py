"""How a script leaves what it is in: `exit`, `return`, `break` and `continue`."""

from __future__ import annotations


class Exit(Exception):
    """The shell ends."""

    def __init__(self, code: int, *, wrong_script: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.wrong_script = wrong_script
        """It could not be run; on a terminal it may be typed again."""


class Return(Exception):
    """A function ends; `code` None: with that of the last command."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


class Break(Exception):
    """Out of so many loops; `goes_on`: the outermost of them has its next round."""

    def __init__(self, levels: int, *, goes_on: bool) -> None:
        super().__init__(levels)
        self.levels = levels
        self.goes_on = goes_on
