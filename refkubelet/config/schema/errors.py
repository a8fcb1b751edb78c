"""Mistakes in the configuration, as errors with a complete text."""

from __future__ import annotations


class ConfigError(Exception):
    """A mistake of the user. The text is complete: place, field, what was wanted, what was
    found."""


class ConfigErrors(ConfigError):
    """All mistakes of one configuration: `problems`, one text each; the error's text has a line
    for each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
