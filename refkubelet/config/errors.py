"""Errors of what the user wrote: configuration files, manifests, kubeconfigs, flags."""

from __future__ import annotations


class ConfigError(Exception):
    """Something the user gave is wrong; the text stands alone: place, field, wanted, found."""


class ConfigErrors(ConfigError):
    """All problems of one file, in `problems`; the text has one line for each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
