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


class MemoryStateFile(msgspec.Struct, frozen=True):
    """The file's JSON. `entries` is left out when empty."""

    policyName: str = ""
    machineState: dict[int, NodeMemory] = {}
    entries: dict[str, dict[str, tuple[Block, ...]]] | msgspec.UnsetType = msgspec.UNSET
    checksum: int = 0


def to_file(policy: str, state: MemoryState) -> MemoryStateFile:
    """The file's content for a state."""
    entries = {uid: dict(sorted(pod.items())) for uid, pod in sorted(state.entries.items())}
    nodes = {}
    for number, node in sorted(state.nodes.items(), key=lambda item: str(item[0])):
        tables = dict(sorted(node.tables.items()))
        nodes[number] = msgspec.structs.replace(node, tables=tables)
    file = MemoryStateFile(policy, nodes, entries or msgspec.UNSET)
    return msgspec.structs.replace(file, checksum=_checksum(file, WRITTEN_AS))


def from_file(file: MemoryStateFile, policy: str) -> MemoryState:
    """The state in a file. Raises `StateFileError` if it is corrupt or another policy's."""
    if file.checksum and file.checksum not in (_checksum(file, name) for name in READ_AS):
        raise StateFileError(CORRUPT)
    if file.policyName != policy:
        raise StateFileError(
            f"[memorymanager] configured policy {quoted(policy)} differs from state checkpoint "
            f"policy {quoted(file.policyName)}"
        )
    return MemoryState(file.machineState, _entries(file))


def _entries(file: MemoryStateFile) -> Mapping[str, Mapping[str, tuple[Block, ...]]]:
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


def _go_node(node: NodeMemory) -> str:
    tables = {name: POINTER + _go_table(table) for name, table in node.tables.items()}
    return go_struct(
        {
            "NumberOfAssignments": ("int", str(node.assignments)),
            "MemoryMap": (TABLES, go_map(tables)),
            "Cells": ("[]int", go_slice(map(str, node.cells))),
        }
    )


def _go_table(table: MemoryTable) -> str:
    return go_struct(
        {
            "TotalMemSize": ("uint64", str(table.total)),
            "SystemReserved": ("uint64", str(table.system_reserved)),
            "Allocatable": ("uint64", str(table.allocatable)),
            "Reserved": ("uint64", str(table.reserved)),
            "Free": ("uint64", str(table.free)),
        }
    )


def _go_block(block: Block) -> str:
    return go_struct(
        {
            "NUMAAffinity": ("[]int", go_slice(map(str, block.nodes))),
            "Type": ("v1.ResourceName", block.resource),
            "Size": ("uint64", str(block.size)),
        }
    )
