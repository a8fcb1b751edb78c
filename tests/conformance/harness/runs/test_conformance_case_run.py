"""How the outcomes of cases are told apart."""

import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect
from kubelet_conformance.harness.kubelets.base import KubeletDied, NodePaths
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.runs.case_run import Outcome, Result, not_to_run, run_case
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.offered import FAKE_SOCKET, PROCESS
from kubelet_conformance.harness.runs.real import run_real_cases
from kubelet_conformance.harness.runs.virtual import run_virtual_case, virtual_parts
from kubelet_conformance.harness.runtimes.scope import LeftBehind
from kubelet_conformance.pytest_plugin import pytest_sessionfinish
from kubelet_conformance.registry import Case, Feature, Level, Selection, load_cases
from kubelet_conformance.results_lines import case_line
from kubelet_conformance.session.run import RUN, Run
from kubeobjects.structs import replace
from refkubelet.api.lightkube_client import LightkubeApiClient


def case_of(body: Any, **changes: Any) -> Case:
    fields: dict[str, Any] = {
        "id": "x", "area": "a", "title": "t", "rules": ("LIFE-001",), "level": Level.MUST,
        "needs": frozenset(), "body": body,
    }  # fmt: skip
    return Case(**{**fields, **changes})


async def passes(node: Node) -> None:
    await node.run_for(1)


async def fails(node: Node) -> None:
    expect(node, False, "a miracle", "nothing")


async def dies(node: Node) -> None:
    raise KubeletDied("the kubelet ended with exit code 1")


async def is_broken(node: Node) -> None:
    raise ZeroDivisionError


async def never_reached(node: Node) -> None:
    node.calls("RunPodSandbox")[0]


@pytest.mark.parametrize(
    ("body", "outcome", "text"),
    [
        (passes, Outcome.PASSED, ""),
        (fails, Outcome.FAILED, "expected: a miracle\nseen:     nothing"),
        (dies, Outcome.FAILED, "exit code 1"),
        (never_reached, Outcome.FAILED, "at least 1 of RunPodSandbox"),
        (is_broken, Outcome.ERROR, "ZeroDivisionError"),
    ],
)
def test_outcomes_are_told_apart(body: Any, outcome: Outcome, text: str) -> None:
    result = run_virtual_case(case_of(body), Choice())
    assert (result.outcome, text in result.detail) == (outcome, True)


async def refuses(node: Node) -> None:
    node.write_manifest("web.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: Web_1}\n")
    await node.run_for(30)
    expect(node, False, "a pod", "none")


def test_what_a_case_reads_and_the_kubelet_has_not_sent_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error of the harness would say nothing of the kubelet."""
    delete = LightkubeApiClient.delete

    async def without_uid(self: Any, *words: Any, uid: object = None, **further: Any) -> None:
        await delete(self, *words, **further)

    monkeypatch.setattr(LightkubeApiClient, "delete", without_uid)
    case = next(case for case in load_cases() if case.id == "mirror-edit")
    result = run_virtual_case(case, Choice())
    assert result.outcome is Outcome.FAILED
    assert 'the case reads with fields = (deleted.body.get("gracePeriod' in result.detail
    assert "it is not there (KeyError: 'preconditions')" in result.detail


def test_a_failed_case_has_the_log_and_says_which_file_was_refused() -> None:
    handlers = list(logging.getLogger("refkubelet").handlers)
    result = run_virtual_case(case_of(refuses), Choice())
    seen = result.detail.partition("\nseen:     ")[2].partition("\nat: ")[0]
    assert seen.startswith("none\n          static pod file web.yaml was refused: ")
    assert "Web_1" in seen
    assert any("$CASE/manifests/web.yaml" in line for line in result.log)
    assert case_line(result, Choice()).log == result.log
    assert "; static pod file web.yaml was refused: " in case_line(result, Choice()).reason
    assert run_virtual_case(case_of(passes), Choice()).log == ()
    assert logging.getLogger("refkubelet").handlers == handlers


def test_the_log_of_a_failed_case_is_part_of_the_output(tmp_path: Path) -> None:
    (tmp_path / "case_refused.py").write_text(REFUSED)
    command = ["run", str(tmp_path / "case_refused.py")]
    program = "import sys; from kubelet_conformance.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    log = done.stdout.partition("last log lines of the kubelet:\n")[2].partition("repeat: ")[0]
    assert "static pod file $CASE/manifests/web.yaml: " in log


REFUSED = """\
from kubelet_conformance import conformance
from kubelet_conformance.harness.node import Node


