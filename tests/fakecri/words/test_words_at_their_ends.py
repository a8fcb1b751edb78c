"""Words at the ends of what they take: nothing given, the smallest and the largest number."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakecri.scripts.script import load_script
from fakecri.words.behaviors import Behavior
from fakecri.words.word import fields_of, to_dict
from kubeobjects.strict.errors import ScriptError

BARE = [
    word
    for _, word in sorted(Behavior.known.items())
    if word.__module__.startswith("fakecri.") and not any(f.required for f in fields_of(word))
]


@pytest.mark.parametrize("word", BARE, ids=lambda word: word.__name__)
def test_a_word_of_which_nothing_is_said_has_no_fields_in_files(word: type[Behavior]) -> None:
    assert to_dict(word()) == {word.__name__: {}}
    assert repr(word()) == f"{word.__name__}()"


@pytest.mark.parametrize(
    ("play", "taken"),
    [
        ("exits: {code: 0}", True),
        ("exits: {code: 255}", True),
        ("exits: {code: 256}", False),
        ("exits: {code: -1}", False),
        ("serves: {port: 1}", True),
        ("serves: {port: 65535}", True),
        ("serves: {port: 65536}", False),
        ("serves: {port: 0}", False),
    ],
)
def test_both_ends_of_a_range_are_in_it(play: str, taken: bool, tmp_path: Path) -> None:
    file = tmp_path / "script.yaml"
    file.write_text(f"behaviors:\n  - {play}\n")
    if taken:
        assert len(load_script(file).behaviors) == 1
    else:
        with pytest.raises(ScriptError, match="wanted a whole number from"):
            load_script(file)
