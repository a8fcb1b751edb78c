"""A word is said once: all that users see of it is made of its one declaration."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

import fakecri
from fakecri import FakeCRI, Reply
from fakecri.cli import main
from fakecri.rules.faults import Rule
from fakecri.rules.on import VERBS, On
from fakecri.words.actions import Action
from fakecri.words.behaviors import Behavior, replies, runs, serves
from fakecri.words.kinds import WordError
from fakecri.words.word import Word, fields_of, sentence, shown, to_dict

EVERY = [*Behavior.known.values(), *VERBS.values(), *Action.known.values()]

NEW_WORDS = r'''
import json, re, sys
from pathlib import Path
from typing import Annotated

from fakecri.rules.verbs import delays
from fakecri.rules.on_base import Calls, Duration, Fault
from fakecri.words.actions import Action
from fakecri.words.behaviors import Behavior, exits, prints
from fakecri.words.kinds import Seconds, one_of


class naps(Behavior):
    """It sleeps and says so.

    Then it ends.
    """

    for_s: Seconds = 60.0
    mood: Annotated[str, one_of("good", "bad"), "how it feels then"] = "good"

    def means(self):
        return prints(f"a {self.mood} nap"), exits(0, after_s=self.for_s)


class dawdles(Fault):
    """The call is begun some time later."""

    by_s: Duration

    def rule_for(self, calls: Calls):
        return delays(self.by_s, times=self.times).rule_for(calls)


class hiccup(Action):
    """The machine stops for a moment."""

    reason: str


# -- here the declarations end --

import fakecri


def stumble(self, reason: str) -> None:
    self.kernel_says(reason)


fakecri.FakeCRI.hiccup = stumble

from fakecri.cli import main
from fakecri.control.openapi import openapi
from fakecri.control.routes import ROUTES
from fakecri.scripts.script import ScriptError, apply_script, load_script, script_schema
from fakecri.words.word import shown, to_dict
from words_tables import TABLES, table

NEW = re.compile(r"\| `(naps|dawdles|hiccup): ")


def refused(make):
    try:
        make()
    except (ScriptError, ValueError) as error:
        return str(error)


def said(text):
    Path("script.yaml").write_text(text)
    return load_script("script.yaml")


fake = fakecri.FakeCRI()
script = said(
    "behaviors: [{container: web, naps: {for_s: 5m, mood: bad}}]\n"
    "faults: [{on: Version, dawdles: {by_s: 2, times: 1}}]\n"
)
seen = {
    "constructor": [shown(naps(5, "bad")), to_dict(naps(mood="bad"))],
    "constructor refuses": refused(lambda: naps(mood="odd")),
    "verb": repr(fake.on("Version").dawdles(3, times=2)),
    "verb refuses": refused(lambda: fake.on("Version").dawdles(-1)),
    "script": [rule.what for rule in apply_script(script, fakecri.FakeCRI())],
    "script refuses": refused(lambda: said("behaviors: [{naps: {mood: odd, fro_s: 1}}]")),
    "schema": [script_schema()["$defs"][name] for name in ("Naps", "Dawdles")],
    "entry": script_schema()["$defs"]["BehaviorEntry"]["properties"]["naps"],
    "openapi": openapi(ROUTES)["components"]["schemas"]["Naps"],
    "action": openapi(ROUTES)["paths"]["/v1/actions/hiccup"]["post"]["summary"],
    "tables": [line for name in TABLES for line in table(name).splitlines() if NEW.match(line)],
}
with fakecri.serve() as served:
    ctl = ["ctl", "--control", served.control]
    seen["ctl"] = [
        main([*ctl, "behave", "--container", "web", "naps: {for_s: 1}"]),
        main([*ctl, "fault", "Version", "dawdles: {by_s: 1}"]),
        main([*ctl, "hiccup", "oh dear"]),
    ]
    seen["rules"] = [rule["what"] for rule in served.ctl().request("GET", "/v1/rules")]
    seen["log"] = served.node.log.texts[-1]
Path("seen.json").write_text(json.dumps(seen))
'''


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a program sees that declares a behaviour, a fault and an action of its own."""
    directory = tmp_path_factory.mktemp("words")
    (directory / "new_words.py").write_text(NEW_WORDS)
    path = os.pathsep.join([str(ROOT / "tools/docs"), str(ROOT), str(ROOT / "protos")])
    subprocess.run(
        [sys.executable, "new_words.py"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        timeout=100,
    )
    found: dict[str, Any] = json.loads((directory / "seen.json").read_text())
    return found


def test_a_new_word_is_a_constructor_with_checks(seen: dict[str, Any]) -> None:
    assert seen["constructor"] == ["naps(for_s=5, mood='bad')", {"naps": {"mood": "bad"}}]
    assert seen["constructor refuses"] == "naps.mood: wanted good or bad, got 'odd'"
    assert seen["verb"] == "<Version (anything) delays 3 s, 0 hits>"
    assert seen["verb refuses"] == "by_s: wanted seconds from 0, got -1"


def test_a_new_word_is_read_in_scripts_with_its_mistakes(seen: dict[str, Any]) -> None:
    assert seen["script"] == [
        "containers (container='web'): naps(for_s=300, mood='bad')",
        "Version (anything) delays 2.0 s",
    ]
    assert seen["script refuses"].splitlines() == [
        "script.yaml:1:27: behaviors[0].naps.mood: wanted one of bad, good, got the text 'odd'",
        "script.yaml:1:32: behaviors[0].naps: unknown key 'fro_s', wanted one of: for_s, mood; "
        "did you mean for_s?",
    ]


def test_a_new_word_is_in_the_schemas(seen: dict[str, Any]) -> None:
    naps, dawdles = seen["schema"]
    assert naps["description"] == "It sleeps and says so."
    assert naps["properties"]["mood"] == {
        "description": "how it feels then", "enum": ["bad", "good"], "default": "good"
    }  # fmt: skip
    assert naps["properties"]["for_s"]["default"] == 60.0
    assert (list(dawdles["properties"]), dawdles["required"]) == (["times", "by_s"], ["by_s"])
    assert {"$ref": "#/$defs/Naps"} in seen["entry"]["anyOf"]
    assert seen["openapi"] == naps
    assert seen["action"] == "The machine stops for a moment"


def test_a_new_word_is_said_on_the_command_line(seen: dict[str, Any]) -> None:
    assert seen["ctl"] == [0, 0, 0]
    assert seen["rules"] == [
        "containers (container='web'): naps(for_s=1)",
        "Version (anything) delays 1.0 s",
    ]
    assert seen["log"] == "oh dear"


def test_a_new_word_is_in_the_tables_of_the_pages(seen: dict[str, Any]) -> None:
    assert seen["tables"] == [
        "| `naps: {for_s, mood}` | It sleeps and says so. |",
        "| `dawdles: {by_s}` | The call is begun some time later. |",
        "| `hiccup: {reason}` | The machine stops for a moment. |",
    ]


def test_the_tables_of_the_pages_are_current() -> None:
    tool = ROOT / "tools/docs/words_tables.py"
    done = subprocess.run(
        [sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "words: behaviors" in "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("word", EVERY, ids=lambda word: word.__name__)
def test_every_word_says_itself_what_it_is(word: type[Word]) -> None:
    assert sentence(word).endswith(".")
    assert all(field.kind.in_files or field.code for field in fields_of(word))
    assert "self" not in inspect.signature(word).parameters


@pytest.mark.parametrize("word", Behavior.known)
def test_every_behaviour_is_public_under_its_word(word: str) -> None:
    assert getattr(fakecri, word) is Behavior.known[word]
    assert word in fakecri.__all__


@pytest.mark.parametrize("verb", VERBS)
def test_every_fault_is_a_typed_verb_with_its_fields(verb: str) -> None:
    said = getattr(FakeCRI().on("Version"), verb)
    assert verb in vars(On)
    assert said.__doc__ == VERBS[verb].__doc__
    assert inspect.signature(said).parameters == inspect.signature(VERBS[verb]).parameters
    assert inspect.signature(said).return_annotation is Rule


FITTING = {
    "fails_halfway": "StopContainer",
    "holds_name": "RunPodSandbox",
    "cuts_stream": "GetContainerEvents",
    "goes_silent": "GetContainerEvents",
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_fault_makes_a_rule_for_so_many_calls(verb: str) -> None:
    fake = FakeCRI()
    needed = {field.name: 1 for field in fields_of(VERBS[verb]) if field.required}
    rule = getattr(fake.on(FITTING.get(verb, "ListContainers")), verb)(**needed, times=3)
    assert (rule.left, fake.rules()) == (3, [rule])


def test_help_has_the_types_and_not_their_checks() -> None:
    assert str(inspect.signature(serves)).startswith(
        "(port: int, protocol: str = 'http', status: int = 200, *, path: Optional[str] = None, "
    )
    hints = typing.get_type_hints(replies)
    parameters = inspect.signature(replies).parameters
    assert parameters["command"].annotation == hints["command"]
    assert parameters["exit_code"].annotation is int


@pytest.mark.parametrize(
    ("verb", "words"), [("behave", Behavior.known), ("fault", VERBS), ("add", {})]
)
def test_the_help_of_the_command_line_tells_the_words(
    verb: str, words: dict[str, type[Word]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["ctl", verb, "--help"])
    told = re.findall(r"^  (\w+): \{", capsys.readouterr().out, re.MULTILINE)
    assert told == list(words)


@pytest.mark.parametrize("word", Action.known)
def test_every_field_of_an_action_is_an_option(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, Any]] = []

    def request(self: Any, method: str, path: str, body: Any = None, **_: Any) -> Any:
        sent.append((path, body))
        return {"done": word}

    monkeypatch.setattr("fakecri.control.client.ControlClient.request", request)
    options: list[str] = []
    body: dict[str, Any] = {}
    for field in fields_of(Action.known[word]):
        body[field.said] = True if field.kind.in_files is bool else 7 if field.kind.bounds else "7"
        if field.kind.in_files == "ExitCode":
            body[field.said] = 7
        options += [] if field.required else [f"--{field.said.replace('_', '-')}"]
        options += [] if body[field.said] is True else ["7"]
    ctl = ["ctl", "--control", "unix:///tmp/none", word.replace("_", "-")]
    assert main([*ctl, *options]) == 0
    assert sent[-1] == (f"/v1/actions/{word}", body)


def test_words_are_values() -> None:
    assert serves(80) == serves(80, path=None)
    assert len({serves(80), serves(80), serves(81)}) == 2
    with pytest.raises(AttributeError):
        serves(80).port = 81  # type: ignore[misc]
    assert (
        repr(serves(80, status=503))
        == shown(serves(80, status=503))
        == ("serves(port=80, status=503)")
    )


def test_code_in_a_word_has_no_plain_form_and_is_left_out_of_texts() -> None:
    def program(run: Any) -> int:
        return 0

    assert (runs(program).program, runs(program).command) == (program, None)
    assert (runs("a b").program, runs("a b").command) == (None, ("a", "b"))
    assert (runs().program, runs().command) == (None, None)
    assert shown(runs(program)) == "runs(program=...)"
    assert shown(runs(["a"])) == "runs(command=('a',))"
    assert to_dict(runs("a b")) == {"runs": {"command": ["a", "b"]}}
    with pytest.raises(WordError, match=r"replies\(handler=\.\.\.\) is Python code"):
        to_dict(replies(handler=lambda context: Reply()))


def test_an_unknown_verb_is_an_attribute_error() -> None:
    on: Any = FakeCRI().on("Version")
    with pytest.raises(AttributeError, match="no attribute 'faisl'"):
        on.faisl()


def test_a_subclass_says_its_own_fields_and_those_of_its_base(tmp_path: Path) -> None:
    assert [field.name for field in fields_of(VERBS["delays"])] == ["times", "delay_s"]
    with pytest.raises(TypeError, match="delay_s"):
        VERBS["delays"]()
