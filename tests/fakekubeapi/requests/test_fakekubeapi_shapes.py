"""The quick check of a body and the walk that names what is wrong with it agree."""

from collections.abc import Iterator
from typing import Any

import pytest

from fakekubeapi.errors import StatusError
from fakekubeapi.requests.shapes import _message_fits, check_shape
from kubeobjects.schema.messages import message

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
    assert _message_fits(message("core.v1.Pod"))(POD)


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_what_the_quick_check_refuses_is_named_or_right(odd: Any) -> None:
    """It may refuse what is right (large numbers), and passes nothing that is not."""
    fits = _message_fits(message("core.v1.Pod"))
    refused = [body for body in changed(POD, odd) if not fits(body)]
    codes = [code_of(body) for body in refused]
    assert set(codes) <= {0, 400}
    assert 400 in codes


def code_of(body: Any) -> int:
    """The status of the refusal; 0: there is none."""
    try:
        check_shape(body, message("core.v1.Pod"))
    except StatusError as error:
        return error.code
    return 0
