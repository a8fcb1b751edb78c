"""What is complained about in the resources of containers and pods (SRC-037)."""

from __future__ import annotations

from typing import Any

import pytest
from manifest_reading import container_problems, problems

HUGE = "hugepages-2Mi"
NEGATIVE = "must be greater than or equal to 0"
STANDARD = "must be a standard resource for containers"
MAIN = "resources: Forbidden: HugePages require cpu or memory"
LABEL = "must be a lowercase RFC 1123 label: a-z, 0-9 and '-', at most 63 characters"


def of_container(**resources: Any) -> list[str]:
    return container_problems(resources=resources)


def of_pod(**resources: Any) -> list[str]:
    return [problem.removeprefix("spec.") for problem in problems({"resources": resources})]


def test_amounts_are_not_negative_and_requests_not_above_limits_SRC_037() -> None:
    for found in (of_container, of_pod):
        assert found(limits={"cpu": "1", "memory": "0"}, requests={"cpu": "1000m"}) == []
        assert found(limits={"cpu": "-1"}, requests={"memory": "-1m"}) == [
            f'resources.limits[cpu]: Invalid value: "-1": {NEGATIVE}',
            f'resources.requests[memory]: Invalid value: "-1m": {NEGATIVE}',
        ]
        assert found(limits={"cpu": "1", "memory": "1"}, requests={"cpu": "1001m"}) == [
            'resources.requests: Invalid value: "1001m": must be less than or equal to cpu limit'
        ]


def test_what_is_no_amount_is_told_once_SRC_037() -> None:
    found = of_container(limits={"cpu": "much", "example.com/a": "x"}, requests={"memory": "-1"})
    assert [problem.partition(": ")[0] for problem in found] == [
        "resources.limits[cpu]",
        "resources.limits[example.com/a]",
        "resources.requests[memory]",
    ]
    assert found[0].startswith("resources.limits[cpu]: Invalid value: ")


@pytest.mark.parametrize(
    ("name", "amount", "why"),
    [
        ("ephemeral-storage", "1", ""),
        ("example.com/a", "2", ""),
        ("pods", "1", f'Invalid value: "pods": {STANDARD}'),
        ("storage", "1", f'Invalid value: "storage": {STANDARD}'),
        ("example.com/a", "1500m", 'Invalid value: "1500m": must be an integer'),
        ("kubernetes.io/a", "1500m", ""),
        ("requests.example.com/a", "1", 'Invalid value: "requests.example.com/a": '
         "doesn't follow extended resource name standard"),
        ("requests.cpu", "1", f'Invalid value: "requests.cpu": {STANDARD}'),
    ],
)  # fmt: skip
def test_names_of_containers_resources_SRC_037(name: str, amount: str, why: str) -> None:
    limits = {name: amount}
    wanted = [f"resources.limits[{name}]: {why}"] if why else []
    assert of_container(limits=limits) == wanted
    both = [*wanted, f"resources.requests[{name}]: {why}"] if why else []
    assert of_container(limits=limits, requests=limits) == both


def test_names_of_pods_resources_SRC_037() -> None:
    known = 'supported values: "cpu", "memory", "hugepages-"'
    assert of_pod(limits={"cpu": "1", "memory": "1", HUGE: "2Mi"}) == []
    assert of_pod(limits={"pods": "1"}, requests={"pods": "1", "storage": "1"}) == [
        f'resources.limits[pods]: Unsupported value: "pods": {known}',
        f'resources.requests[storage]: Unsupported value: "storage": {known}',
    ]


def test_huge_pages_are_whole_and_beside_main_resources_SRC_037() -> None:
    both = {"limits": {HUGE: "4Mi", "cpu": "1"}, "requests": {HUGE: "4Mi"}}
    assert of_container(**both) == of_pod(**both) == []
    assert of_container(limits={HUGE: "2Mi"}) == [MAIN]
    assert of_container(limits={HUGE: "2Mi", "memory": "1"}) == []
    assert of_container(limits={HUGE: "2Mi"}, requests={"cpu": "1"}) == []
    assert of_pod(limits={HUGE: "2Mi"}) == []
    for amount in ("3Mi", "1"):
        wanted = [
            f'resources.{which}[{HUGE}]: Invalid value: "{amount}": '
            f"{amount} is not positive integer multiple of {HUGE}"
            for which in ("limits", "requests")
        ]
        both = {"limits": {HUGE: amount, "cpu": "1"}, "requests": {HUGE: amount}}
        assert of_container(**both) == of_pod(**both) == wanted


