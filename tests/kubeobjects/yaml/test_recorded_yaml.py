"""YAML is what Kubernetes' own reader made of the same texts, or refused in the same words; scripts
are stricter."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from record_yaml import KEPT
from yaml_texts import ALIASES, texts

from fakekubeapi.bodies import decode_yaml
from fakekubeapi.errors import StatusError
from kubeobjects.strict.errors import ScriptError
from kubeobjects.strict.values import parse_yaml
from kubeobjects.yaml.document import YamlError, read_yaml

LINES: Final = [json.loads(line) for line in KEPT.read_text().split("\n") if line]
TAKEN: Final = [(text, value) for text, value, *error in LINES[1:] if not error]
REFUSED: Final = [(text, error[0]) for text, _, *error in LINES[1:] if error]
OTHER_PARSER: Final = {
    'a: "\\/"': "libyaml knows the escape of a slash",
    "{a?: 1}": "libyaml takes question marks in words of flow collections",
    "[a?]": "libyaml takes question marks in words of flow collections",
    "{a:}": "Go's parser takes a colon at the end of a word of a flow collection",
    "[}- b\n# c\n  ": "Go's parser finds the bracket before the hyphen",
    '[}": !t ': "Go's parser finds the bracket before the quote",
}
"""Where Go's parser differs from the version of libyaml that PyYAML brings."""
DECODING: Final = "error decoding YAML: error converting YAML to JSON: "
GIVEN_TWICE: Final = {
    "&k a: 1\n*k : 2",
    "a: 1\na: 2",
    "{a: 1, a: 2, a: 3}",
    "a: {b: 1}\na: {c: 2}",
    "a: 1\n'a': 2",
    "m: {a: {b: 1, b: 2}}",
}
"""Texts that a kubelet reads, and the reader of files refuses (docs/gaps.md, SRC-004)."""


def exact(value: Any) -> str:
    """A text in which 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)


def words(text: str) -> str:
    """An error without keys and values that Go prints in its own notation."""
    for end in ("invalid map key", "unsupported map key of type: %!s(<nil>)"):
        text = text.partition(end)[0] + end if end in text else text
    return text.partition(", key: 0x")[0]


def read_otherwise(read: Callable[[str], Any], error: type[Exception]) -> set[str]:
    """The texts that this reader takes and Kubernetes does not, or that it reads otherwise."""

    def made_of(text: str) -> str:
        try:
            return exact(read(text))
        except error:
            return "an error"

    return {
        text
        for text, value, *refusal in LINES[1:]
        if made_of(text) != ("an error" if refusal else exact(value))
    }


def test_what_is_kept_was_asked_for() -> None:
    assert LINES[0] == {"kubernetes": "v1.36.2"}
    assert [text for text, *_ in LINES[1:]] == list(texts())
    assert len(TAKEN) > 1000
    assert len(REFUSED) > 500


def test_bodies_mean_what_they_mean_to_an_api_server() -> None:
    differing = read_otherwise(lambda text: decode_yaml(text.encode()), StatusError)
    assert differing <= OTHER_PARSER.keys()


def test_bodies_are_refused_in_the_words_of_an_api_server() -> None:
    differing = {}
    for text, error in REFUSED:
        try:
            decode_yaml(text.encode())
        except StatusError as refusal:
            if words(refusal.message) != f"{DECODING}{words(error)}":
                differing[text] = refusal.message
    assert differing.keys() <= OTHER_PARSER.keys(), differing


def test_files_mean_what_they_mean_to_a_kubelet_but_for_keys_given_twice_SRC_004() -> None:
    differing = read_otherwise(lambda text: read_yaml(text).value, YamlError)
    assert differing - OTHER_PARSER.keys() == GIVEN_TWICE


def test_the_parsers_differ_where_it_is_said() -> None:
    differing = read_otherwise(lambda text: decode_yaml(text.encode()), StatusError)
    in_words = {"[}- b\n# c\n  ", '[}": !t '}
    assert differing == OTHER_PARSER.keys() - in_words


def test_scripts_have_the_form_of_the_same_texts_of_kubernetes() -> None:
    """But for words, for `<<`, which is a key like others, and what scripts refuse."""
    differing = []
    for text, value in TAKEN:
        try:
            script = parse_yaml(text, "f").plain()
        except ScriptError:
            continue
        if "<<" not in text and form(script) != form(value):
            differing.append(text)
    assert differing == []


def form(value: Any) -> Any:
    """Lists and mappings without the words in them."""
    if isinstance(value, list):
        return [form(item) for item in value]
    if isinstance(value, dict):
        return sorted((form(item) for item in value.values()), key=repr)
    return None


def test_a_script_of_aliases_is_read_as_far_as_it_is_small() -> None:
    assert len(parse_yaml(ALIASES, "f").plain()["b"]) == 300