@conformance(id="my-refused", rules=["SRC-001"])
async def a_pod_is_refused(node: Node) -> None:
    \"\"\"A pod is refused.\"\"\"
    node.write_manifest("web.yaml", "kind: Pod")
    await node.run_until(lambda: node.pod("web"), within_s=10, what="the pod")
"""


@pytest.mark.virtual_time
async def test_a_clean_up_problem_is_a_warning_beside_the_outcome(tmp_path: Path) -> None:
    @asynccontextmanager
    async def parts_of(case: Case, paths: NodePaths) -> AsyncIterator[Parts]:
        async with virtual_parts(case, paths, 1) as parts:
            yield parts
        raise LeftBehind("sandbox 1: UNKNOWN: busy")

    result = await run_case(case_of(passes), parts_of, tmp_path)
    assert result.outcome is Outcome.PASSED
    assert result.warning == "clean-up: sandbox 1: UNKNOWN: busy"


def test_skip_and_disabled_are_told_apart() -> None:
    needy = case_of(passes, needs=frozenset({Feature.NODE_RESOURCES}))
    real = Choice(kubelet=PROCESS, runtime=FAKE_SOCKET)
    skipped = not_to_run(needy, real, ())
    assert skipped is not None
    assert skipped.outcome is Outcome.SKIPPED
    assert skipped.detail == "needs a node whose memory and disks can be set"
    disabled = not_to_run(needy, real, ("x",))
    assert disabled is not None
    assert disabled.outcome is Outcome.DISABLED
    assert not_to_run(case_of(passes), Choice(), ()) is None


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("Kubernetes v1.33.9", "needs kubelet 1.34 or newer, this one is 1.33"),
        ("Kubernetes v1.34.0-rc.1", ""),
        ("a fork without a number", ""),
    ],
)
def test_an_older_kubelet_skips_what_came_later(tmp_path: Path, told: str, reason: str) -> None:
    kubelet = tmp_path / "kubelet"
    kubelet.write_text(f"#!/bin/sh\necho {told}\n")
    kubelet.chmod(0o755)
    result = not_to_run(case_of(passes, since=(1, 34)), Choice(kubelet=str(kubelet)), ())
    assert (result.detail if result else "") == reason


def loaded(*loads: str) -> Any:
    """Parts on a machine that is overloaded as `loads` say, one word for each failure."""
    words = iter(loads)

    @asynccontextmanager
    async def parts_of(case: Case, paths: NodePaths) -> AsyncIterator[Parts]:
        async with virtual_parts(case, paths, 1) as parts:
            parts.pace = replace(parts.pace, overload=lambda: next(words))
            yield parts

    return parts_of


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("body", "outcome"),
    [(passes, Outcome.PASSED), (fails, Outcome.INCONCLUSIVE), (is_broken, Outcome.ERROR)],
)
async def test_on_an_overloaded_machine_a_failure_says_nothing(
    tmp_path: Path, body: Any, outcome: Outcome
) -> None:
    result = await run_case(case_of(body), loaded("load 50.0 on 2 CPUs"), tmp_path)
    assert result.outcome is outcome
    if outcome is Outcome.INCONCLUSIVE:
        assert result.detail.startswith(
            "the machine was overloaded: load 50.0 on 2 CPUs\nexpected: a miracle"
        )


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("later", "outcome"), [("", Outcome.FAILED), ("load 9.0 on 2 CPUs", Outcome.INCONCLUSIVE)]
)
async def test_an_inconclusive_case_is_run_once_more_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: str, outcome: Outcome
) -> None:
    monkeypatch.setattr(limits, "overload_now", lambda: "")
    parts = loaded("load 50.0 on 2 CPUs", later)
    environment: Any = SimpleNamespace(shared=tmp_path, parts=parts, choice=Choice())
    cases = [case_of(fails, id="bad"), case_of(passes, id="good")]
    results = [result async for result in run_real_cases(cases, environment, jobs=2)]
    assert [(r.case.id, r.outcome) for r in results] == [("good", Outcome.PASSED), ("bad", outcome)]


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([Outcome.PASSED, Outcome.SKIPPED], 0),
        ([Outcome.PASSED, Outcome.INCONCLUSIVE], 3),
    ],
)
def test_a_run_that_could_not_judge_has_not_passed(outcomes: list[Outcome], code: int) -> None:
    run = Run([Choice()], Selection())
    for outcome in outcomes:
        run.add(Result(case_of(passes), outcome))
    session: Any = SimpleNamespace(exitstatus=0, config=SimpleNamespace(stash={RUN: run}))
    pytest_sessionfinish(session)
    assert session.exitstatus == code
    session.exitstatus = 1
    pytest_sessionfinish(session)
    assert session.exitstatus == 1
