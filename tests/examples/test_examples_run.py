"""What users copy works: the files of examples/ and the blocks of docs/fakecri/.

They run as a user's tests do: in an empty directory, without this project's configuration.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

EXAMPLES = ROOT / "examples"
INDEX = ROOT / "docs" / "fakecri.md"
PAGES = {page.stem: page.read_text() for page in sorted((ROOT / "docs" / "fakecri").glob("*.md"))}


def run(directory: Path, *command: str) -> str:
    """Output of a command that has to succeed, in `directory`, with our commands on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # Our own runs keep the tree off the path; a user's have their directory on it.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        command,
        cwd=directory,
        env={**env, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def run_pytest(directory: Path, *arguments: str) -> str:
    return run(directory, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def test_the_pytest_examples_pass(tmp_path: Path) -> None:
    names = [path.name for path in EXAMPLES.glob("*.py")]
    for name in names:
        shutil.copy(EXAMPLES / name, tmp_path)
    output = run_pytest(tmp_path, "-p", "no:asyncio", "-W", "error", ".")
    assert "rules that were never hit" not in output
    assert len([name for name in names if f"{name} ." in output]) == 3


def test_the_unittest_example_passes_without_pytest() -> None:
    assert "OK" in run(EXAMPLES, sys.executable, "-m", "unittest", "test_agent_unittest")


def test_the_shell_example_shows_the_container_s_end(tmp_path: Path) -> None:
    lines = run(tmp_path, "sh", str(EXAMPLES / "drive.sh")).splitlines()
    states = [line.split("shop/web#0  ")[1] for line in lines if "shop/web#0  " in line]
    assert states == ["RUNNING", "EXITED 3 Error"]
    assert list(tmp_path.iterdir()) == []


def test_every_page_answers_one_question_with_an_example_and_the_index_has_it() -> None:
    listed = dict(re.findall(r"^- \[([^]]+)\]\(fakecri/([\w-]+)\.md\)$", INDEX.read_text(), re.M))
    titles = {page.partition("\n")[0].removeprefix("# "): name for name, page in PAGES.items()}
    assert listed == titles
    assert [title for title in titles if not title.endswith("?")] == []
    examples = {
        name: [*blocks(page, "python"), *blocks(page, "sh")] for name, page in PAGES.items()
    }
    assert [name for name, found in examples.items() if not found] == ["script-file"]  # has YAML


def test_the_python_blocks_of_the_pages_pass(tmp_path: Path) -> None:
    found = [block for page in PAGES.values() for block in blocks(page, "python")]
    for block in found:
        name = re.match(r"# (test_\w+\.py)\n", block)
        assert name, f"a block without a file name: {block[:60]}"
        assert not (tmp_path / name[1]).exists(), f"two blocks are {name[1]}"
        (tmp_path / name[1]).write_text(block)
    tests = sum(len(re.findall(r"^(?:async )?def test_", block, re.MULTILINE)) for block in found)
    scope = "asyncio_default_fixture_loop_scope=function"  # pytest-asyncio warns of its change
    told = run_pytest(tmp_path, "-o", scope, "-o", "fakecri_strict=true", "-W", "error", ".")
    assert f"{tests} passed" in told


def run_session(directory: Path, page: str) -> str:
    """Run the shell block of a page, on machines without curl as far as it goes there."""
    (session,) = blocks(PAGES[page], "sh")
    script = session if shutil.which("curl") else re.sub("^curl.*\n", "", session, flags=re.M)
    return run(directory, "sh", "-euc", script)


def test_the_session_of_the_shell_runs(tmp_path: Path) -> None:
    output = run_session(tmp_path, "from-a-shell")
    assert "5: CreateContainer (anything) hangs (0 hits)" in output
    assert "fakecri serve: never hit: port 80 of pods (pod='shop')" in output


def test_the_requests_to_the_control_socket_are_answered(tmp_path: Path) -> None:
    output = run_session(tmp_path, "http-api")
    assert not shutil.which("curl") or "exits(code=1)" in output


def test_a_record_becomes_a_script(tmp_path: Path) -> None:
    run_session(tmp_path, "record")


def test_the_yaml_block_is_a_script(tmp_path: Path) -> None:
    from fakecri.scripts.script import load_script

    (tmp_path / "page.yaml").write_text(blocks(PAGES["script-file"], "yaml")[0])
    script = load_script(tmp_path / "page.yaml")
    assert (len(script.behaviors), len(script.faults), len(script.forwards)) == (3, 2, 1)


def test_the_example_scripts_are_scripts() -> None:
    from fakecri.scripts.script import load_script

    scripts = [load_script(path) for path in EXAMPLES.glob("*.yaml")]
    assert [len(script.registry or {}) for script in scripts] == [9]


def test_the_pages_have_every_word_and_route() -> None:
    from fakecri.control.routes import ROUTES
    from fakecri.rules.on import VERBS
    from fakecri.words.actions import Action
    from fakecri.words.behaviors import Behavior

    def rows(page: str) -> list[str]:
        return re.findall(r"^\| `(\w+): \{", PAGES[page], re.MULTILINE)

    assert rows("behaviours") == list(Behavior.known)
    assert rows("faults") == list(VERBS)
    assert rows("without-a-call") == list(Action.known)
    for route in ROUTES[1:]:
        assert route.path.replace("{number}", "{id}") in PAGES["http-api"]
    assert all(f"`{action}`" in PAGES["http-api"] for action in Action.known)


FIXTURES = """\
import pytest
from fakecri.server import GrpcUpstream
from kubecri.v1 import api_pb2 as cri

def test_unused(fakecri):
    fakecri.on("Version").fails()

def test_used(fakecri_server):
    pass

async def version_of(endpoint):
    async with GrpcUpstream(endpoint) as client:
        return (await client.call("Version", cri.VersionRequest(), timeout_s=5)).version

{mark}
async def test_socket(fakecri_socket):
    assert await version_of(fakecri_socket) == "0.1.0"
"""


@pytest.mark.parametrize(
    ("mark", "options"),
    [("@pytest.mark.asyncio", ()), ("", ("-o", "asyncio_mode=auto", "-n", "1"))],
)
def test_the_fixtures_work_without_our_configuration(
    tmp_path: Path, mark: str, options: tuple[str, ...]
) -> None:
    """Rules that were never hit are listed, also those from workers of xdist, and fail nothing."""
    (tmp_path / "test_theirs.py").write_text(FIXTURES.format(mark=mark))
    output = run_pytest(tmp_path, *options, "test_theirs.py")
    assert "3 passed" in output
    assert "fakecri: rules that were never hit" in output
    assert "test_theirs.py::test_unused: Version (anything) fails UNKNOWN" in output


def test_strictness_makes_unused_rules_errors(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(FIXTURES.format(mark="@pytest.mark.asyncio"))
    with pytest.raises(AssertionError, match="1 error") as failure:
        run_pytest(tmp_path, "-o", "fakecri_strict=true", "test_theirs.py")
    assert "rules that were never hit:" in str(failure.value)
