"""CheckpointContainer."""

from __future__ import annotations

from pathlib import Path

import pytest
from criapi.v1 import api_pb2 as cri
from method_calls import UNKNOWN_ID, new_container, refused

from fakecri import FakeCRI


@pytest.mark.virtual_time
async def test_what_cannot_be_checkpointed_says_why_CRI_135(tmp_path: Path) -> None:
    fake = FakeCRI()

    async def attempt(container: str, location: str) -> tuple[str, str]:
        request = cri.CheckpointContainerRequest(container_id=container, location=location)
        return await refused(fake.call("CheckpointContainer", request))

    _, running = await new_container(fake, "running")
    _, created = await new_container(fake, "created", start=False)
    assert (await attempt(UNKNOWN_ID, "/x"))[0] == "NOT_FOUND"
    assert "CONTAINER_CREATED" in (await attempt(created, "/x"))[1]
    assert "no location" in (await attempt(running, ""))[1]
    code, text = await attempt(running, str(tmp_path / "none" / "x.tar"))
    assert (code, text.rpartition(": ")[2]) == ("UNKNOWN", "no such file or directory")
