"""Container logs: rotated when they are too big, compressed, and limited in number
(GC-201..203)."""

from conformance.harness import limits
from conformance.harness.expect import expect, expect_equal
from conformance.harness.manifests import container, pod
from conformance.harness.node import Node
from conformance.harness.workload import runs
from conformance.registry import Feature, conformance

STATUS, FAULTS = Feature.STATUS, Feature.FAULTS
PERIOD_S = 3.0  # the shortest that is allowed
MAX_FILES = 3
SMALL_LOGS = {
    "containerLogMaxSize": "1Ki",
    "containerLogMaxFiles": MAX_FILES,
    "containerLogMonitorInterval": f"{PERIOD_S:g}s",
}
LINE = "x" * 2000
WITHIN_S = PERIOD_S + limits.NOTICE_S


@conformance(id="log-rotation", rules=["GC-202", "GC-203"], needs=[STATUS], node_config=SMALL_LOGS)
async def a_big_log_is_rotated_and_older_ones_are_compressed(node: Node) -> None:
    """A log of the maximum size is renamed and reopened, the older one is compressed, and there are
    never more files than allowed."""
    chatty = runs(prints=LINE, prints_at_s=(0.0, 4.0, 8.0, 12.0, 16.0))
    await node.apply_static(pod("web", container("main", chatty)))
    await node.wait_running("web")
    most = 0
    while node.count("ReopenContainerLog", container="main") < 4:
        await node.run_for(0.5)
        most = max(most, len(node.machine.log_files("web", "main")))
        expect(node, node.now_s < 16 + 2 * WITHIN_S + limits.START_S, "four rotations", node.now_s)
    await node.run_for(limits.NOTICE_S)
    files = node.machine.log_files("web", "main")
    expect(node, max(most, len(files)) <= MAX_FILES, f"at most {MAX_FILES} files", most)
    expect_equal(node, [f.endswith(".gz") for f in files], [False, True, False], "files with .gz")
    expect_equal(node, files[0], "0.log", "name of the current log")
    expect(node, all(f.startswith("0.log.2") for f in files[1:]), "other names 0.log.2...", files)
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(
    id="log-not-reopened", rules=["GC-203"], needs=[STATUS, FAULTS], node_config=SMALL_LOGS
)
async def a_log_that_cannot_be_reopened_keeps_its_name(node: Node) -> None:
    """When the runtime cannot reopen the log, the file gets its name back and is rotated later."""
    chatty = runs(prints=LINE)
    with node.runtime.on("ReopenContainerLog").fails("UNKNOWN", "not now"):
        await node.apply_static(pod("web", container("main", chatty)))
        await node.run_until(
            lambda: node.count("ReopenContainerLog", container="main"),
            within_s=limits.START_S + WITHIN_S,
            what="ReopenContainerLog",
        )
        await node.run_for(0.5)
        expect_equal(node, node.machine.log_files("web", "main"), ["0.log"], "log files")
    await node.run_until(
        lambda: len(node.machine.log_files("web", "main")) == 2,
        within_s=WITHIN_S,
        what="two log files",
    )


@conformance(
    id="log-small",
    rules=["GC-202", "GC-201"],
    needs=[STATUS],
    node_config={"containerLogMonitorInterval": "3s"},
)
async def a_small_log_is_left_alone(node: Node) -> None:
    """A log below the maximum size is neither renamed nor reopened."""
    await node.apply_static(pod("web", container("main", runs(prints=LINE))))
    await node.wait_running("web")
    await node.run_for(2 * PERIOD_S)
    expect_equal(node, node.count("ReopenContainerLog"), 0, "reopened logs")
    expect_equal(node, node.machine.log_files("web", "main"), ["0.log"], "log files")
