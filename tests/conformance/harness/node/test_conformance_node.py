"""A case that uses a facet without naming its feature among its needs."""

import re
from collections.abc import Awaitable, Callable

import pytest

from fakecri.deviceplugin import FakeDevicePlugin
from kubelet_conformance.harness.manifests import Exec, RunProbe, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.registry import Case, Feature, Level


async def creates_a_pod(node: Node) -> None:
    await node.api.create_pod(pod("web"))


async def looks_at_cgroups(node: Node) -> None:
    node.cgroups.exists("kubepods")


async def shuts_down(node: Node) -> None:
    node.machine.shut_down()


async def plugs_in(node: Node) -> None:
    await node.plugins.plug_in(FakeDevicePlugin("vendor.example/widget", ["w"]))


@pytest.mark.parametrize(
    ("body", "feature"),
    [
        (creates_a_pod, "API"),
        (looks_at_cgroups, "CGROUPS"),
        (shuts_down, "SHUTDOWN"),
        (plugs_in, "DEVICE_PLUGINS"),
    ],
)
def test_a_facet_without_its_feature_is_an_error_of_the_case(
    body: Callable[[Node], Awaitable[None]], feature: str
) -> None:
    case = Case(
        id="x", area="a", title="t", rules=("LIFE-001",), level=Level.MUST,
        needs=frozenset(), body=body,
    )  # fmt: skip
    result = run_virtual_case(case, Choice())
    assert result.outcome is Outcome.ERROR
    assert f"without needs=[Feature.{feature}]" in result.detail


async def waits_in_vain(node: Node) -> None:
    """A container that has not started, since its startup probe fails, and is probed again."""
    run = Exec(("/bin/sh", "-c", "cat /none"), 3, stderr="none\nsuch\n")
    probe = RunProbe(run=run, failure_threshold=100)
    await node.api.create_pod(pod("web", container("main", probes={"startup": probe})))
    await node.wait_running("web")
    await node.run_until(lambda: False, within_s=5, what="a start")


def test_the_text_of_a_failure_says_what_was_run_and_when_events_came_of_which_pod() -> None:
    """Commands with how they ended, events with time, pod and number, statuses with `started`."""
    case = Case(
        id="x", area="a", title="t", rules=("LIFE-001",), level=Level.MUST,
        needs=frozenset({Feature.API}), body=waits_in_vain,
    )  # fmt: skip
    text = run_virtual_case(case, Choice()).detail
    calls, _, rest = text.partition("last calls:")[2].partition("last events:")
    events, _, statuses = rest.partition("last statuses:")
    assert re.search(r"ExecSync web/main/0: /bin/sh -c cat /none -> exit code 3\n", calls), text
    (unhealthy,) = (line for line in events.splitlines() if "Unhealthy" in line)
    found = re.fullmatch(
        r" +(\d+\.\d{3}) Warning Unhealthy web: Startup probe failed: none such \((\d+) times\)",
        unhealthy,
    )
    assert found, text
    assert 1 < float(found[1]) < 8
    assert int(found[2]) > 1
    assert " web Running; main=running not started restarts=0\n" in statuses + "\n"
