"""What users copy from docs/fakekubeapi.md works, and the page has what there is."""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

from places import ROOT
from test_examples_run import run, run_pytest

from fakekubeapi import cli

PAGE = (ROOT / "docs/fakekubeapi.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_python_blocks_of_the_page_pass(tmp_path: Path) -> None:
    found = blocks("python")
    for block in found:
        name = re.match(r"# (test_\w+\.py)\n", block)
        assert name, f"a block without a file name: {block[:60]}"
        (tmp_path / name[1]).write_text(block)
    tests = sum(len(re.findall(r"^def test_", block, re.MULTILINE)) for block in found)
    scope = "asyncio_default_fixture_loop_scope=function"  # pytest-asyncio warns of its change
    assert f"{tests} passed" in run_pytest(tmp_path, "-o", scope, "-W", "error", ".")


def test_the_shell_block_of_the_page_runs(tmp_path: Path) -> None:
    script = next(block for block in blocks("sh") if "fakekubeapi serve" in block)
    if not shutil.which("kubectl"):
        script = re.sub(r"^kubectl.*\n", "", script, flags=re.M)
    if shutil.which("curl"):
        output = run(tmp_path, "sh", "-euc", script)
        assert '"gitVersion":"v1.36.0-fakekubeapi"' in output
        assert output.count("green") >= 2


def test_the_page_has_every_switch_of_the_command() -> None:
    commands = next(
        action
        for action in cli._parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    options = {
        option
        for action in commands.choices["serve"]._actions
        for option in action.option_strings
        if option.startswith("--") and option != "--help"
    }
    assert [option for option in sorted(options) if f"`{option}" not in PAGE] == []
