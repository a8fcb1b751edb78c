"""The file source on virtual time, with a real directory and real inotify (SRC-001..011)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from loops import virtual_loop

from refkubelet.model.objects import Pod
from refkubelet.pods import manifest_files
from refkubelet.pods.file_source import FileSource
from refkubelet.pods.manifest import ManifestError, read_manifest

pytestmark = pytest.mark.virtual_time


def manifest(name: str, image: str = "localhost/busybox:1") -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n"
        f"spec: {{containers: [{{name: main, image: '{image}'}}]}}\n"
    )


class Seen:
    """What the source delivered, with times."""

    def __init__(self, path: Path | str) -> None:
        loop = virtual_loop()
        self.clock = loop.clock
        self.source = FileSource(str(path), node_name="n1", period_s=20.0, clock=loop.clock)
        self.sets: list[tuple[float, list[str]]] = []
        self.pods: tuple[Pod, ...] = ()
        self._more = asyncio.Event()

    async def take(self, pods: Sequence[Pod]) -> None:
        self.pods = tuple(pods)
        names = [p.metadata.name or "" for p in pods if p.metadata]
        self.sets.append((self.clock.monotonic_s(), names))
        self._more.set()

    @property
    def names(self) -> list[str]:
        return self.sets[-1][1] if self.sets else ["nothing delivered"]

    async def until(self, *names: str, by_s: float = 60.0) -> float:
        """Wait until exactly these pods were delivered; the time of that delivery."""
        async with asyncio.timeout(by_s):
            while self.names != list(names):
                self._more.clear()
                await self._more.wait()
        return self.sets[-1][0]


@asynccontextmanager
async def file_source(path: Path | str) -> AsyncIterator[Seen]:
    """A file source of `path` that runs, and what it delivers."""
    seen = Seen(path)
    task = asyncio.create_task(seen.source.run(seen.take))
    try:
        yield seen
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_pods_are_read_at_once_in_name_order_SRC_002_SRC_003(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(manifest("b"))
    (tmp_path / "a.json").write_text(
        '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},'
        '"spec":{"containers":[{"name":"c","image":"i"}]}}'
    )
    (tmp_path / ".hidden.yaml").write_text(manifest("hidden"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "pod.yaml").write_text(manifest("sub"))
    os.mkfifo(tmp_path / "fifo")

    async with file_source(f"{tmp_path}/") as seen:
        assert await seen.until("a-n1", "b-n1") == 0
        assert seen.source.errors == {}


async def test_a_new_edited_and_removed_file_is_seen_at_once_SRC_008(tmp_path: Path) -> None:
    async with file_source(tmp_path) as seen:
        await seen.until()
        (tmp_path / "a.yaml").write_text(manifest("a"))
        assert await seen.until("a-n1") == 0
        first = seen.pods[0].metadata
        (tmp_path / "a.yaml").write_text(manifest("a", image="other:2"))
        await asyncio.sleep(0.1)
        second = seen.pods[0].metadata
        assert first is not None
        assert second is not None
        assert first.uid != second.uid
        (tmp_path / "a.yaml").unlink()
        assert await seen.until() < 1
        new = tmp_path / ".tmp"
        new.write_text(manifest("b"))
        new.rename(tmp_path / "b.yaml")
        assert await seen.until("b-n1") < 1
        (tmp_path / "b.yaml").rename(tmp_path / ".gone")
        assert await seen.until() < 1


async def test_a_half_written_file_is_not_read(tmp_path: Path) -> None:
    async with file_source(tmp_path) as seen:
        await seen.until()
        with (tmp_path / "a.yaml").open("w") as file:
            file.write("apiVersion: v1\nkind: Pod\n")
            file.flush()
            await asyncio.sleep(1)
            assert seen.source.errors == {}
            file.seek(0)
            file.write(manifest("a"))
        await seen.until("a-n1")


async def test_a_bad_file_never_blocks_the_others_SRC_005(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.yaml").write_text(manifest("a"))
    (tmp_path / "bad.yaml").write_text("kind: Pod\nkind: Pod\n")
    (tmp_path / "z.yaml").write_text(manifest("z"))

    async with file_source(tmp_path) as seen:
        await seen.until("a-n1", "z-n1")
        await asyncio.sleep(100)
        why = "line 2: duplicate key 'kind', first on line 1"
        assert seen.source.errors == {f"{tmp_path}/bad.yaml": why}
        assert caplog.messages == [f"static pod file {tmp_path}/bad.yaml: {why}"]


async def test_a_manifest_that_became_bad_leaves_within_a_period_SRC_005(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(manifest("a"))

    async with file_source(tmp_path) as seen:
        await seen.until("a-n1")
        await asyncio.sleep(5)
        (tmp_path / "a.yaml").write_text("garbage: [")
        await asyncio.sleep(1)
        assert seen.names == ["a-n1"]  # only logged until the next periodic reading (SRC-008)
        assert list(seen.source.errors) == [f"{tmp_path}/a.yaml"]
        assert await seen.until() == 20


async def test_a_single_file_keeps_its_last_good_pod_SRC_006(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(manifest("a"))

    async with file_source(file) as seen:
        await seen.until("a-n1")
        file.write_text("garbage: [")
        (tmp_path / "other.yaml").write_text(manifest("other"))
        await asyncio.sleep(50)
        assert seen.names == ["a-n1"]
        file.write_text(manifest("b"))
        await seen.until("b-n1")
        file.unlink()
        await seen.until()


async def test_a_missing_directory_is_an_empty_set_and_looked_for_each_second_SRC_007(
    tmp_path: Path,
) -> None:
    path = tmp_path / "later"

    async with file_source(path) as seen:
        assert await seen.until() == 0
        await asyncio.sleep(10.5)
        assert len(seen.sets) >= 10
        path.mkdir()
        (path / "a.yaml").write_text(manifest("a"))
        assert await seen.until("a-n1") == 11
        (path / "a.yaml").unlink()
        path.rmdir()
        assert await seen.until() < 12
        path.mkdir()
        (path / "b.yaml").write_text(manifest("b"))
        await seen.until("b-n1", by_s=2)


async def test_a_symlinked_manifest_is_followed_SRC_003_SRC_009(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text(manifest("a"))
    manifests = tmp_path / "manifests"
    manifests.mkdir()

    async with file_source(manifests) as seen:
        await seen.until()
        (manifests / "a.yaml").symlink_to(target)
        assert await seen.until("a-n1") == 0
        target.write_text(manifest("b"))  # raises no event in the directory
        assert await seen.until("b-n1") == 20


async def test_two_files_with_one_identity_collapse_SRC_010(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(manifest("same", image="first:1"))
    (tmp_path / "b.yaml").write_text(manifest("same", image="second:1"))

    def image(seen: Seen) -> str | None:
        spec = seen.pods[0].spec
        return spec.containers[0].image if spec else None

    async with file_source(tmp_path) as seen:
        await seen.until("same-n1")
        assert image(seen) == "second:1"
        (tmp_path / "a.yaml").write_text(manifest("same", image="third:1"))
        await asyncio.sleep(1)
        assert image(seen) == "third:1"
        await asyncio.sleep(20)
        assert image(seen) == "second:1"


async def test_a_pod_list_and_too_large_files_are_refused_SRC_004(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("apiVersion: v1\nkind: PodList\nitems: []\n")
    (tmp_path / "huge.yaml").write_text("# " + "x" * (1024 * 1024))
    (tmp_path / "good.yaml").write_text(manifest("good") + "---\nkind: [ignored\n")

    async with file_source(tmp_path) as seen:
        await seen.until("good-n1")
        assert seen.source.errors == {
            f"{tmp_path}/huge.yaml": "the file is larger than 1024 KiB",
            f"{tmp_path}/list.yaml": "line 2: kind: wanted Pod, found PodList",
        }


async def test_a_name_that_is_no_text_is_as_good_as_any(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(manifest("b"))
    with open(os.fsencode(tmp_path) + b"/a\xff.yaml", "w") as file:
        file.write(manifest("a"))

    async with file_source(tmp_path) as seen:
        await seen.until("a-n1", "b-n1")


async def test_an_error_that_nobody_thought_of_ends_no_other_pod_SRC_005(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(data: bytes, **where: object) -> object:
        if b"name: bad" in data:
            raise KeyError("nobody thought of this")
        return read_manifest(data, **where)  # type: ignore[arg-type]

    monkeypatch.setattr(manifest_files, "read_manifest", read)
    (tmp_path / "a.yaml").write_text(manifest("bad"))
    (tmp_path / "b.yaml").write_text(manifest("b"))

    async with file_source(tmp_path) as seen:
        await seen.until("b-n1")
        why = "unexpected error: KeyError('nobody thought of this')"
        assert seen.source.errors == {f"{tmp_path}/a.yaml": why}


@pytest.mark.parametrize("watched", ["", "pod.yaml"], ids=["directory", "file"])
async def test_a_manifest_that_is_written_again_at_once_is_another_pod_SRC_008(
    tmp_path: Path, watched: str
) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(manifest("a"))

    async with file_source(tmp_path / watched) as seen:
        await seen.until("a-n1")
        known = len(seen.sets)
        file.unlink()
        file.write_text(manifest("a"))
        await asyncio.sleep(1)
        assert [names for _, names in seen.sets[known:]] == [[], ["a-n1"]]


async def test_a_renamed_manifest_with_its_own_uid_is_gone_before_it_is_there_again_SRC_008(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.yaml").write_text(manifest("a").replace("name: a", "uid: x, name: a"))

    async with file_source(tmp_path) as seen:
        await seen.until("a-n1")
        known = len(seen.sets)
        (tmp_path / "a.yaml").rename(tmp_path / "b.yaml")
        await asyncio.sleep(1)
        assert [names for _, names in seen.sets[known:]] == [[], ["a-n1"]]


async def test_what_left_before_its_directory_did_is_gone_SRC_008(tmp_path: Path) -> None:
    path = tmp_path / "manifests"
    path.mkdir()
    (path / "a.yaml").write_text(manifest("a"))

    async with file_source(path) as seen:
        await seen.until("a-n1")
        known = len(seen.sets)
        (path / "a.yaml").unlink()
        path.rmdir()
        path.mkdir()
        (path / "a.yaml").write_text(manifest("a"))
        await asyncio.sleep(1)
        assert [names for _, names in seen.sets[known:]] == [[], ["a-n1"]]


async def test_a_refused_text_is_parsed_once_SRC_005(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[bytes] = []

    def read(data: bytes, **where: object) -> object:
        parsed.append(data)
        return read_manifest(data, **where)  # type: ignore[arg-type]

    monkeypatch.setattr(manifest_files, "read_manifest", read)
    bad = tmp_path / "bad.yaml"
    bad.write_text("kind: Pod\nkind: Pod\n")

    async with file_source(tmp_path) as seen:
        await seen.until()
        await asyncio.sleep(100)
        assert len(parsed) == 1
        bad.write_text(manifest("good"))
        await seen.until("good-n1")


async def test_everybody_has_a_turn_between_two_manifests_SRC_005(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[str] = []

    def read(data: bytes, **_: object) -> object:
        asyncio.get_running_loop().call_soon(turns.append, "another")
        turns.append("manifest")
        raise ManifestError("bad")

    monkeypatch.setattr(manifest_files, "read_manifest", read)
    for i in range(3):
        (tmp_path / f"{i}.yaml").write_text(f"{i}")

    async with file_source(tmp_path) as seen:
        await seen.until()
        assert turns == ["manifest", "another"] * 3


async def test_a_complaint_of_any_length_is_told_in_short(tmp_path: Path) -> None:
    env = ", ".join(f"{{name: 'a={i}'}}" for i in range(1000))
    text = manifest("a").replace("name: main", f"name: main, env: [{env}]")
    (tmp_path / "a.yaml").write_text(text)

    async with file_source(tmp_path) as seen:
        await seen.until()
        (why,) = seen.source.errors.values()
        assert len(why) < 4100


@pytest.mark.parametrize("endless", ["/proc/kmsg", "/dev/zero"])
async def test_a_link_to_what_waits_or_has_no_end_holds_nothing_up_SRC_003(
    tmp_path: Path, endless: str
) -> None:
    (tmp_path / "a.yaml").symlink_to(endless)
    (tmp_path / "b.yaml").write_text(manifest("b"))

    async with file_source(tmp_path) as seen:
        assert await seen.until("b-n1") == 0


async def test_a_fifo_that_took_a_manifests_place_holds_nothing_up_SRC_003(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a regular file when it was looked at, and is none when it is opened."""
    regular = os.stat(__file__)
    look = os.stat

    def stat(path: str, **how: object) -> os.stat_result:
        return regular if str(path).endswith("fifo.yaml") else look(path, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "z.yaml").write_text(manifest("z"))

    async with file_source(tmp_path) as seen:
        assert await seen.until("z-n1") == 0


async def test_a_file_that_is_gone_before_it_is_read_is_no_error_SRC_008(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.yaml").write_text(manifest("a"))
    async with file_source(tmp_path) as seen:
        await seen.until("a-n1")
        new = tmp_path / "sedLqxjw1"  # as `sed -i` does it
        new.write_text(manifest("b"))
        new.replace(tmp_path / "a.yaml")
        await seen.until("b-n1")
        assert (caplog.messages, seen.source.errors) == ([], {})
        (tmp_path / "c.yaml").symlink_to("nothing")
        await asyncio.sleep(0.1)
        why = "no such file or directory"
        assert seen.source.errors == {f"{tmp_path}/c.yaml": why}


def test_a_listed_file_that_is_gone_has_no_pod_and_no_error_any_more(tmp_path: Path) -> None:
    files = manifest_files.ManifestFiles("n1")
    file = tmp_path / "a.yaml"
    file.write_text("{")
    assert files.read(str(file)) is None
    assert str(file) in files.errors
    file.unlink()
    assert files.read(str(file)) is None
    assert files.errors == {}
