"""A fake with a running container, for all tests of streams."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from stream_clients import Node

from fakecri import FakeCRI


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    made = Node(FakeCRI())
    await made.start()
    yield made
    await made.fake.stop_streaming()
