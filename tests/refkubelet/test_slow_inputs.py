"""Texts made to keep the loop busy: each is read in time that grows with its length
(architecture.md: a bad input touches its own pod)."""

from __future__ import annotations

import re
from collections.abc import Callable
from resource import RUSAGE_SELF, getrusage
from typing import Any

import pytest
from pods import make_pod

from kubeobjects.causes import Cause
from kubeobjects.pods.defaults import default_pull_policy
from kubeobjects.pods.volumes import volume_causes
from refkubelet.kuberuntime.config.environment import (
    EnvironmentFacts,
    environment,
    expand,
    expand_all,
    references,
)
from refkubelet.kuberuntime.images.keyring import covers
from refkubelet.model.downward_api import VariableError

MANY = 60_000
INITIATOR = "iqn.2000-01.a:b" * (MANY // 3) + ","


def iscsi(name: str) -> list[Cause]:
    source = {"targetPortal": "p", "iqn": name, "lun": 0}
    _, causes = volume_causes({"volumes": [{"name": "v", "iscsi": source}]}, static=True)
    return causes


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda: expand("$(" * MANY, {}), id="references that do not end LIFE-137"),
        pytest.param(lambda: references("$(" * MANY), id="subPathExpr NODE-211"),
        pytest.param(lambda: covers("*a" * 7 + "b", "a" * 60 + "/app"), id="login BACK-209"),
        pytest.param(lambda: iscsi(INITIATOR), id="initiator SRC-037"),
        pytest.param(lambda: default_pull_policy("a.b-" * MANY), id="registry SRC-036"),
        pytest.param(lambda: default_pull_policy("a__" * MANY + "_"), id="image SRC-036"),
    ],
)
def test_a_text_takes_time_as_it_is_long(read: Callable[[], object]) -> None:
    began_s = getrusage(RUSAGE_SELF).ru_utime
    read()
    assert getrusage(RUSAGE_SELF).ru_utime - began_s < 2


def laughs(times: int) -> list[dict[str, Any]]:
    """Each variable is the one before, twice."""
    first = {"name": "V0", "value": "x" * 1024}
    return [first] + [
        {"name": f"V{n}", "value": f"$(V{n - 1})$(V{n - 1})"} for n in range(1, times)
    ]


def test_variables_that_double_end_with_the_container_LIFE_137() -> None:
    main = {"name": "main", "image": "i", "env": laughs(50)}
    pod = make_pod(main)
    assert pod.spec is not None
    with pytest.raises(VariableError, match="more than 16 MiB"):
        environment(pod.spec.containers[0], pod, EnvironmentFacts())


def test_the_words_of_a_command_share_their_limit_LIFE_137() -> None:
    with pytest.raises(VariableError, match="more than 16 MiB"):
        expand_all(["$(A)"] * 100, {"A": "x" * (1 << 20)})
    assert len(expand_all(["$(A)"] * 16, {"A": "x" * (1 << 20)})) == 16


@pytest.mark.parametrize(
    "text", ["$(A)$(", "$(A)$$(A)", "$$$(A)", "$)$(A", "$(", "$", "$$", "$(A", "a)$$(b"]
)
def test_references_end_at_the_next_bracket_LIFE_137(text: str) -> None:
    pattern = re.compile(r"\$(?:\$|\(([^)]*)\)|)")

    def replaced(match: re.Match[str]) -> str:
        whole, name = match.group(), match.group(1)
        return {"A": "1"}.get(name, whole) if name is not None else "$"

    assert expand(text, {"A": "1"}) == pattern.sub(replaced, text)
