"""A data directory: what a server keeps there, and what it says of one that it cannot use."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakekubeapi_helpers import CONFIGMAPS, configmap, create, get, ok, patch, refused

from fakekubeapi import FakeApi, ServerOptions
from fakekubeapi.cli import main
from fakekubeapi.storage import journal
from fakekubeapi.storage.journal import DataError

pytestmark = pytest.mark.virtual_time
JOURNAL = "journal.jsonl"


async def written(directory: Path) -> dict[str, Any]:
    """The list of what a server has that changed an object and removed one."""
    api = FakeApi(options=ServerOptions(data=directory, field_managers=True))
    await create(api, CONFIGMAPS, configmap("a"))
    await create(api, CONFIGMAPS, configmap("b"))
    ok(await patch(api, f"{CONFIGMAPS}/a", {"data": {"k": "2"}}))
    ok(await api.request("DELETE", f"{CONFIGMAPS}/b"))
    found = await get(api, CONFIGMAPS)
    api.close()
    return found


async def test_a_restart_loses_nothing(tmp_path: Path) -> None:
    before = await written(tmp_path / "made")
    api = FakeApi(options=ServerOptions(data=tmp_path / "made"))
    assert await get(api, CONFIGMAPS) == before
    made = await create(api, CONFIGMAPS, configmap("c"))
    assert int(made["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
    api.close()


async def test_watches_go_on_over_a_restart(tmp_path: Path) -> None:
    before = await written(tmp_path)
    version = int(before["metadata"]["resourceVersion"])
    api = FakeApi(options=ServerOptions(data=tmp_path))
    params = {"resourceVersion": str(version - 2), "timeoutSeconds": "1"}
    events = [event async for event in api.watch(CONFIGMAPS, params=params)]
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in events] == [
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]
    assert events[1]["object"]["metadata"]["resourceVersion"] == str(version)
    api.close()


async def test_what_was_compacted_stays_forgotten(tmp_path: Path) -> None:
    before = await written(tmp_path)
    api = FakeApi(options=ServerOptions(data=tmp_path))
    api.compact()
    api.close()
    lines = (tmp_path / JOURNAL).read_text().splitlines()
    api = FakeApi(options=ServerOptions(data=tmp_path))
    assert len(lines) == 1 + len(api.store._objects)
    assert await get(api, CONFIGMAPS) == before
    version = str(int(before["metadata"]["resourceVersion"]) - 1)
    events = [e async for e in api.watch(CONFIGMAPS, params={"resourceVersion": version})]
    assert [event["object"]["code"] for event in events] == [410]
    api.close()


async def test_a_long_journal_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_REWRITE_AT", -100)
    api = FakeApi(options=ServerOptions(data=tmp_path))
    for number in range(50):
        await api.request("PUT", f"{CONFIGMAPS}/a", body=configmap("a", n=str(number)))
        if number == 0:
            await create(api, CONFIGMAPS, configmap("a"))
    before = await get(api, CONFIGMAPS)
    api.close()
    again = FakeApi(options=ServerOptions(data=tmp_path))
    assert await get(again, CONFIGMAPS) == before
    assert again.store.revision == api.store.revision
    again.close()
    assert len((tmp_path / JOURNAL).read_text().splitlines()) < 50


async def test_a_torn_last_line_is_dropped_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = await written(tmp_path)
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b'{"revision":99,"key":["conf' + b"x" * 5000)
    with caplog.at_level(logging.WARNING):
        api = FakeApi(options=ServerOptions(data=tmp_path))
    assert "the last line is torn, 5027 bytes dropped" in caplog.text
    assert await get(api, CONFIGMAPS) == before
    await create(api, CONFIGMAPS, configmap("c"))
    api.close()
    assert (tmp_path / JOURNAL).read_bytes().endswith(b"\n")
    FakeApi(options=ServerOptions(data=tmp_path)).close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"fakekubeapi":2}\n', "is of another version: format 2, this fakekubeapi has 1"),
        ("something else\n", "is no journal of fakekubeapi"),
        ("", "is no journal of fakekubeapi"),
        ('{"fakekubeapi":1}\n{"revision":\n{}\n', "line 2 is broken"),
        ('{"fakekubeapi":1}\n{"revision":1}\n', "line 2 is broken"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / JOURNAL).write_text(text)
    with pytest.raises(DataError) as refusal:
        FakeApi(options=ServerOptions(data=tmp_path))
    assert words in str(refusal.value)
    assert "name another" in str(refusal.value)
    assert (tmp_path / JOURNAL).read_text() == text


def test_a_directory_has_one_server(tmp_path: Path) -> None:
    api = FakeApi(options=ServerOptions(data=tmp_path))
    with pytest.raises(DataError, match="another fakekubeapi uses"):
        FakeApi(options=ServerOptions(data=tmp_path))
    api.close()
    FakeApi(options=ServerOptions(data=tmp_path)).close()


def test_a_directory_that_cannot_be_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["serve", "--data", str(tmp_path / "file" / "x")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("fakekubeapi: --data: cannot use ")
    assert "Not a directory" in said


async def test_what_cannot_be_kept_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = FakeApi(options=ServerOptions(data=tmp_path))
    made = await create(api, CONFIGMAPS, configmap("a"))

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        answer = await api.request("POST", CONFIGMAPS, body=configmap("b"))
        assert "No space left on device" in refused(answer, 500, "InternalError")
    assert (await get(api, CONFIGMAPS))["items"][0]["metadata"] == made["metadata"]
    await create(api, CONFIGMAPS, configmap("c"))
    before = await get(api, CONFIGMAPS)
    api.close()
    again = FakeApi(options=ServerOptions(data=tmp_path))
    assert await get(again, CONFIGMAPS) == before
    again.close()


@pytest.mark.timeout(120)
def test_a_killed_server_has_kept_what_it_answered(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys, pathlib\n"
        "from fakekubeapi import FakeApi, ServerOptions\n"
        "async def main():\n"
        "    api = FakeApi(options=ServerOptions(data=pathlib.Path(sys.argv[1])))\n"
        "    for n in range(10000):\n"
        "        body = {'metadata': {'name': f'c{n}'}}\n"
        "        await api.request('POST', '/api/v1/namespaces/default/configmaps', body=body)\n"
        "        print(n, flush=True)\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "5\n":
                break
        process.send_signal(signal.SIGKILL)
        last = [line for line in process.stdout.read().splitlines() if line]
    answered = int(last[-1]) if last else 5
    api = FakeApi(options=ServerOptions(data=tmp_path))
    names = {key.name for key in api.store.keys("configmaps", "default")}
    api.close()
    assert {f"c{n}" for n in range(answered + 1)} <= names
    header = json.loads((tmp_path / JOURNAL).read_text().splitlines()[0])
    assert header["fakekubeapi"] == journal.FORMAT
