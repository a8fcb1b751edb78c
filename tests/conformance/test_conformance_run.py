"""How outcomes are told apart, and what a scope shows and leaves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from criapi.v1 import api_pb2 as cri

from conformance.harness.expect import expect
from conformance.harness.kubelets.base import KubeletDied, NodePaths
from conformance.harness.node import Node
from conformance.harness.parts import Parts
from conformance.harness.runs.case_run import not_to_run, run_case
from conformance.harness.runs.choice import Choice
from conformance.harness.runs.offered import FAKE_SOCKET, PROCESS
from conformance.harness.runs.results import Outcome, Result
from conformance.harness.runs.virtual import run_virtual_case, virtual_parts
from conformance.harness.runtimes.scope import LeftBehind, Scope
from conformance.registry import Case, Feature, Level
from conformance.summary import area_rows, reasons
from fakecri import FakeCRI
from fakecri.errors import unknown
from simtime import run_virtual


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


def test_a_clean_up_problem_is_a_warning_beside_the_outcome(tmp_path: Path) -> None:
    @asynccontextmanager
    async def parts_of(case: Case, paths: NodePaths) -> AsyncIterator[Parts]:
        async with virtual_parts(case, paths, 1) as parts:
            yield parts
        raise LeftBehind("sandbox 1: UNKNOWN: busy")

    result = run_virtual(lambda: run_case(case_of(passes), parts_of, tmp_path))
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


def test_the_summary_counts_by_area() -> None:
    results = [
        Result(case_of(passes), Outcome.PASSED, case_s=100.0, real_s=0.5),
        Result(case_of(passes, area="b"), Outcome.SKIPPED, "needs x"),
        Result(case_of(passes, area="b"), Outcome.ERROR, real_s=1.0),
    ]
    assert area_rows(results) == [
        ["a", "1", "-", "-", "-", "-", "100.0 s", "0.5 s"],
        ["b", "-", "-", "1", "1", "-", "0.0 s", "1.0 s"],
        ["all", "1", "-", "1", "1", "-", "100.0 s", "1.5 s"],
    ]
    assert reasons(results) == ["skipped 1: needs x"]


def sandbox_config(name: str) -> cri.PodSandboxConfig:
    metadata = cri.PodSandboxMetadata(name=name, uid=name, namespace="default")
    return cri.PodSandboxConfig(metadata=metadata)


async def run_sandbox(scope: Scope, name: str) -> str:
    request = cri.RunPodSandboxRequest(config=sandbox_config(name))
    answer: Any = await scope.call("RunPodSandbox", request)
    return str(answer.pod_sandbox_id)


async def listed(target: Any) -> list[str]:
    answer: Any = await target.call("ListPodSandbox", cri.ListPodSandboxRequest())
    return [item.metadata.name for item in answer.items]


def test_scopes_of_one_runtime_do_not_see_each_other() -> None:
    async def main() -> None:
        shared = FakeCRI()
        one, two = Scope(shared), Scope(shared)
        await run_sandbox(one, "a")
        await run_sandbox(two, "b")
        assert (await listed(one), await listed(two)) == (["a"], ["b"])
        await one.call("RemoveImage", cri.RemoveImageRequest())
        images: Any = await shared.call("ListImages", cri.ListImagesRequest())
        assert len(images.images) == 3
        await one.clean_up()
        assert await listed(shared) == ["b"]

    run_virtual(main)


def test_scopes_of_one_runtime_do_not_hear_of_each_other() -> None:
    async def main() -> None:
        shared = FakeCRI()
        one, two = Scope(shared), Scope(shared)
        heard: list[str] = []

        async def listen() -> None:
            async for event in one.stream("GetContainerEvents", cri.GetEventsRequest()):
                heard.append(event.container_id)  # type: ignore[attr-defined]

        listening = asyncio.create_task(listen())
        mine = await run_sandbox(one, "a")
        await run_sandbox(two, "b")
        await one.clean_up()
        await two.clean_up()
        await asyncio.sleep(1)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        assert set(heard) == {mine}

    run_virtual(main)


@pytest.mark.parametrize(("failures", "left"), [(3, False), (1000, True)])
def test_clean_up_is_patient_and_then_says_what_stays(failures: int, left: bool) -> None:
    class Busy:
        """A runtime that cannot remove for a while."""

        def __init__(self) -> None:
            self.cri = FakeCRI()
            self.failures = failures

        async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
            if method == "RemovePodSandbox" and self.failures:
                self.failures -= 1
                raise unknown("cannot delete running task")
            return await self.cri.call(method, request, timeout_s=timeout_s)

    async def main() -> str:
        scope = Scope(Busy())
        await run_sandbox(scope, "a")
        try:
            await scope.clean_up()
        except LeftBehind as problem:
            return str(problem)
        return ""

    said = run_virtual(main)
    assert ("cannot delete running task" in said) is left
