"""Checkpoint files: the kubelet's own form, written only when something changed (CG-060)."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightkube.models.core_v1 import ResourceClaim, ResourceRequirements
from node_world import running_node
from pods import container, make_pod, manifest

from refkubelet.allocation.checkpoint import GO_TYPE, decode, encode
from refkubelet.allocation.resources import PodResources, resources_of
from refkubelet.allocation.state import ACTUATED_FILE, ALLOCATED_FILE, ResourceState
from refkubelet.checkpoints.content import CheckpointError, StateFileError, checksum
from refkubelet.model.pod import uid as uid_of

WRITTEN_BY_A_KUBELET = (
    r'{"data":"{\"entries\":{\"49c7fcc5-b2e1-4ab6-81f5-7b2fd3a5ba0e\":{\"ContainerResources\":'
    r"{\"main\":{\"limits\":{\"cpu\":\"500m\",\"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"100m\","
    r'\"memory\":\"64Mi\"}},\"other\":{}},\"PodLevelResources\":null}}}","checksum":0}'
)

amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "hugepages-2Mi"]), st.sampled_from(["1", "250m", "64Mi"])
)
requirements = st.builds(
    lambda limits, requests: ResourceRequirements(limits=limits or None, requests=requests or None),
    amounts,
    amounts,
)
names = st.text(alphabet="abc-09", min_size=1, max_size=5)
pods = st.builds(PodResources, st.dictionaries(names, requirements), st.none() | requirements)


@given(st.dictionaries(names, pods))
def test_what_is_written_is_read_back_CG_060(entries: dict[str, PodResources]) -> None:
    assert decode(encode(entries)) == entries


def test_the_text_is_the_kubelets_own_CG_060() -> None:
    pod = make_pod(container(cpu="0.1/0.5", memory="64Mi/1024Mi"), "other")
    text = encode({"49c7fcc5-b2e1-4ab6-81f5-7b2fd3a5ba0e": resources_of(pod)})
    data = json.loads(WRITTEN_BY_A_KUBELET)["data"]
    assert json.loads(text) == {"data": data, "checksum": checksum(GO_TYPE, data)}
    assert " " not in text


def test_claims_are_kept_CG_060() -> None:
    claimed = ResourceRequirements(claims=[ResourceClaim(name="gpu", request="one")])
    entries = {"u-1": PodResources({"main": claimed})}
    assert r"\"claims\":[{\"name\":\"gpu\",\"request\":\"one\"}]" in encode(entries)
    assert decode(encode(entries)) == entries


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "wanted JSON"),
        ("[]", 'a text named "data"'),
        (r'{"data":"\ud800","checksum":5}', "halves of characters"),
        ('{"data":"{}","checksum":5}', "its checksum is 5, that of its data is 694314937"),
        (json.dumps({"data": "no", "checksum": checksum(GO_TYPE, "no")}), "its data is invalid"),
        (
            json.dumps({"data": '{"entries":7}', "checksum": checksum(GO_TYPE, '{"entries":7}')}),
            "entries",
        ),
    ],
)
def test_a_damaged_file_is_one_clear_error_CG_060(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / ALLOCATED_FILE
    file.write_text(text)
    with pytest.raises(StateFileError, match=words) as failed:
        ResourceState(file)
    told = str(failed.value)
    assert str(file) in told
    assert "checkpoint is corrupted" in told
    assert "delete" in told
    assert "\n" not in told
    with pytest.raises(CheckpointError):
        decode(text)


def test_a_file_that_cannot_be_read_is_one_clear_error_CG_060(tmp_path: Path) -> None:
    (tmp_path / ALLOCATED_FILE).mkdir()
    with pytest.raises(StateFileError, match="is a directory"):
        ResourceState(tmp_path / ALLOCATED_FILE)


def writes(file: Path) -> int:
    """Every write makes another file."""
    return os.stat(file).st_ino


def test_nothing_is_written_unless_something_changed_CG_060(tmp_path: Path) -> None:
    file = tmp_path / "root" / ALLOCATED_FILE
    state = ResourceState(file)
    assert not file.exists()
    one = resources_of(make_pod(container(cpu="1/2", memory="1Gi/2Gi")))
    state.set_pod("u-1", one)
    assert not file.exists()
    state.save()
    first = writes(file)
    for _ in range(3):
        state.set_pod("u-1", one)
        state.set_container("u-1", "main", one.containers["main"])
        state.save()
    assert writes(file) == first
    state.set_container("u-1", "main", ResourceRequirements(requests={"cpu": "3"}))
    state.save()
    assert writes(file) != first
    assert ResourceState(file).container("u-1", "main") == state.container("u-1", "main")


def test_a_removal_reaches_the_file_with_the_next_write_CG_060(tmp_path: Path) -> None:
    file = tmp_path / ALLOCATED_FILE
    state = ResourceState(file)
    one = resources_of(make_pod(container(cpu="1/2", memory="1Gi/2Gi")))
    for uid in ("u-1", "u-2", "u-3"):
        state.set_pod(uid, one)
    state.save()
    before = file.read_text()
    state.remove("u-1")
    state.keep_only(["u-3", "u-4"])
    assert state.pod_uids() == ("u-3",)
    state.save()
    assert file.read_text() == before
    state.set_pod("u-5", one)
    state.save()
    assert ResourceState(file).pod_uids() == ("u-3", "u-5")


def test_pod_level_resources_are_kept_beside_the_containers_CG_060(tmp_path: Path) -> None:
    state = ResourceState(tmp_path / ALLOCATED_FILE)
    own = ResourceRequirements(limits={"cpu": "2"})
    state.set_pod_level("u-1", own)
    state.set_container("u-1", "main", ResourceRequirements(requests={"cpu": "1"}))
    state.save()
    known = ResourceState(tmp_path / ALLOCATED_FILE).pod("u-1")
    assert known is not None
    assert known.pod_level == own
    assert set(known.containers) == {"main"}


@pytest.mark.virtual_time
async def test_calls_that_wait_at_one_time_share_a_write_CG_060(tmp_path: Path) -> None:
    file = tmp_path / ALLOCATED_FILE
    state = ResourceState(file)
    one = resources_of(make_pod(container(cpu="1/2", memory="1Gi/2Gi")))
    seen: list[int] = []

    async def start(number: int) -> None:
        state.set_pod(f"u-{number}", one)
        await state.saved()
        seen.append(writes(file))

    await asyncio.gather(*(start(number) for number in range(20)))
    assert len(set(seen)) == 1
    assert len(ResourceState(file).pod_uids()) == 20
    await start(3)  # nothing new
    assert len(set(seen)) == 1


@pytest.mark.virtual_time
async def test_a_write_that_fails_is_tried_again_CG_060(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / ALLOCATED_FILE
    state = ResourceState(file)
    obstacle = tmp_path / f".{ALLOCATED_FILE}.tmp"
    obstacle.mkdir()

    state.set_pod("u-1", PodResources())
    with pytest.raises(OSError, match="directory"):
        await state.saved()
    state.save_soon()
    await asyncio.sleep(0.1)
    assert "cannot write" in caplog.text
    obstacle.rmdir()
    await state.saved()
    assert ResourceState(file).pod_uids() == ("u-1",)


@pytest.mark.virtual_time
async def test_a_call_that_waits_for_a_write_gets_any_error_CG_060(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprise(*_: object, **__: object) -> None:
        raise KeyError("surprise")

    state = ResourceState(tmp_path / ALLOCATED_FILE)
    state.set_pod("u", resources_of(make_pod(container(cpu="1"))))
    monkeypatch.setattr("refkubelet.allocation.state.write_whole", surprise)
    async with asyncio.timeout(5):
        with pytest.raises(KeyError):
            await state.saved()
    monkeypatch.undo()
    await state.saved()
    assert (tmp_path / ALLOCATED_FILE).exists()


@pytest.mark.virtual_time
async def test_the_change_of_a_full_node_is_written_before_saved_returns_CG_060(
    tmp_path: Path,
) -> None:
    file = tmp_path / ACTUATED_FILE
    state = ResourceState(file)
    names = [f"a-rather-long-name-of-a-container-{n}" for n in range(10)]
    amounts = {"cpu": "100m/500m", "memory": "128Mi/1024Mi"}
    pod = resources_of(make_pod(*(container(name, **amounts) for name in names)))
    for number in range(250):
        state.set_pod(f"00000000-0000-4000-8000-{number:012}", pod)
    state.save()
    state.set_container("u", "last", ResourceRequirements(limits={"cpu": "1"}))
    await state.saved()
    assert ResourceState(file).container("u", "last") is not None


@pytest.mark.virtual_time
async def test_what_a_large_file_lacks_is_written_when_the_kubelet_ends_CG_060(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refkubelet.allocation.state.LARGE", 1)
    monkeypatch.setattr("refkubelet.allocation.state.LARGE_DELAY_S", 3600.0)
    async with running_node(tmp_path) as node:
        node.apply(manifest(container(cpu="1m/2m"), name="web"))
        await node.until(lambda: node.phase("web-golden") == "Running", 10)
        (pod,) = node.shown()
        await node.stop()
        for name in (ALLOCATED_FILE, ACTUATED_FILE):
            state = ResourceState(node.kubelet.deps.directories.root / name)
            assert state.container(uid_of(pod), "main") is not None, name


def test_a_write_that_fails_at_the_end_is_told_CG_060(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = ResourceState(tmp_path / ALLOCATED_FILE)
    (tmp_path / f".{ALLOCATED_FILE}.tmp").mkdir()
    state.set_pod("u-1", PodResources())
    state.save_at_end()
    assert f"cannot write {ALLOCATED_FILE}" in caplog.text