@pytest.mark.parametrize("size", ["", "x", "0", "-2Mi", "1500m"])
def test_pages_have_a_size_SRC_037(size: str) -> None:
    name = f"hugepages-{size}"
    assert of_container(limits={name: "2Mi", "cpu": "1"}) == [
        f'resources.limits[{name}]: Invalid value: "2Mi": '
        f"2Mi is not positive integer multiple of {name}"
    ]


def test_parts_of_bytes_are_rounded_up_to_pages_SRC_037() -> None:
    assert of_container(limits={"hugepages-2": "1500m", "cpu": "1"}) == []
    assert of_container(limits={"hugepages-2": "2500m", "cpu": "1"}) != []


@pytest.mark.parametrize("name", ["example.com/a", HUGE])
def test_what_cannot_be_overcommitted_SRC_037(name: str) -> None:
    more = {"cpu": "1"}
    need = "resources.limits: Required value: Limit must be set for non overcommitable resources"
    assert of_container(limits={name: "4Mi", **more}) == []
    assert of_container(requests={name: "4Mi", **more}) == [need]
    assert of_container(limits={name: "4Mi", **more}, requests={name: "4096Ki"}) == []
    assert of_container(limits={name: "4Mi", **more}, requests={name: "2Mi"}) == [
        f'resources.requests: Invalid value: "2Mi": must be equal to {name} limit of 4Mi'
    ]


def test_claims_of_containers_SRC_037() -> None:
    def found(*claims: dict[str, str], known: tuple[str, ...] = ("b", "a")) -> list[str]:
        container = {"name": "c", "image": "x:1", "resources": {"claims": list(claims)}}
        of_pod = [{"name": name} for name in known]
        spec = {"containers": [container], "resourceClaims": of_pod}
        place = "spec.containers[0].resources."
        return [problem.removeprefix(place) for problem in problems(spec)]

    one_of = "must be one of the names in pod.spec.resourceClaims"
    assert found({"name": "a"}, {"name": "b", "request": "x"}, {"name": "b", "request": "y"}) == []
    assert found({"name": "a"}, {"name": "a"}, {"name": "a", "request": "x"}) == [
        'claims[1]: Duplicate value: "a"',
        'claims[2]: Duplicate value: "a/x"',
    ]
    assert found({"name": "b", "request": "x"}, {"name": "b", "request": "x"}) == [
        'claims[1]: Duplicate value: "b/x"'
    ]
    assert found({"name": ""}, {"name": "c", "request": "X"}) == [
        "claims[0]: Required value",
        f'claims[1].request: Invalid value: "X": {LABEL}',
        f'claims[1]: Not found: "c": {one_of}: a, b',
    ]
    assert found({"name": "c"}, known=()) == [f'claims[0]: Not found: "c": {one_of} which is empty']


def test_a_pod_s_resources_have_no_claims_SRC_037() -> None:
    why = "resources.claims: Forbidden: claims may not be set for Resources at pod-level"
    assert of_pod(claims=[]) == [why]
    assert of_pod(claims=[{"name": ""}]) == [why, "resources.claims[0]: Required value"]


def test_overhead_of_pods_SRC_037() -> None:
    def found(**overhead: str) -> list[str]:
        return [problem.removeprefix("spec.") for problem in problems({"overhead": overhead})]

    assert found(cpu="1", memory="1Mi") == found(**{HUGE: "2Mi", "memory": "1"}) == []
    assert found(cpu="-1", pods="1", **{HUGE: "3Mi"}) == [
        f'overhead[cpu]: Invalid value: "-1": {NEGATIVE}',
        f'overhead.limits[pods]: Invalid value: "pods": {STANDARD}',
        f'overhead.limits[{HUGE}]: Invalid value: "3Mi": '
        f"3Mi is not positive integer multiple of {HUGE}",
    ]
    assert found(**{HUGE: "2Mi"}) == ["overhead: Forbidden: HugePages require cpu or memory"]
