"""The fixture `time_page`: a jumping time for one test.

def test_my_controller(time_page):
    async def main():
        program = await asyncio.create_subprocess_exec(*time_page.prefix, "./controller")
        await asyncio.sleep(3600)  # takes as long as the controller works in that hour
        ...

    timewarp.run(main, time_page)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from simclock.timewarp.pages import TimePage


@pytest.fixture
def time_page() -> Iterator[TimePage]:
    """A new time, which jumps when all programs and loops in it wait. The test is skipped, with the
    reason, on a machine that has no warped time."""
    from simclock.timewarp.architectures import this_architecture
    from simclock.timewarp.pages import TimePage
    from simclock.timewarp.refusal import CannotWarp

    try:
        this_architecture()
    except CannotWarp as problem:
        pytest.skip(str(problem))
    page = TimePage.create()
    yield page
    page.close()
