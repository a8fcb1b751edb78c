"""What the verbs of `fakecri ctl` share: their arguments, and how these are sent."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Any, Final, TypeAlias, TypeVar

from fakecri.control.client import ControlClient
from fakecri.scripts.units import bytes_of, seconds_of
from fakecri.words.word import Word, fields_of, form, sentence

T = TypeVar("T")

Command: TypeAlias = Callable[[ControlClient, argparse.Namespace], Any]


class UsageError(Exception):
    """A wrong argument. The text is the whole message for the user."""


class VerbParser(argparse.ArgumentParser):
    """The parser of a verb. `words`: those that its help tells; they are imported for it alone."""

    words: Callable[[], Iterable[type[Word]]] = tuple

    def format_help(self) -> str:
        rows = (f"\n  {form(word)}\n      {said_shortly(word)}\n" for word in self.words())
        return super().format_help() + "".join(rows)


def add_verb(verbs: Any, name: str, run: Command, help_text: str) -> VerbParser:
    """Add the verb `name`, which the function `run` carries out; returns its parser."""
    parser: VerbParser = verbs.add_parser(name, help=help_text, description=help_text)
    parser.set_defaults(run=run)
    return parser


def asking(method: str, path: str) -> Command:
    """What a verb does that is one request without arguments."""
    return lambda client, arguments: client.request(method, path)


def add_selectors(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add the options that select pods, containers or calls."""
    for name in names:
        parser.add_argument(
            _option(name),
            type={"attempt": int, "nth": int, "since_s": float}.get(name, str),
            metavar=name.upper(),
        )


def said_shortly(word: type[Word]) -> str:
    """What helps say of a word: its sentence, as a part of one."""
    text = sentence(word).rstrip(".")
    return text[0].lower() + text[1:]


def add_fields(parser: argparse.ArgumentParser, word: type[Word]) -> None:
    """Add an option for each field of a word; what it has to have is an argument."""
    for field in fields_of(word):
        name = field.said
        help_text = field.description or None
        if field.required:
            parser.add_argument(name, metavar=name.upper(), help=help_text)
        elif field.kind.in_files is bool:
            parser.add_argument(_option(name), action="store_true", default=None, help=help_text)
        else:
            number = field.kind.bounds is not None or field.kind.in_files == "ExitCode"
            metavar = name.rpartition("_")[2].upper()
            kind = int if number else str
            parser.add_argument(_option(name), type=kind, metavar=metavar, help=help_text)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


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


def whole_number(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"wanted a whole number from 1, got {text!r}")
    return int(text)


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"wanted an IP address, got {text!r}") from None


FORMS: Final[dict[Any, dict[str, Any]]] = {
    "Bytes": {"type": size, "metavar": "BYTES"},
    "Seconds": {"type": duration, "metavar": "SECONDS"},
    "Count": {"type": whole_number, "metavar": "NUMBER"},
    "Amount": {"type": int, "metavar": "NUMBER"},
    "Address": {"type": _address, "metavar": "IP"},
    "Image": {"metavar": "NAME"},
    str: {"metavar": "TEXT"},
    bool: {"action": argparse.BooleanOptionalAction},
    list[str]: {"action": "append", "metavar": "NAME"},
    (1, 2): {"type": int, "choices": (1, 2)},
    ("cgroupfs", "systemd"): {"choices": ("cgroupfs", "systemd")},
}
"""How options for the kinds of `fakecri.words.settings` are read."""
