"""What a static pod's own resources default to, as an API server would have it."""

from __future__ import annotations

from typing import Any

import pytest
from pods import container, make_pod

from refkubelet.model.defaults import apply_api_defaults
from refkubelet.model.objects import to_dict


@pytest.mark.parametrize(
    ("own", "containers", "requests", "limits"),
    [
        ({"limits": {"cpu": "1"}}, [container()], {"cpu": "1"}, {"cpu": "1"}),
        (
            {"limits": {"cpu": "1", "memory": "1Gi"}},
            [container(cpu="150m"), container(cpu="100m", memory="1Mi")],
            {"cpu": "250m", "memory": "1Mi"},
            {"cpu": "1", "memory": "1Gi"},
        ),
        (
            {"limits": {"cpu": "1"}, "requests": {"cpu": "300m"}},
            [container(cpu="150m", memory="1Gi")],
            {"cpu": "300m", "memory": "1Gi"},
            {"cpu": "1"},
        ),
        ({"requests": {"cpu": "1"}}, [container(memory="1Gi")], {"cpu": "1"}, None),
        (
            {"requests": {"cpu": "1"}},
            [container(limits={"hugepages-2Mi": "4Mi"})],
            {"cpu": "1", "hugepages-2Mi": "4Mi"},
            {"hugepages-2Mi": "4Mi"},
        ),
        ({}, [container(cpu="1/1")], None, None),
    ],
)
def test_requests_come_from_containers_or_limits_SRC_036_CG_002(
    own: Any, containers: list[dict[str, Any]], requests: Any, limits: Any
) -> None:
    pod = apply_api_defaults(make_pod(*containers, resources=own))
    found = to_dict(pod)["spec"]["resources"]
    assert (found.get("requests"), found.get("limits")) == (requests, limits)


def test_without_resources_of_its_own_a_pod_gets_none_SRC_036() -> None:
    pod = apply_api_defaults(make_pod(container(cpu="1")))
    assert "resources" not in to_dict(pod)["spec"]
