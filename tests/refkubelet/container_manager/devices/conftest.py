"""A started device manager in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from device_world import DeviceWorld


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[DeviceWorld]:
    made = DeviceWorld(tmp_path)
    await made.start()
    yield made
    await made.stop()
