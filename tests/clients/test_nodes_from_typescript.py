"""The example in TypeScript is compiled and passes: a test in another language gets its nodes by
the command. `.ci/run` installs what it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from places import ROOT
from test_other_languages import NODE_MODULES, needs

EXAMPLE = ROOT / "examples/pods_run.test.ts"
COMPILER = Path(NODE_MODULES or "/nowhere") / "typescript"


@needs(["node"], COMPILER, "the npm module typescript (REFKUBELET_NODE_MODULES)")
def test_the_example_in_typescript_passes(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    types = ["--typeRoots", str(COMPILER.parent / "@types"), "--types", "node"]
    target = ["--target", "es2022", "--module", "commonjs", "--strict", "--outDir", str(tmp_path)]
    for command in (
        ["node", str(COMPILER / "bin/tsc"), *target, *types, str(EXAMPLE)],
        ["node", "--test", str(tmp_path / "pods_run.test.js")],
    ):
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, cwd=tmp_path, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 2" in done.stdout
