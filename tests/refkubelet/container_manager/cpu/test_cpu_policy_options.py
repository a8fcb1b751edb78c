"""The options of the CPU manager's policies (CG-081)."""

from __future__ import annotations

import pytest

from refkubelet.container_manager.cpu.policy_options import (
    StaticOptions,
    check_no_options,
    static_options,
)

ALPHA = {"CPUManagerPolicyAlphaOptions": True}


def test_options_are_read_CG_081() -> None:
    texts = {"full-pcpus-only": "true", "strict-cpu-reservation": "1", "align-by-socket": "false"}
    assert static_options(texts, ALPHA) == StaticOptions(
        full_pcpus_only=True, strict_cpu_reservation=True
    )


@pytest.mark.parametrize(
    ("texts", "gates", "words"),
    [
        ({"whole": "true"}, {}, 'unknown CPU Manager Policy option: "whole"'),
        (
            {"full-pcpus-only": "yes"},
            {},
            'bad value for option "full-pcpus-only": strconv.ParseBool: parsing "yes": '
            "invalid syntax",
        ),
        (
            {"align-by-socket": "true"},
            {},
            'CPU Manager Policy Alpha-level Options not enabled, but option "align-by-socket" '
            "provided",
        ),
        (
            {"distribute-cpus-across-numa": "true"},
            {"CPUManagerPolicyBetaOptions": False},
            "CPU Manager Policy Beta-level Options not enabled, but option "
            '"distribute-cpus-across-numa" provided',
        ),
        (
            {"full-pcpus-only": "true", "distribute-cpus-across-cores": "true"},
            ALPHA,
            "static policy options full-pcpus-only and distribute-cpus-across-cores can not be "
            "used at the same time",
        ),
        (
            {"prefer-align-cpus-by-uncorecache": "t", "distribute-cpus-across-numa": "t"},
            {},
            "static policy options prefer-align-cpus-by-uncorecache and "
            "distribute-cpus-across-numa can not be used at the same time",
        ),
    ],
)
def test_wrong_options_are_start_failures_CG_081(
    texts: dict[str, str], gates: dict[str, bool], words: str
) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        static_options(texts, gates)
    assert str(raised.value) == words


def test_policy_none_has_no_options() -> None:
    check_no_options({})
    with pytest.raises(ValueError, match=r"received unsupported options=map\[a:1 b:2\]"):
        check_no_options({"b": "2", "a": "1"})
