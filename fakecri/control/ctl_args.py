"""What the verbs of `fakecri ctl` share: their arguments, and how these are sent."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from fakecri.control.client import ControlClient
from fakecri.scripts.units import bytes_of, seconds_of

T = TypeVar("T")

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


def size(text: str) -> int:
    """The bytes of an argument such as 4096 or 6Gi."""
    return _amount(bytes_of, int(text) if text.isdecimal() else text)


def duration(text: str) -> float:
    """The seconds of an argument such as 2, 1.5s or 5m."""
    bare = text.replace(".", "", 1).isdecimal()
    return _amount(seconds_of, float(text) if bare else text)


def _amount(read: Callable[[Any], T], given: object) -> T:
    try:
        return read(given)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
