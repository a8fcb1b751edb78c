"""A machine without instances of inotify is told as an error that names the setting."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubelet_conformance.harness.kubelets import watches
from kubelet_conformance.harness.kubelets.base import NodePaths
from kubelet_conformance.harness.kubelets.process import ProcessKubelet
from kubelet_conformance.harness.kubelets.program import external
from kubelet_conformance.harness.limits import JUMPING
from kubelet_conformance.harness.runs.case_run import Outcome, run_case
from kubelet_conformance.harness.runs.warped import SELF_TEST


@pytest.fixture
def used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel gives this process no instance."""
    library = SimpleNamespace(inotify_init1=lambda _flags: -1)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: library)
    monkeypatch.setattr(ctypes, "get_errno", lambda: 24)


def test_some_can_be_had_and_are_given_back() -> None:
    opened = len(list(Path("/proc/self/fd").iterdir()))
    watches.require_watches(3)
    assert len(list(Path("/proc/self/fd").iterdir())) == opened


@pytest.mark.usefixtures("used_up")
def test_the_setting_is_named() -> None:
    with pytest.raises(watches.MachineLacks, match=r"0 of 8.*sysctl -w fs\.inotify\.max_user"):
        watches.require_watches()


@pytest.mark.usefixtures("used_up")
async def test_a_case_without_them_is_an_error_and_no_failure(tmp_path: Path) -> None:
    paths = NodePaths(tmp_path)
    kubelet = ProcessKubelet(
        external(Path("/bin/false")), paths, "unix:///x", node_name="node", kubeconfig=None
    )

    class Parts:
        def __init__(self, *_: Any) -> None:
            self.kubelet, self.pace = kubelet, JUMPING
            self.config: dict[str, Any] = {}

        async def __aenter__(self) -> Parts:
            return self

        async def __aexit__(self, *_: object) -> None:
            await kubelet.close()

    result = await run_case(SELF_TEST, Parts, tmp_path)  # type: ignore[arg-type]
    assert result.outcome is Outcome.ERROR
    assert result.detail.startswith("no instance of inotify is left for a kubelet")
    assert len(result.detail.splitlines()) == 1
