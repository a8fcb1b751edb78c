"""The pytest plugin, the import and the clock of the loop."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import run_pod

from fakecri import FakeCRI
from fakecri.server import GrpcUpstream


@pytest.mark.virtual_time
async def test_the_fixture_works_in_virtual_time(fakecri: FakeCRI) -> None:
    await run_pod(fakecri)
    created_at_ns = fakecri.sandboxes()[0].created_at_ns
    assert created_at_ns // 10**18 == 1  # 2026-01-01, the start of virtual time
    assert fakecri.times_s("RunPodSandbox") == [0.0]


async def test_the_socket_fixture_serves_the_fixture(fakecri: FakeCRI, fakecri_socket: str) -> None:
    async with GrpcUpstream(fakecri_socket) as upstream:
        answer: Any = await upstream.call("Version", cri.VersionRequest(), timeout_s=10)
    assert answer.runtime_api_version == "v1"
    fakecri.assert_called("Version", times=1)


@pytest.mark.parametrize("module", ["fakecri", "fakecri.pytest_plugin"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    code = (
        f"import sys, {module}; print([m for m in ('grpc', 'google.protobuf') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_every_public_name_exists() -> None:
    import fakecri

    assert all(getattr(fakecri, name) is not None for name in fakecri.__all__)
    assert sorted(fakecri.__all__) == fakecri.__all__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = fakecri.nothing
