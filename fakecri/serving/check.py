"""`fakecri check`: script files are read and applied to a fake that is not served.

Exit codes: 0 no mistake, 2 mistakes, each in a line of its own on stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from fakecri.fake import FakeCRI
from fakecri.proxy import RecordingProxy
from fakecri.scripts.script import ScriptError, apply_script, load_script, script_schema
from kubeobjects.strict.reader import Strict


def main(arguments: argparse.Namespace) -> int:
    """Look at the files of the command line; returns the exit code."""
    if arguments.schema:
        print(schema_text(), end="")
    elif not arguments.files:
        print("fakecri check: error: wanted a FILE or --schema", file=sys.stderr)
        return 2
    code = 0
    for file in arguments.files:
        try:
            lines = list(what_it_does(file, proxy=arguments.proxy))
        except ScriptError as error:
            print(error, file=sys.stderr)
            code = 2
            continue
        for line in lines if arguments.verbose else ():
            print(f"{file}: {line}")
    return code


def what_it_does(file: Path, *, proxy: bool = False) -> Iterator[str]:
    """A sentence for each section and each rule of a script. Raises ScriptError."""
    target: Any = FakeCRI() if proxy else FakeCRI(script=file)
    script = load_script(file, faults_only=proxy)
    if proxy:
        target = RecordingProxy(target)
        apply_script(script, target)
    for name, section in script.given().items():
        if isinstance(section, Strict):
            fields = msgspec.to_builtins(section).items()
            yield f"{name}: {', '.join(f'{key} {value}' for key, value in fields)}"
        elif name in ("images", "programs", "registry") and section:
            yield f"{name}: {', '.join(section)}"
    for rule in target.rules():
        yield str(rule.what)


def schema_text() -> str:
    """The JSON schema of script files as text."""
    return json.dumps(script_schema(), indent=1) + "\n"
