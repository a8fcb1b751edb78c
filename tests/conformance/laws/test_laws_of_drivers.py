"""Laws about volumes of storage drivers: each notices a history that is against it, and none one
that is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from kubecri.csi import api_pb2 as csi
from kubecri.v1 import api_pb2 as cri
from test_laws_of_worlds import Made

from fakecri.csi import CsiCall
from kubelet_conformance.laws import LAWS, History, Planned, ask, drivers
from kubelet_conformance.laws.history import Left

TARGET = "/root/pods/u/volumes/kubernetes.io~csi/pv/mount"
WAY = ("NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume")


def call(method: str, at_s: float, error: str = "", target: str = TARGET) -> CsiCall:
    request = getattr(csi, f"{method}Request")(volume_id="v1")
    if method in WAY[1:3]:
        request.target_path = target
    told = (error, "no") if error else None
    return CsiCall(method, request, at_s, at_s + 0.1, told)


def broken(
    calls: Sequence[CsiCall],
    made: Made | None = None,
    planned: Sequence[Planned] = (),
    **more: Any,
) -> list[str]:
    """The names of the laws about drivers that a history with these calls breaks."""
    history = History(
        start_s=0.0,
        end_s=700.0,
        calls=made.calls if made else (),
        driver_calls={"disks.example": calls},
        left=Left(asked=True),
        planned=planned,
        **more,
    )
    own = [each for each in LAWS if each.name in OWN]
    return [breach.law.name for breach in ask(own, history)]


OWN = {
    law.name
    for law in (
        drivers.unpublished_when_unused,
        drivers.unstaged_when_unpublished,
        drivers.volumes_are_ended,
    )
}
WELL = [call(method, 1.0 + 10 * number) for number, method in enumerate(WAY)]


def with_container(over_s: float | None) -> Made:
    """The pod `web`, whose container has the volume and runs from 12 s on."""
    made = Made()
    made.sandbox(2.0)
    made.runs("c1", 12.0)
    mount = cri.Mount(host_path=TARGET, container_path="/v")
    made.calls[-2].request.config.mounts.append(mount)
    if over_s is not None:
        made.ends("c1", over_s)
    return made


def test_a_volume_that_comes_and_goes_breaks_no_law_NODE_219() -> None:
    assert len(OWN) == 3
    assert broken(WELL) == []
    assert broken(WELL, with_container(20.0)) == []
    assert broken([]) == []


@pytest.mark.parametrize("over_s", [None, 30.0])
def test_a_container_that_runs_with_a_volume_that_is_unpublished(over_s: float | None) -> None:
    assert broken(WELL, with_container(over_s)) == ["unpublished-when-unused"]


def test_a_container_may_have_vanished_from_the_runtime() -> None:
    crash = [Planned(15.0, "outside")]
    assert broken(WELL, with_container(None), crash) == []
    assert broken(WELL, with_container(None), [Planned(25.0, "outside")]) != []


def test_a_volume_that_an_earlier_kubelet_has_published_is_no_matter_of_the_next() -> None:
    assert broken(WELL, with_container(None), [Planned(18.0, "start")]) == []


def test_a_container_of_another_volume_may_run() -> None:
    calls = [call(each.method, each.started_s, target=f"{TARGET}-other") for each in WELL]
    assert broken(calls, with_container(None)) == []


def test_a_volume_that_is_unstaged_first() -> None:
    calls = [*WELL[:2], call(WAY[3], 20.0), call(WAY[2], 30.0)]
    assert broken(calls) == ["unstaged-when-unpublished"]
    begun = call(WAY[2], 20.0)
    begun.ended_s = 40.0  # still under way at 31 s
    assert broken([*WELL[:2], begun, call(WAY[3], 31.0)]) == ["unstaged-when-unpublished"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_volume_that_stays(count: int) -> None:
    names = {1: 1, 2: 2, 3: 1}
    assert broken(WELL[:count]) == ["volumes-are-ended"] * names[count]
    assert broken(WELL[:count], silent_drivers=frozenset({"disks.example"})) == []


def test_an_end_that_failed_is_none_and_a_begin_that_failed_is_none() -> None:
    failing = call(WAY[3], 31.0, "INTERNAL")
    assert broken([*WELL[:3], failing]) == ["volumes-are-ended"]
    assert broken([*WELL[:3], failing, call(WAY[3], 35.0)]) == []
    assert broken([call(WAY[0], 1.0, "UNAVAILABLE")]) == []


def test_what_an_earlier_kubelet_has_staged_is_no_matter_of_the_next() -> None:
    ends = [Planned(35.0, "kill"), Planned(36.0, "start")]
    assert broken(WELL[:3], planned=ends) == []
    assert broken([*WELL[:3], call(WAY[0], 40.0)], planned=ends) == ["volumes-are-ended"]


def test_nothing_is_said_where_nobody_has_looked() -> None:
    history = History(start_s=0.0, end_s=1.0, driver_calls={"d": WELL[:2]})
    assert list(ask([drivers.volumes_are_ended], history)) == []
