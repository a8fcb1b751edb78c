"""refkubelet's metrics are the kubelet's: names, types, labels and bounds (results/metrics.json, as
recorded from a running kubelet and from Kubernetes' own list), and docs/metrics.md says so."""

from __future__ import annotations

import pytest
from render_metrics import MIXIN, OF_THE_PROCESS, PAGE, WHY_NOT, here, lines, theirs, why_not

OWN, THEIRS = here(), theirs()


@pytest.mark.parametrize("name", OWN)
def test_a_metric_is_as_the_kubelets_SRV_036(name: str) -> None:
    theirs_here = THEIRS[name]
    told = {key: theirs_here[key] for key in ("type", "labels")}
    assert {key: OWN[name][key] for key in ("type", "labels")} == told
    if "bounds" in OWN[name] and "bounds" in theirs_here:
        assert OWN[name]["bounds"] == pytest.approx(theirs_here["bounds"])


@pytest.mark.parametrize("name", THEIRS)
def test_a_metric_is_here_or_somebody_says_why_not_SRV_036(name: str) -> None:
    is_here = name in OWN or name in OF_THE_PROCESS
    assert is_here or why_not(name), f"{name}: make it, or say why not in WHY_NOT"
    assert not (is_here and name in WHY_NOT), f"{name} is here: WHY_NOT needs no reason"


def test_reasons_are_about_metrics_that_there_are() -> None:
    assert WHY_NOT.keys() - THEIRS.keys() == set()
    assert set(OF_THE_PROCESS) <= THEIRS.keys()


def test_what_rules_and_alerts_of_kubernetes_mixin_need_is_here_SRV_036() -> None:
    assert [name for name in MIXIN if name not in OWN] == []


def test_at_least_fifty_of_those_that_a_kubelet_shows_are_here_SRV_036() -> None:
    shown = [name for name, row in THEIRS.items() if row["first"] and name.startswith("kubelet_")]
    assert len([name for name in shown if name in OWN]) >= 50


def test_the_page_is_what_the_table_says() -> None:
    text = "\n".join(lines()) + "\n"
    assert PAGE.read_text(encoding="utf-8") == text, "run: python tools/docs/render_metrics.py"
