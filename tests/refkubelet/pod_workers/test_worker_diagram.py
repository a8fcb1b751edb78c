"""docs/pod-workers.md is what the table of transitions says (LIFE-031)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from places import ROOT

from refkubelet.pod_workers.transitions import TRANSITIONS

SCRIPT = ROOT / "tools" / "docs" / "render_pod_workers.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("render_pod_workers", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(script: ModuleType) -> None:
    assert script.main(["--check"]) == 0


def test_an_old_page_is_noticed_and_rewritten(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(script, "TARGET", tmp_path / "page.md")
    assert script.main(["--check"]) == 1
    assert "python tools/docs/render_pod_workers.py" in capsys.readouterr().out
    assert script.main([]) == 0
    assert script.main(["--check"]) == 0


def test_every_row_and_every_change_of_state_is_shown(script: ModuleType) -> None:
    text = script.page()
    assert text.count("\n| ") == len(TRANSITIONS) + 6  # two heads, the four states
    drawing = text.split("```")[1]
    for (state, work_input), row in TRANSITIONS.items():
        label = f"{work_input.value} ({row.rule})"
        arrow = f"{state.value} --> {row.to.value}: "
        line = next((line for line in drawing.splitlines() if arrow in line), "")
        assert (label in line) == (row.to is not state)
