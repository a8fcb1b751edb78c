"""Every word of a script with every wrong type: one error in one line, never a traceback."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from plain_words import behavior_of

import fakecri
from fakecri import FakeCRI
from fakecri.control.client import ControlError
from fakecri.rules.on import VERBS
from fakecri.scripts.script import ScriptError, load_script
from fakecri.scripts.script_shapes import Node, RegistryEntry, Runtime
from fakecri.words.behaviors import Behavior
from fakecri.words.word import fields_of

WRONG: list[Any] = [
    None, True, -1, 10**30, 1e308, float("inf"), float("nan"), "", "x", [], [1], [[1]], [[1, 2, 3]],
    [["a", "b"]], [{}], [{"a": 1}], [{0: 1, 1: 2}], {}, {"a": 1}, {1: 2}, {"from": "a", "to": 1},
    {"from": 0, "to": 1, "over_s": float("nan")}, [[0, 1], [1]], [[0, None]], [[True, True]],
    [{"exit_code": "x"}], [{"delay_s": -1}], [{"stdout": 5}], "\x85", "e" * 300, [None],
]  # fmt: skip
TOP = ("runtime", "node", "images", "programs", "registry", "behaviors", "faults", "forwards")
NEEDED: dict[str, dict[str, Any]] = {
    "prints": {"text": "x"},
    "serves": {"port": 80},
    "writes_termination_message": {"text": "x"},
}


def behaviors() -> Iterator[tuple[str, Any]]:
    for name, kind in Behavior.known.items():
        yield from ((name, value) for value in WRONG)
        for field in fields_of(kind):
            if field.plain:
                needed = NEEDED.get(name, {})
                yield from ((name, {**needed, field.said: value}) for value in WRONG)


def require_clear(error: ScriptError) -> None:
    """Each line with its place, in the words of scripts and not in Python's."""
    text = str(error)
    assert all(re.match(r".*script.yaml:\d+:\d+: ", line) for line in text.splitlines())
    for word in ("object is not", "__init__", "positional", "NoneType", "subscriptable"):
        assert word not in text


def scripts() -> Iterator[dict[str, Any]]:
    for name, given in behaviors():
        yield {"behaviors": [{name: given}]}
    for key in TOP:
        yield from ({key: value} for value in WRONG)
    for selector in ("container", "pod", "image", "attempt", "first_attempts", "times", "nth"):
        for value in WRONG:
            yield {"behaviors": [{selector: value, "exits": {}}]}
            yield {"faults": [{"on": "StartContainer", selector: value, "hangs": {}}]}
    for section, shape in (("runtime", Runtime), ("node", Node), ("registry", RegistryEntry)):
        for name in shape.__struct_fields__:
            for value in WRONG:
                given = {name: value}
                yield {section: {"a:1": given} if section == "registry" else given}
    for fault in VERBS:
        yield from ({"faults": [{"on": "ListContainers", fault: value}]} for value in WRONG)
        for name in ("code", "message", "delay_s", "after_s", "by_s", "keep", "after", "times"):
            for value in WRONG:
                yield {"faults": [{"on": "ListContainers", fault: {name: value}}]}
    for name in ("port", "to", "pod"):
        yield from ({"forwards": [{"port": 80, "to": "h:2", name: value}]} for value in WRONG)


def test_script_files(tmp_path: Path) -> None:
    file = tmp_path / "script.yaml"
    refused: Counter[str] = Counter()
    for script in scripts():
        file.write_text(yaml.dump(script, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper)))
        try:
            FakeCRI(script=file)
        except ScriptError as error:
            require_clear(error)
            refused.update(list(script))
    assert min(refused[key] for key in TOP) >= len(WRONG) - 5  # a few of them are right
    assert refused["behaviors"] > 50 * len(WRONG)
    assert refused["faults"] > 40 * len(WRONG)


@pytest.mark.parametrize(
    "given",
    [
        {"uses": {"memory": [{0: 1, 1: 2}]}},
        {"uses": {"cpu": [{"at_s": 1}]}},
        {"replies": {"answers": 5}},
        {"runs": {"command": {}}},
        {"serves": {"status": 200}},
    ],
)
def test_the_same_over_the_control_socket(given: dict[str, Any]) -> None:
    with fakecri.serve() as fake, pytest.raises(ControlError) as error:
        fake.ctl().request("POST", "/v1/rules", {"behaviors": [given]})
    assert error.value.status == 400


def test_a_command_may_have_numbers() -> None:
    behavior: Any = behavior_of({"replies": {"command": ["sleep", 5]}})
    assert behavior.command == ("sleep", "5")


@pytest.mark.parametrize("text", ["\x00", "[" * 5000, "{a: " * 3000, "a: &a {b: *a}", "? x", "- -"])
def test_texts_that_are_no_script(tmp_path: Path, text: str) -> None:
    file = tmp_path / "script.yaml"
    file.write_text(text)
    with pytest.raises(ScriptError) as error:
        load_script(file)
    assert "\n" not in str(error.value)
