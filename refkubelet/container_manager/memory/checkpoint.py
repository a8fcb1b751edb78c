"""Encodes and decodes the memory manager's file, `memory_manager_state`. Pure.

Rules: CG-082. Upstream: pkg/kubelet/cm/memorymanager/state: checkpoint.go, state_checkpoint.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kubeobjects.golang.strconv import quoted
from refkubelet.checkpoints.content import (
    CORRUPT,
    StateFileError,
    checksum,
    go_map,
    go_slice,
    go_struct,
)
from refkubelet.container_manager.memory.state import Block, MemoryState, MemoryTable, NodeMemory

FILE_NAME: Final = "memory_manager_state"
WRITTEN_AS: Final = "*state.MemoryManagerCheckpoint"  # the Go type that the checksum covers
READ_AS: Final = (WRITTEN_AS, "*state.MemoryManagerCheckpointV1")
TABLES: Final = "map[v1.ResourceName]*state.MemoryTable"
POINTER: Final = "<*>"


class TableJson(msgspec.Struct, frozen=True):
    """A `MemoryTable`."""

    total: int = 0
    systemReserved: int = 0
    allocatable: int = 0
    reserved: int = 0
    free: int = 0


class NodeJson(msgspec.Struct, frozen=True):
    """A `NodeMemory`."""

    numberOfAssignments: int = 0
    memoryMap: dict[str, TableJson] = {}
    cells: tuple[int, ...] = ()


class BlockJson(msgspec.Struct, frozen=True):
    """A `Block`."""

    numaAffinity: tuple[int, ...] = ()
    type: str = ""
    size: int = 0


EntriesJson = dict[str, dict[str, tuple[BlockJson, ...]]]


class MemoryStateFile(msgspec.Struct, frozen=True):
    """The file's JSON. `entries` is left out when empty."""

    policyName: str = ""
    machineState: dict[int, NodeJson] = {}
    entries: EntriesJson | msgspec.UnsetType = msgspec.UNSET
    checksum: int = 0


def to_file(policy: str, state: MemoryState) -> MemoryStateFile:
    """The file's content for a state."""
    entries: EntriesJson = {
        uid: {
            name: tuple(BlockJson(b.nodes, b.resource, b.size) for b in pod[name])
            for name in sorted(pod)
        }
        for uid, pod in sorted(state.entries.items())
    }
    nodes = {number: _node_json(state.nodes[number]) for number in sorted(state.nodes, key=str)}
    file = MemoryStateFile(policy, nodes, entries or msgspec.UNSET)
    return msgspec.structs.replace(file, checksum=_checksum(file, WRITTEN_AS))


def _node_json(node: NodeMemory) -> NodeJson:
    tables = {
        name: TableJson(
            total=t.total,
            systemReserved=t.system_reserved,
            allocatable=t.allocatable,
            reserved=t.reserved,
            free=t.free,
        )
        for name, t in sorted(node.tables.items())
    }
    return NodeJson(node.assignments, tables, node.cells)


def from_file(file: MemoryStateFile, policy: str) -> MemoryState:
    """The state in a file. Raises `StateFileError` if it is corrupt or another policy's."""
    if file.checksum and file.checksum not in (_checksum(file, name) for name in READ_AS):
        raise StateFileError(CORRUPT)
    if file.policyName != policy:
        raise StateFileError(
            f"[memorymanager] configured policy {quoted(policy)} differs from state checkpoint "
            f"policy {quoted(file.policyName)}"
        )
    nodes = {
        number: NodeMemory(
            {
                name: MemoryTable(
                    total=t.total,
                    system_reserved=t.systemReserved,
                    allocatable=t.allocatable,
                    reserved=t.reserved,
                    free=t.free,
                )
                for name, t in node.memoryMap.items()
            },
            node.cells,
            node.numberOfAssignments,
        )
        for number, node in file.machineState.items()
    }
    entries = {
        uid: {
            name: tuple(Block(b.numaAffinity, b.type, b.size) for b in blocks)
            for name, blocks in pod.items()
        }
        for uid, pod in _entries(file).items()
    }
    return MemoryState(nodes, entries)


def _entries(file: MemoryStateFile) -> Mapping[str, Mapping[str, tuple[BlockJson, ...]]]:
    return {} if isinstance(file.entries, msgspec.UnsetType) else file.entries


def _checksum(file: MemoryStateFile, go_type: str) -> int:
    """The checksum of the file as a Go value of type `go_type`."""
    nodes = {number: POINTER + _go_node(node) for number, node in file.machineState.items()}
    entries = {
        uid: go_map({name: go_slice(map(_go_block, blocks)) for name, blocks in pod.items()})
        for uid, pod in _entries(file).items()
    }
    return checksum(
        go_type,
        go_struct(
            {
                "PolicyName": ("string", file.policyName),
                "MachineState": ("state.NUMANodeMap", go_map(nodes)),
                "Entries": ("state.ContainerMemoryAssignments", go_map(entries)),
                "Checksum": ("checksum.Checksum", "0"),
            }
        ),
    )


def _go_node(node: NodeJson) -> str:
    tables = {name: POINTER + _go_table(table) for name, table in node.memoryMap.items()}
    return go_struct(
        {
            "NumberOfAssignments": ("int", str(node.numberOfAssignments)),
            "MemoryMap": (TABLES, go_map(tables)),
            "Cells": ("[]int", go_slice(map(str, node.cells))),
        }
    )


def _go_table(table: TableJson) -> str:
    return go_struct(
        {
            "TotalMemSize": ("uint64", str(table.total)),
            "SystemReserved": ("uint64", str(table.systemReserved)),
            "Allocatable": ("uint64", str(table.allocatable)),
            "Reserved": ("uint64", str(table.reserved)),
            "Free": ("uint64", str(table.free)),
        }
    )


def _go_block(block: BlockJson) -> str:
    return go_struct(
        {
            "NUMAAffinity": ("[]int", go_slice(map(str, block.numaAffinity))),
            "Type": ("v1.ResourceName", block.type),
            "Size": ("uint64", str(block.size)),
        }
    )
