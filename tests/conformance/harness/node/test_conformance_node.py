"""A case that uses a facet without naming its feature among its needs."""

from collections.abc import Awaitable, Callable

import pytest

from fakecri.deviceplugin import FakeDevicePlugin
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.registry import Case, Level


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
