"""State that a crash left half-written, or another program spoiled: read without a traceback, and
either done without or told in one clear error, as each file's rule says (CG-060, CG-081, CG-082,
CG-084, BACK-211, NODE-064)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from node_world import Node, running_node
from pods import container, manifest

from fakecri.deviceplugin import FakeDevicePlugin, InProcessPlugins
from kubelet_conformance.harness.kubelets.base import KubeletDied
from refkubelet.checkpoints.content import checksum
from refkubelet.container_manager.devices import checkpoint as devices
from refkubelet.kuberuntime.images.pull_record_files import PullRecordFiles
from refkubelet.kuberuntime.images.pull_records import Access, PulledRecord, SecretUse
from refkubelet.node.shutdown_state import load_times

pytestmark = pytest.mark.virtual_time

WIDGET = "vendor.example/widget"
REFUSED = {  # upstream exits, too: only the file knows what containers were given
    "actuated_pods_state",
    "allocated_pods_state",
    "cpu_manager_state",
    "memory_manager_state",
    "pods/userns",
}


def other_contents(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    yield "empty", b""
    yield "half", data[: len(data) // 2]
    yield "all but the end", data[:-2]
    yield "zeros", bytes(len(data))
    yield "no UTF-8", b"\xff\xfe" + data
    yield "noise", bytes(range(256)) * 8
    for text in ("null", "[]", "{}", "7", '"x"', "true", "[null]", '{"Data": 7}', "{" * 3):
        yield text, text.encode()
    yield "deep", b"[" * 100_000
    yield "a long number", b"1" * 5000
    for place, value in _spoiled(json.loads(data)):
        yield place, json.dumps(value).encode()
    for place, value in _with_a_checksum(name, json.loads(data)):
        yield f"{place}, checksum", json.dumps(value).encode()


def _spoiled(value: Any) -> Iterator[tuple[str, Any]]:
    """The right form, with a value of another kind in each place."""
    for place in _places(value):
        for odd in (None, -1, "x", [], {"x": None}):
            yield f"{'.'.join(map(str, place))} = {odd!r}", _with(value, place, odd)


def _with_a_checksum(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Spoiled, with a checksum that fits."""
    if name.endswith("pods_state"):
        for place, spoiled in _spoiled(json.loads(value["data"])):
            text = json.dumps(spoiled, separators=(",", ":"))
            with suppress(Exception):  # there is none for what has another form
                yield place, {"data": text, "checksum": checksum("string", text)}
    if name.endswith("manager_state"):
        for place, spoiled in _spoiled(value):
            yield place, spoiled | {"checksum": 0}
    if name == "kubelet_internal_checkpoint":
        for place, spoiled in _spoiled(value["Data"]):
            with suppress(Exception):
                yield place, {"Data": spoiled, "Checksum": devices._checksum(spoiled)}


def _places(value: Any) -> Iterator[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in children:
        yield (key,)
        if isinstance(child, (dict, list)):
            yield from ((key, *rest) for rest in _places(child))


def _with(value: Any, place: tuple[Any, ...], odd: Any) -> Any:
    copy: Any = value.copy()
    copy[place[0]] = odd if len(place) == 1 else _with(value[place[0]], place[1:], odd)
    return copy


def state_files(root: Path) -> list[Path]:
    """All that a kubelet wrote but what belongs to pods: volumes, logs, /etc/hosts."""
    names = sorted(p.relative_to(root) for p in root.rglob("*") if p.is_file())
    return [n for n in names if n.parts[0] != "pods" or n.parts[2:] == ("userns",)]


async def full_node(node: Node) -> None:
    """One that writes every state file."""
    node.world.device_plugins = InProcessPlugins()
    await node.start()
    await node.clock.sleep(1)
    await node.world.device_plugins.start(FakeDevicePlugin(WIDGET, ["a"]))
    limits = {WIDGET: "1", "cpu": "1", "memory": "1Gi"}
    node.apply(manifest(container(limits=limits), hostUsers=False))
    await node.until(lambda: node.phase("web-golden") == "Running", 10)
    await node.clock.sleep(5)


SETTINGS: dict[str, Any] = {
    "cpuManagerPolicy": "static",
    "memoryManagerPolicy": "Static",
    "kubeReserved": {"cpu": "1", "memory": "1Gi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}


async def next_start(node: Node) -> str | None:
    """Start another kubelet, and see that its pod runs; why it refused, None: it did not."""
    node.world.device_plugins = InProcessPlugins()
    try:
        await node.start()
    except KubeletDied as died:
        return str(died)
    await node.until(lambda: node.phase("web-golden") is not None, 10)
    await node.clock.sleep(3)
    await node.stop()
    return None


FILES = (
    "actuated_pods_state",
    "allocated_pods_state",
    "cpu_manager_state",
    "device-plugins/kubelet_internal_checkpoint",
    "memory_manager_state",
    "pods/userns",
)


@pytest.mark.parametrize("name", FILES)
async def test_a_spoiled_state_file_is_one_error_or_done_without(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "kubelet"
    odd: dict[str, str] = {}

    async with running_node(tmp_path, started=False, **SETTINGS) as node:
        await full_node(node)
        await node.stop()
        assert tuple(sorted(without_uid(file) for file in state_files(root))) == FILES
        file = next(root / f for f in state_files(root) if without_uid(f) == name)
        shutil.copytree(root, tmp_path / "good")
        for what, data in other_contents(file.name, file.read_bytes()):
            shutil.rmtree(root)
            shutil.copytree(tmp_path / "good", root)
            file.write_bytes(data)
            caplog.clear()
            try:
                refused = await next_start(node)
            except Exception as error:
                odd[what] = repr(error)
                continue
            if refused is not None and (name not in REFUSED or "\n" in refused.strip()):
                odd[what] = refused
            if "Traceback" in caplog.text or "unexpected" in caplog.text:
                odd[what] = caplog.text
    assert odd == {}


def without_uid(file: Path) -> str:
    return "/".join(part for n, part in enumerate(file.parts) if (file.parts[0], n) != ("pods", 1))


TIMES = b'{"startTime":"2026-01-01T00:00:00.000000000Z","endTime":"0001-01-01T00:00:00Z"}'


def test_spoiled_times_of_a_shutdown_are_ignored_NODE_064(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "graceful_node_shutdown_state"
    file.write_bytes(TIMES)
    assert load_times(file).began_ns is not None
    for _, data in other_contents(file.name, TIMES):
        file.write_bytes(data)
        load_times(file)
    assert "Traceback" not in caplog.text


RECORD = PulledRecord(
    "sha256:1", 10**18, {"busybox": Access(secrets=(SecretUse("ns", "s", "u", "h"),))}
)


def test_spoiled_records_of_pulls_are_done_without_BACK_211(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = PullRecordFiles(tmp_path)
    files.write(RECORD)
    files.write_intent("busybox")
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == 2
    for path in written:
        good = path.read_bytes()
        for what, data in other_contents(path.name, good):
            path.write_bytes(data)
            files.records()
            files.intents()
            try:
                files.read("sha256:1")
            except (OSError, ValueError):
                pass
            except Exception as error:
                pytest.fail(f"{what}: {error!r}")
        path.write_bytes(good)
    assert files.read("sha256:1") == RECORD
    assert "Traceback" not in caplog.text
