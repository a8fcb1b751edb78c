"""What is wrong with a text, where, and in which words Kubernetes says so. Pure."""

from __future__ import annotations


class YamlError(ValueError):
    """The text is invalid. `problem`: what is wrong; `line`, `column`: where (from 1), or None if
    unknown; `upstream`: the whole text of the error that Kubernetes has for it."""

    def __init__(
        self,
        problem: str,
        line: int | None = None,
        column: int | None = None,
        upstream: str = "",
    ) -> None:
        super().__init__(f"line {line}: {problem}" if line is not None else problem)
        self.problem = problem
        self.line = line
        self.column = column
        self.upstream = upstream or f"yaml: {problem}"


class TooLargeError(YamlError):
    """The text is larger than a limit of this project."""


class TooDeepError(TooLargeError):
    """Lists and mappings are nested more deeply than a limit of this project."""
