"""What counts of the files in a volume, in the summary (EVIC-029.7)."""

import os
from typing import Any, Final

from kubelet_conformance.cases.volumes.common import VOLUME, main
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

NEEDS: Final = [Feature.API, Feature.STATUS]
OFTEN: Final[dict[str, Any]] = {"volumeStatsAggPeriod": "5s"}
MEASURED_S: Final = 16.0
"""Until a volume was measured anew (EVIC-103)."""
SIZE: Final = 1 << 20
BLOCKS: Final = 1 << 16
"""What directories and the bookkeeping of a filesystem may take."""


async def measured(node: Node, volume: str) -> dict[str, Any]:
    """What the summary says of that volume of the pod web after another measurement; empty:
    nothing."""
    await node.run_for(MEASURED_S)
    (row,) = [p for p in (await node.kubelet.summary())["pods"] if p["podRef"]["name"] == "web"]
    volumes = {each["name"]: each for each in row.get("volume", [])}
    return dict(volumes.get(volume, {}))


async def run_with_empty_dir(node: Node) -> None:
    """Run a pod with an emptyDir."""
    await node.api.create_pod(pod("web", main(), volumes=[{"name": VOLUME, "emptyDir": {}}]))
    await node.wait_running("web")


@conformance(id="summary-hard-links", rules=["EVIC-029.7"], needs=NEEDS, node_config=OFTEN)
async def what_has_several_names_counts_once(node: Node) -> None:
    """A file counts once, however many names it has, with the blocks that it takes: a file that is
    mostly a hole takes few. Files and directories are counted, links are not followed."""
    await run_with_empty_dir(node)
    before = await measured(node, VOLUME)
    top = node.machine.made_volume("web", VOLUME)
    (top / "dir").mkdir()
    (top / "dir" / "file").write_bytes(b"x" * SIZE)
    for number in range(4):
        os.link(top / "dir" / "file", top / f"name-{number}")
    with (top / "hole").open("wb") as hole:
        hole.truncate(64 * SIZE)
    os.symlink("dir/file", top / "link")
    after = await measured(node, VOLUME)
    grown = after["usedBytes"] - before["usedBytes"]
    expect(node, SIZE <= grown <= SIZE + BLOCKS, f"{SIZE} bytes more", grown)
    more = after["inodesUsed"] - before["inodesUsed"]
    expect_equal(node, more, 4, "directory, file, hole and link")
    (top / "dir" / "file").unlink()
    left = await measured(node, VOLUME)
    expect(node, left["usedBytes"] >= after["usedBytes"] - BLOCKS, "it has other names", left)


@conformance(
    id="summary-volumes-off",
    rules=["EVIC-029.7"],
    needs=NEEDS,
    node_config={"volumeStatsAggPeriod": "-1s"},
)
async def volumes_may_be_left_unmeasured(node: Node) -> None:
    """With a negative volumeStatsAggPeriod no volume is measured, and none is in the summary."""
    await run_with_empty_dir(node)
    expect_equal(node, await measured(node, VOLUME), {}, "what is said of the volume")
