"""Mistakes of tests: refused where they are written, in words that say what was wanted."""

from __future__ import annotations

from typing import Any

import pytest
from criapi.v1 import api_pb2 as cri

from fakecri import FakeCRI
from simtime import run_virtual


@pytest.mark.parametrize(
    ("method", "request_", "error", "words"),
    [
        ("Versoin", cri.VersionRequest(), ValueError, "did you mean Version"),
        (
            "RunPodSandbox",
            cri.VersionRequest(),
            TypeError,
            "wanted a RunPodSandboxRequest, got Ver",
        ),
        ("RemoveContainer", cri.StopContainerRequest(), TypeError, "wanted a RemoveContainerReq"),
        ("Version", None, TypeError, "Version: wanted a VersionRequest, got NoneType"),
        ("Version", {}, TypeError, "wanted a VersionRequest, got dict"),
        ("StreamContainers", cri.VersionRequest(), TypeError, "wanted a StreamContainersRequest"),
    ],
)
def test_a_wrong_call_is_refused_and_not_recorded(
    method: str, request_: Any, error: type[Exception], words: str
) -> None:
    async def main() -> None:
        fake = FakeCRI()
        stream = method.startswith("Stream")
        with pytest.raises(error, match=words):
            await (anext(fake.stream(method, request_)) if stream else fake.call(method, request_))
        assert fake.calls() == []

    run_virtual(main)
