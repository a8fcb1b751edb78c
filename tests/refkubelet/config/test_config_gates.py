"""Feature gates of a configuration: those that refkubelet knows, and what is told of others."""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import refkubelet
from refkubelet.config import parse_config
from refkubelet.config.gates import GATES, WITHOUT_EFFECT, others

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
PACKAGE = Path(refkubelet.__file__).parent
KEPT = Path(__file__).resolve().parents[3] / "results" / "gates.json"  # in no wheel


def told(gates: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    parse_config((HEAD + f"featureGates: {gates}\n").encode(), "k.yaml")
    return caplog.messages


def test_a_gate_that_decides_something_is_not_worth_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert told("{EventedPLEG: true, MemoryQoS: false}", caplog) == []


def test_other_gates_are_told_with_a_guess_when_one_is_near(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A real kubelet's file names gates that nothing here hangs on; a slip looks the same."""
    assert told("{KubeletInUserNamespce: true, NodeSwap: true, eventedPLEG: true}", caplog) == [
        "k.yaml: featureGates: accepted, but without effect in refkubelet: "
        "KubeletInUserNamespce (did you mean KubeletInUserNamespace?), NodeSwap, "
        "eventedPLEG (did you mean EventedPLEG?)"
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("EventedPLEG", []),
        ("eventedpleg", ["eventedpleg (did you mean EventedPLEG?)"]),
        ("CPUManagerPolicyAlphaOption", [
            "CPUManagerPolicyAlphaOption (did you mean CPUManagerPolicyAlphaOptions?)"
        ]),
        ("MemoryQS", ["MemoryQS"]),
        ("PodLevelResource", ["PodLevelResource (did you mean PodLevelResources?)"]),
        ("PodLevelSources", ["PodLevelSources"]),
    ],
)  # fmt: skip
def test_a_slip_of_one_letter_in_a_long_name_is_guessed(name: str, told: list[str]) -> None:
    assert others([name]) == told


def asked_for() -> Iterator[str]:
    """What `...gates.get(NAME, default)` asks for, wherever the name is a constant."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(value=gates, attr="get"), args=[name, _]):
                    if ast.unparse(gates).endswith("gates"):
                        yield from constant(path, name)
                case ast.Call(func=ast.Attribute(attr="gate" | "gates"), args=[name, *_]):
                    yield from constant(path, name)


def constant(path: Path, name: ast.expr) -> Iterator[str]:
    if isinstance(name, ast.Constant):
        yield name.value
    elif isinstance(name, ast.Name):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        value = getattr(importlib.import_module(".".join(parts)), name.id, None)
        if isinstance(value, str):
            yield value


def test_the_list_has_every_gate_that_the_code_asks_for_and_no_other() -> None:
    asked = set(asked_for())
    assert len(asked) > 10
    assert asked - set(GATES) == set()
    own = PACKAGE / "config" / "gates.py"
    code = "".join(p.read_text() for p in sorted(PACKAGE.rglob("*.py")) if p != own)
    assert [gate for gate in GATES if f'"{gate}"' not in code] == []


def test_every_gate_that_the_kubelet_asks_acts_or_is_told_with_its_reason() -> None:
    rows = json.loads(KEPT.read_text())
    asked = {name for name, row in rows.items() if row["asked"] and not row["locked"]}
    assert len(asked) > 50
    assert asked - set(GATES) - set(WITHOUT_EFFECT) == set()
    assert set(GATES) & set(WITHOUT_EFFECT) == set()
    [told] = others(["HostnameOverride"])
    assert told == "HostnameOverride (hostnameOverride always acts)"
