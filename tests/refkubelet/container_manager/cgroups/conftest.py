"""Worlds with a container manager on the fake kernel."""

from __future__ import annotations

import pytest
from manager_world import World

from fakecri.cgroupfs import CgroupFS


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
async def world(request: pytest.FixtureRequest) -> World:
    """On cgroup v1, then on v2; nothing is started yet."""
    return World(CgroupFS(request.param))
