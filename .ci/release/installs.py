"""Tries the built files as new users do: each extra in a fresh environment, from an empty
directory, with the first things that one would type."""

from __future__ import annotations

import asyncio
import os
import shlex
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from programs import Failed, python, run, say

AT_ONCE: Final = 2
"""Environments that are made and tried side by side."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An install, and commands that must work in it."""

    extras: str
    """As in `pip install refkubelet[...]`; empty: a plain install."""
    commands: tuple[str, ...]
    exits: int = 0
    """With what the last of them ends."""
    from_sdist: bool = False
    in_tree: bool = False
    """They run in the unpacked sdist, not in an empty directory."""

    @property
    def name(self) -> str:
        return f"{'sdist' if self.from_sdist else 'wheel'}[{self.extras}]"


IMPORTS: Final = (
    "python -c 'import simclock.timewarp, kubeobjects, fakecri, fakekubeapi, kubecri.v1'"
)
REFLECTED: Final = """python -c '
import fakecri, grpc
import grpc_reflection.v1alpha.proto_reflection_descriptor_database as reflection
with fakecri.serve() as fake, grpc.insecure_channel(fake.endpoint) as channel:
    assert "runtime.v1.RuntimeService" in (
        reflection.ProtoReflectionDescriptorDatabase(channel).get_services()
    )
'"""
IN_VIRTUAL_TIME: Final = """cat >test_hours.py <<.
import asyncio, pytest, time
@pytest.mark.virtual_time
async def test_hours(fakecri):
    began = time.time()
    await asyncio.sleep(7200)
    assert time.time() - began == 7200
.
"""
PAGES: Final = ("test_first_blocks.py", "test_tutorials.py", "test_readme.py")
TRIALS: Final = (
    Trial(
        "test",  # the slowest first
        ("pytest -q -n 2 " + " ".join(f"tests/project/{name}" for name in PAGES),),
        in_tree=True,
    ),
    Trial(
        "conformance",
        (
            "kubelet-conformance explain LIFE-143",
            "kubelet-conformance run -q --id stop-minimum",
            "kubelet-conformance run -q --id 117373",
        ),
    ),
    Trial("", (IMPORTS, "fakecri --help", "fakekubeapi --help", "refkubelet run"), exits=2),
    Trial("", (IMPORTS, "fakecri --version"), from_sdist=True),
    Trial("kubelet", ("refkubelet --version", "refkubelet run --help")),
    Trial("nodes", ("kubenodes --help", "pytest --markers")),
    Trial("kubelet,otel", ("python -c 'import refkubelet.telemetry.otel'",)),
    Trial(
        "conformance,containers",
        ("python -c 'import testcontainers, kubelet_conformance.harness.containerd.start'",),
    ),
    Trial("fuse", ("python -c 'import fakecri.cgroupfs.outside.mount'", "fakecri cgroupfs --help")),
    Trial("logind", ("python -c 'import dbus_fast, fakecri.machine.logind_bus'",)),
    Trial("reflection", (REFLECTED,)),
    Trial("cluster", ("kubelet-conformance search --dask nowhere",), exits=2),
    Trial("pytest", (IN_VIRTUAL_TIME, "pytest -q -p no:cacheprovider test_hours.py")),
)
"""Every extra of pyproject.toml is in one of them: a test looks."""


async def try_all(wheel: Path, sdist: Path, tree: Path, place: Path) -> list[str]:
    """What does not work. `tree`: the unpacked sdist; `place`: an empty directory."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def guarded(number: int, trial: Trial) -> str | None:
        async with gate:
            file = sdist if trial.from_sdist else wheel
            problem = await tried(trial, file, tree, place / str(number))
            await run(f"{trial.name}: remove", ["rm", "-rf", place / str(number)], place)
            return problem

    outcomes = await asyncio.gather(*(guarded(*one) for one in enumerate(TRIALS)))
    return [problem for problem in outcomes if problem is not None]


async def tried(trial: Trial, file: Path, tree: Path, place: Path) -> str | None:
    """Install `file` and run the commands; what went wrong, or None."""
    empty = place / "empty"
    empty.mkdir(parents=True)
    try:
        programs = await install(
            trial.name, f"refkubelet[{trial.extras}] @ {file.absolute().as_uri()}", place / "venv"
        )
        path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        for command in trial.commands:
            code = trial.exits if command == trial.commands[-1] else 0
            await run(
                *(f"{trial.name}: {shlex.split(command)[0]}", ["bash", "-c", command]),
                *(tree if trial.in_tree else empty,),
                code=code,
                environment=path,
            )
    except Failed as failed:
        return str(failed)
    say(f"{trial.name} installs and works")
    return None


async def install(step: str, requirement: str, place: Path) -> Path:
    """A new environment at `place` with that; returns the directory of its commands."""
    venv.create(place, symlinks=True)
    pip = python("-m", "pip", "--python", place / "bin/python", "--disable-pip-version-check", "-q")
    await run(f"{step}: pip install", [*pip, "install", "--no-compile", requirement], place)
    await run(f"{step}: pip check", [*pip, "check"], place)
    return place / "bin"


async def try_action(wheel: Path, tree: Path, place: Path) -> list[str]:
    """Carry out the steps of `action.yml` that are scripts, as a runner does, with one case."""
    action = yaml.safe_load((tree / "action.yml").read_text())
    given = {name: str(one["default"]) for name, one in action["inputs"].items()}
    given |= {"from": str(wheel.absolute()), "options": "--id stop-minimum"}
    place.mkdir()
    venv.create(place / "venv", with_pip=True)
    outside = {
        "PATH": f"{place / 'venv/bin'}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(place / "summary.md"),
    }
    for step in action["runs"]["steps"]:
        if "run" in step:
            texts = {name: filled_in(text, given) for name, text in step.get("env", {}).items()}
            words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            try:
                name = f"action: {step['name']}"
                await run(name, words, place, environment={**outside, **texts})
            except Failed as failed:
                return [str(failed)]
    wanted = ("summary.md", "conformance.json", "conformance.xml")
    missing = [f"action: it wrote no {name}" for name in wanted if not (place / name).exists()]
    await run("action: remove", ["rm", "-rf", place / "venv"], place)
    if not missing:
        say("the action's steps work")
    return missing


def filled_in(text: str, given: dict[str, str]) -> str:
    """An expression of a workflow with its inputs: the first alternative that is not empty."""
    if not text.startswith("${{"):
        return text
    names = text.strip("${ }").split(" || ")
    return next((given[n.removeprefix("inputs.")] for n in names if n.startswith("inputs.")), "")


async def try_image(tree: Path, place: Path) -> tuple[list[str], list[str]]:
    """Build the image and let it say its version. Returns problems, and what was left out."""
    base = os.environ.get("REFKUBELET_IMAGE_BASE", "python:3.11-slim-bookworm")
    try:
        await run("image: docker", ["docker", "info"], place)
    except (Failed, FileNotFoundError):
        return [], ["the image: no Docker here"]
    try:
        await run("image: its base", ["docker", "pull", "--quiet", base], place)
    except Failed:
        try:
            await run("image: its base", ["docker", "image", "inspect", base], place)
        except Failed:
            left = f"the image: {base} is not to be had (REFKUBELET_IMAGE_BASE names another)"
            return [], [left]
    tag = "refkubelet-release-trial"
    try:
        await run("image: build", ["bash", tree / "image/build", tag, base], tree)
        await run("image: run", ["docker", "run", "--rm", tag, "--version"], place)
        await run("image: remove", ["docker", "image", "rm", tag], place)
    except Failed as failed:
        return [str(failed)], []
    say("the image builds and runs")
    return [], []
