"""Unchanged list answers are not converted again, and changed ones always are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri

from refkubelet.cri import convert
from refkubelet.cri.listings import SLICE, Listings, container_list_request
from refkubelet.cri.records import ListedContainer, RuntimePod
from refkubelet.kuberuntime.reading.pod_reader import group_pods

pytestmark = pytest.mark.virtual_time


def containers() -> Listings[ListedContainer]:
    return Listings(cri.ListContainersResponse, "containers", convert.listed_container)


def message(*states: int) -> cri.ListContainersResponse:
    rows = [
        cri.Container(id=f"c{i}", state=state, labels={"io.kubernetes.pod.uid": "u"})
        for i, state in enumerate(states)
    ]
    return cri.ListContainersResponse(containers=rows)


def answer(*states: int) -> bytes:
    return message(*states).SerializeToString()


async def test_the_same_answer_gives_the_same_tuple() -> None:
    lists = containers()
    first = await lists.records(answer(cri.CONTAINER_RUNNING), alive_only=False)
    assert await lists.records(answer(cri.CONTAINER_RUNNING), alive_only=False) is first


async def test_a_changed_state_gives_a_new_tuple() -> None:
    lists = containers()
    before = await lists.records(answer(cri.CONTAINER_RUNNING), alive_only=False)
    after = await lists.records(answer(cri.CONTAINER_EXITED), alive_only=False)
    assert [c.state.value for c in (*before, *after)] == ["running", "exited"]


async def test_lists_with_another_filter_are_kept_apart() -> None:
    lists = containers()
    everything = await lists.records(answer(cri.CONTAINER_RUNNING), alive_only=False)
    await lists.records(answer(), alive_only=True)
    assert await lists.records(answer(cri.CONTAINER_RUNNING), alive_only=False) is everything


def test_requests_carry_the_filter_CRI_082() -> None:
    request = container_list_request("u", True)
    assert request.filter.label_selector == {"io.kubernetes.pod.uid": "u"}
    assert request.filter.state.state == cri.CONTAINER_RUNNING
    assert container_list_request("", False).filter == cri.ContainerFilter()


async def test_rows_and_pods_that_did_not_change_are_the_same_objects() -> None:
    lists = containers()

    async def grouped(answer: bytes, known: dict[str, RuntimePod]) -> list[Any]:
        records = await lists.records(answer, alive_only=False)
        return [*records, *group_pods((), records, known)]

    def listed(second: int) -> bytes:
        made = message(cri.CONTAINER_RUNNING, second)
        made.containers[1].labels["io.kubernetes.pod.uid"] = "other"
        return made.SerializeToString()

    a, b, pod_b, pod_a = await grouped(listed(cri.CONTAINER_RUNNING), {})
    known = {"other": pod_b, "u": pod_a}
    same_a, new_b, new_pod_b, same_pod_a = await grouped(listed(cri.CONTAINER_EXITED), known)
    assert (same_a is a, same_pod_a is pod_a) == (True, True)
    assert (new_b == b, new_pod_b == pod_b) == (False, False)
    assert new_pod_b.containers == (new_b,)


async def test_others_have_their_turn_while_a_long_list_is_read() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    long = answer(*[cri.CONTAINER_EXITED] * (10 * SLICE))
    assert len(await containers().records(long, alive_only=False)) == 10 * SLICE
    beside.cancel()
    assert turns >= 10
