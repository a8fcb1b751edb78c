"""The pytest plugin: a `fakecri` fixture for other projects' tests.

Nothing heavy is imported before a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fakecri.fake import FakeCRI

try:
    from pytest_asyncio import fixture as async_fixture
except ImportError:  # without pytest-asyncio the socket fixture cannot exist
    async_fixture = None  # type: ignore[assignment]


@pytest.fixture
def fakecri() -> FakeCRI:
    """A fresh fake runtime, called directly: `await fakecri.call("RunPodSandbox", request)`."""
    from fakecri.fake import FakeCRI

    return FakeCRI()


if async_fixture is not None:

    @async_fixture
    async def fakecri_socket(fakecri: FakeCRI, tmp_path: Path) -> AsyncIterator[str]:
        """The endpoint (`unix:///...`) on which the `fakecri` of this test is served."""
        from fakecri.server import serve

        async with serve(fakecri, f"unix://{tmp_path}/cri.sock") as server:
            yield server.endpoint
