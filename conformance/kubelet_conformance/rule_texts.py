"""What the rules say: the pages of docs/spec, which an installed package has, too.

A page defines a rule where its ID stands bold (`**LIFE-143**`), in a list, in a row of a table or
inside a paragraph; `**.2**` in its text is its second clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

_PACKAGE: Final = Path(__file__).parent
DEFINED: Final = re.compile(r"\*\*([A-Z]{2,5}-\d{3})\*\*")
CLAUSE: Final = re.compile(r"\*\*\.(\d{1,2})\*\*")
LEVEL: Final = r"(MUST|SHOULD|DETAIL|FAKE)"
MARKS: Final = re.compile(
    r"`(?P<code>[^`]*)`|\*\*(?P<bold>[^*]+)\*\*"
    r"|(?<![\w*.])\*(?=[^\s*])(?P<em>(?:`[^`]*`|[^*`])+)(?<!\s)\*(?![\w*])"
)
"""Code, what is bold and what is stressed. An asterisk elsewhere stands for itself (`cpu.*`)."""


class RuleText(Struct, frozen=True):
    """One rule, as its page has it."""

    id: str
    page: str
    """`lifecycle`: docs/spec/lifecycle.md."""
    line: int
    level: str
    """"" where the page gives none."""
    text: str
    """Without the ID; Markdown."""

    @property
    def anchor(self) -> str:
        """Where the documentation has it: `spec/lifecycle.md#life-143`."""
        return f"spec/{self.page}.md#{self.id.lower()}"

    def clauses(self) -> dict[int, str]:
        """The text of each clause; none of a rule that says one thing."""
        parts = CLAUSE.split(self.text)
        pairs = zip(parts[1::2], parts[2::2], strict=True)
        return {int(number): text.strip(" |;\n") for number, text in pairs}

    def said(self) -> str:
        """What it says before its first clause, or all of it."""
        return CLAUSE.split(self.text)[0].strip()


def pages() -> list[Path]:
    """The pages: inside the package when it is installed, beside it in a checkout."""
    inside = _PACKAGE / "spec"
    directory = inside if inside.is_dir() else _PACKAGE.parents[1] / "docs" / "spec"
    return sorted(directory.glob("*.md"))


def all_rules() -> dict[str, RuleText]:
    """Every rule by its ID."""
    return {rule.id: rule for page in pages() for rule in rules_in(page.stem, page.read_text())}


def rules_in(page: str, text: str) -> Iterator[RuleText]:
    """The rules that a page defines, in order.

    A rule's level follows its ID, or stands before it on its line, or in the line that heads its
    table (`all MUST`).
    """
    heading = ""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        level_match = re.search(rf"\ball {LEVEL}\b|^#.*\({LEVEL}:", line)
        if level_match:
            heading = level_match[1] or level_match[2]
        elif line.startswith("#"):
            heading = ""
        for definition in DEFINED.finditer(line):
            own = re.match(rf"\W*{LEVEL}\b", line[definition.end() :])
            before = re.match(rf"{LEVEL}\b", line)
            level = own[1] if own else before[1] if before else heading
            rule_text = _said(lines, number, definition.end())
            if own:
                rule_text = rule_text[own.end() :]
            rule_text = rule_text.lstrip(" —)|\n").rstrip(" |\n")
            yield RuleText(definition[1], page, number + 1, level, rule_text)


def _said(lines: list[str], number: int, start: int) -> str:
    """The text of a rule that is defined there: until the next one, or until its paragraph ends."""
    text = lines[number][start:]
    if (after := DEFINED.search(text)) is not None:
        return text[: after.start()]
    if lines[number].startswith("|"):
        return text
    for place, line in enumerate(lines[number + 1 :], number + 1):
        if DEFINED.search(line) or line.startswith("#"):
            break
        if not line.strip() and not _goes_on(text, lines[place + 1 :]):
            break
        text += f"\n{line}"
    return text


def _goes_on(said: str, after: list[str]) -> bool:
    """Whether a text goes on after an empty line: with the table that it announced, or indented as
    what belongs to an entry of a list is.

    >>> _goes_on("in order:", ["| a |"]), _goes_on("It.", ["  R = 1"]), _goes_on("It.", ["| a |"])
    (True, True, False)
    """
    following = after[0] if after else ""
    announced = said.rstrip().endswith(":") and following.startswith("|")
    return announced or (bool(following.strip()) and following.startswith("  "))
