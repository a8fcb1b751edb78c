"""The mistakes in a file, and what a misspelt word may have meant. Pure."""

from __future__ import annotations

from collections.abc import Iterable


class ScriptError(ValueError):
    """A file cannot be used. Each of `errors` is `file:line:column: path: what was wanted, what was
    there`; the text has one in each line."""

    def __init__(self, *errors: str) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: `; did you mean X?`, "" when none is near.
    Capitals do not count.

    >>> did_you_mean("startContaner", ["StartContainer", "StopContainer"])
    '; did you mean StartContainer?'
    """
    from difflib import get_close_matches  # 5 ms that only mistakes need

    names = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), names, n=1)
    return f"; did you mean {names[near[0]]}?" if near else ""
