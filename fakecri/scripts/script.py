"""Script files: what a fake or a proxy is made and programmed with, as YAML.

    runtime: {name: containerd, version: v2.1.0}
    node: {memory: 1Gi}
    images: [localhost/busybox:1]
    programs: [pg_isready]
    registry:
      registry.example/slow:1: {pull_s: 20s}
      registry.example/gone:*: {missing: true}
    behaviors:
      - container: web
        prints: [{text: hello}, {text: bye, at_s: 1.5}]
        exits: {code: 1, after_s: 2}
    faults:
      - on: StartContainer
        container: web
        fails: {code: UNKNOWN, message: boom, times: 1}
    forwards:
      - {pod: shop, port: 80, to: 127.0.0.1:8080}

`script_shapes.Script` says what a file may hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from msgspec import UNSET

from fakecri.machine.node import FakeNode
from fakecri.rules.faults import Rule
from fakecri.scripts.script_shapes import Script, registry_with
from kubeobjects.strict.errors import ScriptError
from kubeobjects.strict.json_schema import json_schema
from kubeobjects.strict.reader import read
from kubeobjects.strict.values import Value, read_yaml

_OF_ALL: Final = ("faults",)
_WHEN_MADE: Final = ("runtime", "node")


def load_script(path: str | Path, *, faults_only: bool = False) -> Script:
    """Read a script file. `faults_only`: for a proxy, whose containers behave by themselves.

    Raises ScriptError with every mistake, its place, what was wanted and what was there.
    """
    return read_script(read_yaml(Path(path)), faults_only=faults_only)


def read_script(value: Value, *, faults_only: bool = False, running: bool = False) -> Script:
    """The script that `value` holds. `running`: for a fake that is there already, and so has its
    node and its options. Raises ScriptError, as `load_script`."""
    refused = {}
    if faults_only:
        names = (name for name in Script.__struct_fields__ if name not in _OF_ALL)
        refused = dict.fromkeys(
            names, "a proxy takes only faults: the real runtime has its own of these"
        )
    elif running:
        refused = dict.fromkeys(_WHEN_MADE, "this counts only when a fake is made")
    errors = [
        str(item.error(refused[key.text()]))
        for key, item in (value.pairs() if value.is_mapping() else ())
        if not key.is_mapping() and not key.is_list() and key.text() in refused
    ]
    try:
        script = read(value, Script)
    except ScriptError as error:
        errors += error.errors
    if errors:
        raise ScriptError(*errors)
    return script


def apply_script(script: Script, target: Any) -> list[Rule]:
    """Program `target` (a FakeCRI, or a proxy for a script of faults) with all its rules, programs
    and its registry; `runtime`, `node` and `images` count when a fake is made.

    The rules it made, in the order of the script. Raises ScriptError for faults that do not fit
    their methods; then no rule of the script stays.
    """
    rules: list[Rule] = []
    errors: list[str] = []
    for entry in script.behaviors:
        rules.append(target.behaves(*entry.behaviors, **entry.selectors))
    for forward in script.forwards:
        given = forward.given()
        rules.append(target.streaming.forward(given.pop("port"), **given))
    for fault in script.faults:
        try:
            verb = getattr(target.on(fault.on, **fault.selectors), fault.action)
            rules.append(verb(**fault.arguments))
        except (ValueError, TypeError) as error:
            errors.append(str(fault.error(str(error))))
    if errors:
        for rule in rules:
            rule.withdraw()
        raise ScriptError(*errors)
    if script.programs:
        target.add_programs(script.programs)
    if script.registry is not UNSET:
        target.images.registry = registry_with(script.registry)
    return rules


def options_of(script: Script) -> dict[str, Any]:
    """The fields of `Options` that a script sets."""
    options = {} if script.runtime is UNSET else script.runtime.options()
    return options if script.images is UNSET else {**options, "images": script.images}


def node_of(script: Script, **fields: Any) -> FakeNode:
    """The node that a script describes; `fields` of FakeNode that are given here count before."""
    return FakeNode(**{**script.node_fields(), **fields})


def script_schema() -> dict[str, Any]:
    """The JSON schema of script files."""
    return json_schema(Script, "A script of fakecri")


__all__ = [
    "Script",
    "ScriptError",
    "apply_script",
    "load_script",
    "node_of",
    "options_of",
    "read_script",
    "script_schema",
]
