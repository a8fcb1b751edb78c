"""State files: those that kubelet 1.36.2 wrote are read, and written again to the byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kubeobjects.golang.fnv import fnv1a_32
from refkubelet.checkpoints.state_file import StateFile
from refkubelet.container_manager.cpu.state import CpuState, CpuStateFile
from refkubelet.container_manager.cpu.state import from_file as cpu_from_file
from refkubelet.container_manager.cpu.state import to_file as cpu_to_file
from refkubelet.container_manager.memory.checkpoint import MemoryStateFile
from refkubelet.container_manager.memory.checkpoint import from_file as memory_from_file
from refkubelet.container_manager.memory.checkpoint import to_file as memory_to_file
from refkubelet.container_manager.memory.state import Block, MemoryState

CPU_NONE = '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
CPU_STATIC = (
    '{"policyName":"static","defaultCpuSet":"0","entries":{"64b1c24304e7fd47f23274207b8a4c06":'
    '{"first":"1","main":"1"}},"checksum":3776449886}'
)
MEMORY_NONE = '{"policyName":"None","machineState":{},"checksum":4236770233}'
NO_PAGES = '{"total":0,"systemReserved":0,"allocatable":0,"reserved":0,"free":0}'
MEMORY_STATIC = (
    '{"policyName":"Static","machineState":{"0":{"numberOfAssignments":2,"memoryMap":{'
    f'"hugepages-1Gi":{NO_PAGES},"hugepages-2Mi":{NO_PAGES},"memory":{{"total":10295128064,'
    '"systemReserved":105906176,"allocatable":10189221888,"reserved":104857600,'
    '"free":10084364288}},"cells":[0]}},"entries":{"64b1c24304e7fd47f23274207b8a4c06":{"first":['
    '{"numaAffinity":[0],"type":"memory","size":37748736}],"main":[{"numaAffinity":[0],'
    '"type":"memory","size":67108864}]}},"checksum":1166955029}'
)
S = TypeVar("S")
UID = "64b1c24304e7fd47f23274207b8a4c06"


def cpu_file(path: Path, policy: str = "static") -> StateFile[CpuStateFile, CpuState]:
    return StateFile(
        path=path,
        kind="CPU",
        policy=policy,
        shape=CpuStateFile,
        encode=cpu_to_file,
        decode=cpu_from_file,
    )


def memory_file(path: Path, policy: str = "Static") -> StateFile[MemoryStateFile, MemoryState]:
    return StateFile(
        path=path,
        kind="memory",
        policy=policy,
        shape=MemoryStateFile,
        encode=memory_to_file,
        decode=memory_from_file,
    )


def rewritten(file: StateFile[Any, S], text: str, fresh: S) -> tuple[S, str]:
    """The state in a file of that text, and the text that a file of that state gets."""
    file.path.write_text(text)
    state = file.restore(fresh)
    file.path.unlink()
    file.store(state)
    assert [entry.name for entry in file.path.parent.iterdir()] == [file.path.name]
    return state, file.path.read_text()


def test_the_kubelets_cpu_file_is_read_and_written_CG_081(tmp_path: Path) -> None:
    path = tmp_path / "cpu_manager_state"
    assert rewritten(cpu_file(path, "none"), CPU_NONE, CpuState()) == (CpuState(), CPU_NONE)
    state, text = rewritten(cpu_file(path), CPU_STATIC, CpuState())
    assert text == CPU_STATIC
    assert state.of(UID, "main") == state.of(UID, "first") == {1}
    assert state.shared == {0}


def test_the_kubelets_memory_file_is_read_and_written_CG_082(tmp_path: Path) -> None:
    path, fresh = tmp_path / "memory_manager_state", MemoryState()
    assert rewritten(memory_file(path, "None"), MEMORY_NONE, fresh) == (fresh, MEMORY_NONE)
    state, text = rewritten(memory_file(path), MEMORY_STATIC, fresh)
    assert text == MEMORY_STATIC
    assert state.of(UID, "main") == (Block((0,), "memory", 64 << 20),)
    node = state.nodes[0]
    assert (node.assignments, node.cells, node.of("memory").reserved) == (2, (0,), 100 << 20)


def test_the_first_file_is_made_with_its_directory(tmp_path: Path) -> None:
    path = tmp_path / "var/kubelet/cpu_manager_state"
    assert cpu_file(path, "none").restore(CpuState()) == CpuState()
    assert path.read_text() == CPU_NONE


def changed(text: str, **fields: Any) -> str:
    return json.dumps({**json.loads(text), **fields})


@pytest.mark.parametrize(
    ("text", "policy", "words"),
    [
        (CPU_STATIC, "none", 'configured policy "none" differs from state checkpoint policy '
         '"static"'),
        (changed(CPU_STATIC, defaultCpuSet="0-1"), "static", "checkpoint is corrupted"),
        (changed(CPU_STATIC, checksum=7), "static", "checkpoint is corrupted"),
        (changed(CPU_STATIC, entries={}), "static", "checkpoint is corrupted"),
        (
            changed(CPU_STATIC, defaultCpuSet="zero", checksum=0),
            "static",
            'could not parse default cpu set "zero": strconv.Atoi: parsing "zero": invalid syntax',
        ),
        (
            changed(CPU_STATIC, entries={"u": {"c": "1-"}}, checksum=0),
            "static",
            'could not parse cpuset "1-" for container "c" in pod "u": strconv.Atoi: parsing "": '
            "invalid syntax",
        ),
        ("{", "static", "Input data was truncated"),
        ('{"policyName": 1}', "static", "Expected `str`, got `int` - at `$.policyName`"),
    ],
)  # fmt: skip
def test_a_cpu_file_that_cannot_be_used_is_a_start_failure_CG_081(
    tmp_path: Path, text: str, policy: str, words: str
) -> None:
    path = tmp_path / "cpu_manager_state"
    path.write_text(text)
    with pytest.raises(ValueError, match=r".") as raised:
        cpu_file(path, policy).restore(CpuState())
    assert str(raised.value) == (
        f"start cpu manager error: could not restore state from checkpoint: {words}, please drain "
        f'this node and delete the CPU manager checkpoint file "{path}" before restarting Kubelet'
    )
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("text", "policy", "words"),
    [
        (
            MEMORY_STATIC,
            "None",
            '[memorymanager] configured policy "None" differs from state checkpoint policy '
            '"Static"',
        ),
        (changed(MEMORY_STATIC, checksum=7), "Static", "checkpoint is corrupted"),
        (changed(MEMORY_STATIC, entries={}), "Static", "checkpoint is corrupted"),
        (changed(MEMORY_STATIC, machineState={}), "Static", "checkpoint is corrupted"),
    ],
)
def test_a_memory_file_that_cannot_be_used_is_a_start_failure_CG_082(
    tmp_path: Path, text: str, policy: str, words: str
) -> None:
    path = tmp_path / "memory_manager_state"
    path.write_text(text)
    with pytest.raises(ValueError, match=r".") as raised:
        memory_file(path, policy).restore(MemoryState())
    assert str(raised.value) == (
        "start memory manager error: could not restore state from checkpoint: "
        f"{words}, please drain this node and delete the memory manager checkpoint file "
        f'"{path}" before restarting Kubelet'
    )


def test_a_file_without_checksum_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "cpu_manager_state"
    path.write_text(changed(CPU_STATIC, checksum=0))
    assert cpu_file(path).restore(CpuState()).shared == {0}


def test_the_structs_new_name_is_known_too_CG_081() -> None:
    """Kubelet 1.36 reads checksums over the struct's new name, CPUManagerCheckpointV2, as well."""
    printed = (
        "(*state.CPUManagerCheckpointV2){PolicyName:(string)static DefaultCPUSet:(string)0-3 "
        "Entries:(map[string]map[string]string)map[u:map[a:4 b:5]] Checksum:(checksum.Checksum)0}"
    )
    entries = {"u": {"a": "4", "b": "5"}}
    file = CpuStateFile("static", "0-3", entries, fnv1a_32(printed.encode()))
    assert cpu_from_file(file, "static").own_cpus() == {4, 5}


def test_a_directory_that_cannot_be_written_is_a_start_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"could not restore state from checkpoint: .*file"):
        cpu_file(tmp_path / "file/cpu_manager_state").restore(CpuState())


def test_a_later_failure_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cpu_file(tmp_path / "gone/cpu_manager_state").store(CpuState())
    assert "cannot write the state to" in caplog.text
