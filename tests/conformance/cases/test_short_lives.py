"""What a case waits for stays long enough to be seen: a kubelet looks once a second."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kubelet_conformance

RELISTS_S = 3
"""A container that lives for less may have ended when a kubelet that is late looks for it."""

SHORT = """
async def seen_by_chance(node):
    await node.apply_static(pod("job", container("main", exits(0, after_s=1)), restartPolicy=""))
    await node.wait_running("job")

async def seen(node):
    main = container("main", exits(0, after_s=3))
    await node.apply_static(pod("job", main, container("b", exits(1))))
    await node.wait_running("job")

async def other(node):
    await node.apply_static(pod("job", container("main", exits(0))))
    await node.apply_static(pod("web", container("main"), init=[container("a", exits(0))]))
    await node.wait_running("web")

async def named(node):
    await node.apply_static(pod("job", container("main"), container("b", exits(1, after_s=0.5))))
    await node.wait_running("job", "main", "b")
"""


def calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
            if called == name or (isinstance(called, ast.Name) and called.id == name):
                yield node


def literals(arguments: list[ast.expr]) -> list[object]:
    return [arg.value for arg in arguments if isinstance(arg, ast.Constant)]


def short_lived(pod: ast.Call) -> Iterator[str]:
    """The containers of a `pod(...)` that end after less than RELISTS_S seconds."""
    for container in calls(pod, "container"):
        name, *work = container.args
        for end in work:
            if isinstance(end, ast.Call) and list(calls(end, "exits"))[:1] == [end]:
                after = [k.value for k in end.keywords if k.arg == "after_s"]
                lives_s = literals(after)[0] if after and literals(after) else 0
                if not after or (isinstance(lives_s, int | float) and lives_s < RELISTS_S):
                    yield from map(str, literals([name]))


def waited_for_in_vain(text: str) -> list[str]:
    """The cases of a module that wait until a container runs which lives too short for that."""
    found = []
    for case in ast.parse(text).body:
        if not isinstance(case, ast.AsyncFunctionDef):
            continue
        short = {
            (pod.args[0].value, name)
            for pod in calls(case, "pod")
            if pod.args and isinstance(pod.args[0], ast.Constant)
            for name in short_lived(pod)
        }
        for wait in calls(case, "wait_running"):
            pod, *names = literals(wait.args) or [None]
            if any((pod, name) in short for name in names or ["main"]):
                found.append(case.name)
    return found


def test_the_check_finds_what_it_is_for() -> None:
    assert waited_for_in_vain(SHORT) == ["seen_by_chance", "named"]


CASES = Path(kubelet_conformance.__file__).parent / "cases"


@pytest.mark.parametrize("area", sorted(p.name for p in CASES.iterdir() if p.is_dir()))
def test_no_case_waits_for_a_container_that_lives_as_long_as_a_relist(area: str) -> None:
    files = sorted((CASES / area).rglob("*.py"))
    assert [name for file in files for name in waited_for_in_vain(file.read_text())] == []
