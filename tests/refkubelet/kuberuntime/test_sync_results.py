"""The result of a sync as text, and when the next one is due."""

from __future__ import annotations

import pytest

from refkubelet.kuberuntime.results import PodSyncResult, SyncAction, SyncError

START = SyncError(SyncAction.START_CONTAINER, "main", "CrashLoopBackOff", 'back-off "10s"', 20.0)
STOP = SyncError(SyncAction.STOP_SANDBOX, "s-1", "KillPodSandboxError", "gone", 10.0)
RESIZE = SyncError(SyncAction.RESIZE_POD, "web", "ResizePodInPlaceError", "too large")
START_TEXT = 'failed to "StartContainer" for "main" with CrashLoopBackOff: "back-off \\"10s\\""'
STOP_TEXT = 'failed to "StopPodSandbox" for "s-1" with KillPodSandboxError: "gone"'


@pytest.mark.parametrize(
    ("errors", "text", "expiry_s", "resize"),
    [
        ((), "", None, None),
        ((START,), START_TEXT, 20.0, None),
        ((START, STOP), f"[{START_TEXT}, {STOP_TEXT}]", 10.0, None),
        (
            (RESIZE,),
            'failed to "ResizePodInPlace" for "web" with ResizePodInPlaceError: "too large"',
            None,
            "too large",
        ),
    ],
)
def test_what_a_result_tells_LIFE_037_BACK_011(
    errors: tuple[SyncError, ...], text: str, expiry_s: float | None, resize: str | None
) -> None:
    result = PodSyncResult(errors)
    assert (result.ok, result.message) == (not errors, text)
    assert result.min_backoff_expiry_s() == expiry_s
    assert result.resize_error == resize
