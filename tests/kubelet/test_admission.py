"""Admission: operating system and room on the node; the first refusal wins."""

from __future__ import annotations

from typing import Any

import pytest

from refkubelet.admission.handlers import AdmitHandler, PodAdmitAttributes, Rejection, admit
from refkubelet.admission.operating_system import operating_system
from refkubelet.admission.resources import room_for
from refkubelet.model.objects import Pod, decode_pod
from refkubelet.model.quantity import NANO

GI = 1024**3
NODE = {
    "pods": 3 * NANO,
    "cpu": 2 * NANO,
    "memory": 4 * GI * NANO,
    "ephemeral-storage": 10 * GI * NANO,
}


def pod(**requests: str) -> Pod:
    named = {name.replace("_", "-"): amount for name, amount in requests.items()}
    container: dict[str, Any] = {"name": "main", "resources": {"requests": named}}
    return decode_pod({"metadata": {"name": "p"}, "spec": {"containers": [container]}})


@pytest.mark.parametrize(
    ("wanted", "active", "reason", "numbers"),
    [
        (pod(), [], None, ""),
        (pod(), [pod(), pod(), pod()], "OutOfpods", "pods, requested: 1, used: 3, capacity: 3"),
        (pod(cpu="64"), [], "OutOfcpu", "cpu, requested: 64000, used: 0, capacity: 2000"),
        (pod(cpu="1500m"), [pod(cpu="500m")], None, ""),
        (
            pod(cpu="1501m"),
            [pod(cpu="500m")],
            "OutOfcpu",
            "cpu, requested: 1501, used: 500, capacity: 2000",
        ),
        (
            pod(memory="5Gi"),
            [],
            "OutOfmemory",
            f"memory, requested: {5 * GI}, used: 0, capacity: {4 * GI}",
        ),
        (
            pod(ephemeral_storage="11Gi"),
            [],
            "OutOfephemeral-storage",
            f"ephemeral-storage, requested: {11 * GI}, used: 0, capacity: {10 * GI}",
        ),
        (pod(**{"example.com/thing": "9"}), [], None, ""),
    ],
)
def test_room_LIFE_225(wanted: Pod, active: list[Pod], reason: str | None, numbers: str) -> None:
    rejection = room_for(NODE)(PodAdmitAttributes(wanted, tuple(active)))
    if reason is None:
        assert rejection is None
    else:
        message = f"Node didn't have enough resource: {numbers}"
        assert rejection == Rejection(reason, message)


def test_a_pod_without_requests_runs_on_a_full_node_LIFE_225() -> None:
    assert room_for(NODE)(PodAdmitAttributes(pod(), (pod(cpu="2"),))) is None


@pytest.mark.parametrize(
    ("name", "reason"), [(None, None), ("linux", None), ("windows", "PodOSNotSupported")]
)
def test_operating_system_LIFE_224(name: str | None, reason: str | None) -> None:
    spec: dict[str, Any] = {"containers": []} | ({"os": {"name": name}} if name else {})
    rejection = operating_system(
        PodAdmitAttributes(decode_pod({"metadata": {"name": "p"}, "spec": spec}))
    )
    assert (rejection.reason if rejection else None) == reason


async def test_the_first_refusal_wins_and_nobody_is_asked_after_it() -> None:
    asked: list[str] = []

    def handler(name: str, answer: Rejection | None) -> AdmitHandler:
        def ask(attributes: PodAdmitAttributes) -> Rejection | None:
            asked.append(name)
            return answer

        return ask

    async def slow(attributes: PodAdmitAttributes) -> Rejection | None:
        asked.append("slow")
        return None

    refused = Rejection("A", "a")
    handlers = [slow, handler("one", None), handler("two", refused), handler("three", None)]
    assert await admit(PodAdmitAttributes(pod()), handlers) is refused
    assert asked == ["slow", "one", "two"]
