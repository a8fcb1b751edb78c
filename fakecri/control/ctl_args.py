"""What the verbs of `fakecri ctl` share: their arguments, and how these are sent."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from fakecri.control.client import ControlClient

Command: TypeAlias = Callable[[ControlClient, argparse.Namespace], Any]


class UsageError(Exception):
    """A wrong argument. The text is the whole message for the user."""


def add_verb(verbs: Any, name: str, run: Command, help_text: str) -> argparse.ArgumentParser:
    """Add the verb `name`, which the function `run` carries out; returns its parser."""
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=help_text, description=help_text)
    parser.set_defaults(run=run)
    return parser


def add_selectors(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add the options that select pods, containers or calls."""
    for name in names:
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type={"attempt": int, "nth": int, "since_s": float}.get(name, str),
            metavar=name.upper(),
        )


def given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """The arguments that the user gave, by name."""
    values = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def renamed(arguments: argparse.Namespace, **names: str) -> dict[str, Any]:
    """The arguments that the user gave, under the names that the control socket has for them."""
    return {names[name]: value for name, value in given(arguments, *names).items()}


_UNITS: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def bytes_of(text: str) -> int:
    """A number of bytes: a whole number, alone or with Ki, Mi, Gi or Ti. Raises UsageError."""
    number, unit = (text[:-2], _UNITS[text[-2:]]) if text[-2:] in _UNITS else (text, 1)
    if not number.isdigit():
        raise argparse.ArgumentTypeError(f"wanted bytes or 512Mi, 6Gi, ..., got {text!r}")
    return int(number) * unit
