"""What containers put into volumes while the kubelet works on them: odd files, deep trees, names
that are now a directory and now something else (NODE-230)."""

import asyncio
from pathlib import Path
from typing import Any, Final

from fakecri.csi import FakeCsiDriver
from kubelet_conformance.cases.volumes.common import UPDATE_S
from kubelet_conformance.cases.volumes.csi.common import (
    IN,
    LONG,
    a_driver,
    bind,
    end_pod,
    inline,
    run_pod,
    source,
    user,
    wait_calls,
)
from kubelet_conformance.cases.volumes.csi.groups import GROUP, POD
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.machines.racing import (
    make_outside,
    opened,
    put_deep,
    put_odd_files,
    put_pairs,
    racing,
    remove_deep,
    state_of,
    status_deep,
)
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

LEVELS: Final = 1500
"""More than an interpreter's frames, less than the longest path has letters."""
MANY: Final = 3000
TIMES: Final = 8
PAIRS: Final = 25
AGAIN: Final[dict[str, Any]] = {
    "fsGroupPolicy": "File",
    "requiresRepublish": True,
    "volumeLifecycleModes": ["Persistent", "Ephemeral"],
}
"""Of a driver whose volumes are published at each sync of their pod, and are the group's."""


async def published(node: Node) -> tuple[FakeCsiDriver, Path]:
    """The driver, and the volume of a pod of the group."""
    driver = await a_driver(node, **AGAIN)
    await bind(node, source())
    await run_pod(node, user(**POD))
    return driver, node.storage.target_path("web", "pv")


async def again(node: Node, driver: FakeCsiDriver, times: int = 2) -> None:
    """Run until the volume was published so often once more, and given to the group but once."""
    before = len(driver.requests(IN[1]))
    await wait_calls(node, driver, IN[1], before + times, within_s=times * UPDATE_S)


def outside_of(target: Path) -> Path:
    """A directory beside those of volumes."""
    return make_outside(target.parents[5] / "outside")


@conformance(id="csi-group-of-odd-files", rules=["NODE-230.2", "NODE-212.4"], needs=LONG)
async def a_volume_is_given_to_the_group_whatever_is_in_it(node: Node) -> None:
    """FIFOs, sockets, names of 255 bytes and names that are no text are given to the group as any
    file is, without being opened; of a link the link itself, never what it leads to."""
    driver, target = await published(node)
    outside = outside_of(target)
    names, before = put_odd_files(target, outside), state_of(outside)
    for name in names:
        (target / name).chmod(0o600)
    await again(node, driver)
    statuses = [(target / name).stat() for name in names]
    modes = {(status.st_gid, oct(status.st_mode & 0o777)) for status in statuses}
    expect_equal(node, modes, {(GROUP, "0o660")}, "group and mode of all of them")
    expect_equal(node, (target / "link").lstat().st_gid, GROUP, "group of the link")
    expect_equal(node, state_of(outside), before, "what the links lead to")
    await end_pod(node)


@conformance(id="csi-group-of-a-deep-tree", rules=["NODE-230.1"], needs=LONG)
async def a_volume_is_given_to_the_group_however_deep_it_is(node: Node) -> None:
    """A tree of 1,500 levels, and a directory with thousands of entries, are given to the group
    like any other."""
    driver, target = await published(node)
    try:
        put_deep(target, LEVELS)
        (target / "wide").mkdir()
        for number in range(MANY):
            (target / "wide" / str(number)).touch()
        await again(node, driver)
        owner = status_deep(target, LEVELS)
        expect_equal(node, (owner[0], oct(owner[1])), (GROUP, "0o660"), "the deepest file")
        groups = {path.stat().st_gid for path in (target / "wide").iterdir()}
        expect_equal(node, groups, {GROUP}, "groups of the many")
        expect_equal(node, node.events("FailedMount", pod="web"), [], "events FailedMount")
        await run_pod(node, inline("other"))
    finally:
        remove_deep(target)


@conformance(
    id="csi-group-while-it-changes",
    rules=["NODE-230.2", "NODE-230.3"],
    needs=[*LONG, Feature.PROGRAM_TIME],  # the container that races is a program of this machine
)
async def a_container_that_exchanges_directories_holds_nothing_up(node: Node) -> None:
    """A container exchanges directories of its volume for FIFOs and for links without a pause,
    while the volume is published again and again. No FIFO is opened, nothing outside changes, and
    other pods start."""
    driver, target = await published(node)
    outside, note = outside_of(target), target.parents[5] / "opened"
    pairs, before = put_pairs(target, outside, PAIRS), state_of(outside)
    with racing(target, pairs, note):
        for _ in range(TIMES):
            await again(node, driver, 1)
            await asyncio.sleep(0)
        await run_pod(node, inline("other"))
    expect_equal(node, opened(note), [], "FIFOs that somebody had open")
    expect_equal(node, state_of(outside), before, "what the links lead to")
