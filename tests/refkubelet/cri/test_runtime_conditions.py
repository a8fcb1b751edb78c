"""What the answer of Status says: CRI-130."""

import pytest
from kubecri.v1 import api_pb2 as cri

from refkubelet.cri.convert import runtime_conditions

BOTH = {"RuntimeReady": True, "NetworkReady": True}


def answer(**conditions: bool) -> cri.StatusResponse:
    found = [cri.RuntimeCondition(type=name, status=conditions[name]) for name in conditions]
    return cri.StatusResponse(status=cri.RuntimeStatus(conditions=found))


@pytest.mark.parametrize("absent", BOTH)
def test_a_condition_that_is_absent_is_not_true_CRI_130(absent: str) -> None:
    others = {name: True for name in BOTH if name != absent}
    seen = runtime_conditions(answer(**others, Other=True))
    assert (seen.runtime_ready, seen.network_ready) == (
        absent != "RuntimeReady",
        absent != "NetworkReady",
    )


@pytest.mark.parametrize("false", BOTH)
def test_each_condition_counts_for_itself_CRI_130(false: str) -> None:
    seen = runtime_conditions(answer(**{**BOTH, false: False}))
    assert (seen.runtime_ready, seen.network_ready) == (
        false != "RuntimeReady",
        false != "NetworkReady",
    )


def test_unknown_conditions_do_not_matter_CRI_130() -> None:
    """containerd's ContainerdHasNoDeprecationWarnings is false on many healthy nodes."""
    seen = runtime_conditions(answer(**BOTH, ContainerdHasNoDeprecationWarnings=False))
    assert (seen.runtime_ready, seen.network_ready) == (True, True)
    assert (seen.runtime_error(), seen.network_error()) == (None, None)


def test_fewer_than_two_conditions_are_no_answer_CRI_130() -> None:
    with pytest.raises(ValueError, match="1 conditions"):
        runtime_conditions(answer(RuntimeReady=True))
