"""The quick check of a body and the walk that names what is wrong with it agree."""

from collections.abc import Iterator
from typing import Any

import pytest

from fakekubeapi.requests.shapes import _fits, _model, _problems

POD: dict[str, Any] = {
    "metadata": {
        "name": "web",
        "labels": {"app": "web"},
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "unknown": {"of": "no type"},
    },
    "spec": {
        "hostNetwork": True,
        "nodeSelector": {"disk": "fast"},
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
        "containers": [
            {
                "name": "main",
                "command": ["sleep", "1"],
                "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 3},
                "resources": {"limits": {"cpu": "1"}},
            }
        ],
    },
}
ODD: list[Any] = ["text", "", 1, 1 << 63, 1.5, True, [], [None], ["x"], {}, {"x": 1}, {"x": "y"}]


def changed(value: Any, odd: Any) -> Iterator[Any]:
    """The value with one part of it, any, replaced."""
    yield odd
    places: list[Any] = []
    if isinstance(value, dict | list):
        places = list(value) if isinstance(value, dict) else list(range(len(value)))
    for key in places:
        for other in changed(value[key], odd):
            copy: Any = value.copy()
            copy[key] = other
            yield copy


def test_a_body_as_it_should_be_passes_the_quick_check() -> None:
    assert _fits(_model("resources.core_v1", "Pod"))(POD)


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_what_passes_the_quick_check_has_no_problem(odd: Any) -> None:
    model = _model("resources.core_v1", "Pod")
    bodies = list(changed(POD, odd))
    passed = [body for body in bodies if _fits(model)(body)]
    assert len(passed) < len(bodies)
    assert [body for body in passed if list(_problems(body, model, ""))] == []
