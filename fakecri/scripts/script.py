"""Script files: what `fakecri serve` and `fakecri proxy` are programmed with, as YAML.

    images: [localhost/busybox:1]
    programs: [pg_isready]
    registry:
      registry.example/slow:1: {pull_s: 20}
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

What must never happen here: half of a script takes effect.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fakecri.rules.faults import Rule
from fakecri.scripts.script_entries import (
    BehaviorEntry,
    FaultEntry,
    ForwardEntry,
    Script,
    registry_with,
)
from fakecri.scripts.script_reading import FAULTS, read_script
from fakecri.scripts.yaml_reader import ScriptError, read_yaml


def load_script(path: Path, *, faults_only: bool = False) -> Script:
    """Read a script file. `faults_only`: for a proxy, whose containers behave by themselves.

    Raises ScriptError: file and line, what was wanted and what was there.
    """
    return read_script(read_yaml(path), faults_only=faults_only)


def apply_script(script: Script, target: Any) -> list[Rule]:
    """Program a FakeCRI, or a proxy with a script of faults, with everything in a script. Returns
    the rules that were made, in the order of the script.

    Raises ScriptError for a fault that does not fit its method; then no rule of the script is left.
    """
    rules: list[Rule] = []
    if script.programs:
        target.add_programs(script.programs)
    for entry in script.behaviors:
        rules.append(target.behaves(*entry.behaviors, **entry.selectors))
    for forward in script.forwards:
        rules.append(target.streaming.forward(forward.port, to=forward.to, pod=forward.pod))
    for fault in script.faults:
        try:
            verb = getattr(target.on(fault.method, **fault.selectors), fault.action)
            rules.append(verb(**fault.arguments))
        except (ValueError, TypeError) as error:
            for rule in rules:
                rule.withdraw()
            raise (
                fault.place.error(str(error)) if fault.place else ScriptError(str(error))
            ) from None
    if script.registry is not None:
        target.images.registry = registry_with(script.registry)
    return rules


__all__ = [
    "FAULTS",
    "BehaviorEntry",
    "FaultEntry",
    "ForwardEntry",
    "Script",
    "ScriptError",
    "apply_script",
    "load_script",
    "read_script",
]
