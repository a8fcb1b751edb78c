"""Which programs a container has: the fake's, the test's, and those that its own words name."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from runtime_calls import run_exec, started

from fakecri import FakeCRI, ready_after, replies
from fakecri.scripts.script import apply_script, load_script


async def ended(fake: FakeCRI, *command: str, main: str = "/server") -> int | str:
    """The exit code of a command in a container that runs `main`; what fails if it is not there."""
    container = await started(fake, command=[main])
    try:
        return int((await run_exec(fake, container, *command)).exit_code)
    except grpc.RpcError as error:
        return str(error.details()).rpartition("exec: ")[2]


MISSING = '"pg_isready": executable file not found in $PATH: unknown'


@pytest.mark.virtual_time
async def test_a_program_that_nobody_made_is_not_there_CRI_111() -> None:
    assert await ended(FakeCRI(), "pg_isready") == MISSING


@pytest.mark.virtual_time
@pytest.mark.parametrize("programs", [["pg_isready"], ["*"], ["x", "*"]])
async def test_images_have_the_programs_they_are_said_to_have(programs: list[str]) -> None:
    assert await ended(FakeCRI(programs=programs), "pg_isready") == 0


@pytest.mark.virtual_time
async def test_a_container_has_what_it_was_started_with() -> None:
    assert await ended(FakeCRI(), "pg_isready", "-U", "x", main="pg_isready") == 0


@pytest.mark.virtual_time
async def test_a_program_that_a_behaviour_answers_for_is_there() -> None:
    fake = FakeCRI()
    fake.behaves(replies("pg_isready -U me", 3))
    assert await ended(fake, "pg_isready", "-U", "you") == 0
    fake = FakeCRI()
    fake.behaves(replies("other", 3))
    assert await ended(fake, "pg_isready") == MISSING
    fake = FakeCRI()
    fake.behaves(ready_after(0))
    assert await ended(fake, "pg_isready") == 0


@pytest.mark.virtual_time
async def test_a_script_names_programs(tmp_path: Path) -> None:
    file = tmp_path / "script.yaml"
    file.write_text("programs: [pg_isready]\n")

    fake = FakeCRI()
    apply_script(load_script(file), fake)
    assert await ended(fake, "pg_isready") == 0


def test_programs_are_a_list() -> None:
    with pytest.raises(ValueError, match="programs: wanted a list of names"):
        FakeCRI(programs="pg_isready")
