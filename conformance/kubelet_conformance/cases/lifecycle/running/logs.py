"""Container logs: rotated when they are too big, compressed, and limited in number
(GC-201..203)."""

import re

from fakecri import prints
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, runs
from kubelet_conformance.registry import Feature, conformance

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


@conformance(
    id="log-rotation",
    rules=["GC-203.2", "GC-203.3", "GC-203.4", "GC-203.5", "GC-201.1", "GC-201.2", "GC-201.4"],
    needs=[STATUS],
    node_config=SMALL_LOGS,
    alone=True,
)
async def a_big_log_is_rotated_and_older_ones_are_compressed(node: Node) -> None:
    """A log of the maximum size is renamed and reopened, the older one is compressed, and there are
    never more files than allowed."""
    chatty = runs(*(prints(LINE, at_s=at_s) for at_s in (0.0, 4.0, 8.0, 12.0, 16.0)))
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
    names = [re.fullmatch(r"0\.log\.2\d{7}-\d{6}(\.gz)?", file) for file in files[1:]]
    expect(node, all(names), "other names 0.log.YYYYMMDD-HHMMSS", files)
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(
    id="log-not-reopened",
    rules=["GC-203.6"],
    needs=[STATUS, FAULTS],
    node_config=SMALL_LOGS,
    alone=True,
)
async def a_log_that_cannot_be_reopened_keeps_its_name(node: Node) -> None:
    """When the runtime cannot reopen the log, the file gets its name back and is rotated later."""
    chatty = runs(prints(LINE))
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


@conformance(id="log-directory-made", rules=["LIFE-133.8"], needs=[STATUS, FAULTS], alone=True)
async def a_pod_has_its_log_directory_before_its_sandbox(node: Node) -> None:
    """While RunPodSandbox is under way the log directory of the pod is there already."""
    with node.runtime.on("RunPodSandbox").delays(1):
        await node.apply_static(pod("web"))
        await node.run_until(lambda: node.count("RunPodSandbox"), within_s=limits.START_S)
        expect_equal(node, node.machine.log_directories("web"), 1, "log directories")


@conformance(
    id="log-small",
    rules=["GC-202.2", "GC-201.1"],
    needs=[STATUS],
    node_config={"containerLogMonitorInterval": "3s"},
)
async def a_small_log_is_left_alone(node: Node) -> None:
    """A log below the maximum size is neither renamed nor reopened."""
    await node.apply_static(pod("web", container("main", runs(prints(LINE)))))
    await node.wait_running("web")
    await node.run_for(2 * PERIOD_S)
    expect_equal(node, node.count("ReopenContainerLog"), 0, "reopened logs")
    expect_equal(node, node.machine.log_files("web", "main"), ["0.log"], "log files")


@conformance(
    id="log-size-exact", rules=["GC-202.2"], needs=[STATUS], node_config=SMALL_LOGS, alone=True
)
async def a_log_of_exactly_the_maximum_size_is_rotated(node: Node) -> None:
    """A log one byte below containerLogMaxSize stays; with that byte it is rotated."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    node.machine.write_log("web", "main", "0.log", "x" * 1023)
    await node.run_for(WITHIN_S)
    expect_equal(node, node.machine.log_files("web", "main"), ["0.log"], "log files at 1023 bytes")
    node.machine.write_log("web", "main", "0.log", "x" * 1024)
    await node.run_until(
        lambda: len(node.machine.log_files("web", "main")) == 2,
        within_s=WITHIN_S,
        what="two log files at 1024 bytes",
    )


@conformance(
    id="log-of-the-dead", rules=["GC-202.1"], needs=[STATUS], node_config=SMALL_LOGS, alone=True
)
async def the_log_of_a_dead_container_is_left_alone(node: Node) -> None:
    """The log of a container that does not run is not rotated, however big it is."""
    await node.apply_static(pod("job", container("main", exits(0)), restartPolicy="Never"))
    await node.run_until(lambda: node.phase("job") == "Succeeded", within_s=limits.START_S)
    node.machine.write_log("job", "main", "0.log", LINE)
    await node.run_for(2 * WITHIN_S)
    expect_equal(node, node.machine.log_files("job", "main"), ["0.log"], "log files")
    expect_equal(node, node.count("ReopenContainerLog"), 0, "reopened logs")


@conformance(
    id="log-missing", rules=["GC-202.3"], needs=[STATUS], node_config=SMALL_LOGS, alone=True
)
async def a_missing_log_is_opened_anew(node: Node) -> None:
    """When the log of a running container is gone the runtime is told to open it again."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    node.machine.remove_log("web", "main", "0.log")
    await node.run_until(
        lambda: node.count("ReopenContainerLog", container="main"),
        within_s=WITHIN_S,
        what="ReopenContainerLog",
    )
    await node.run_until(
        lambda: node.machine.log_files("web", "main") == ["0.log"],
        within_s=limits.NOTICE_S,
        what="a new log",
    )


@conformance(
    id="log-leftovers",
    rules=["GC-203.1", "GC-203.2"],
    needs=[STATUS],
    node_config={**SMALL_LOGS, "containerLogMaxFiles": 4},
)
async def leftovers_and_the_oldest_logs_go(node: Node) -> None:
    """A rotation removes half-written files, logs that are compressed already, and the oldest of
    too many rotated logs."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    old, first, second = (f"0.log.2020010{day}-000000" for day in (1, 2, 3))
    for file in (f"{old}.gz", f"{first}.gz", f"{first}.tmp", second, f"{second}.gz"):
        node.machine.write_log("web", "main", file, f"text of {file}")
    node.machine.write_log("web", "main", "0.log", LINE)
    await node.run_until(
        lambda: node.count("ReopenContainerLog", container="main"),
        within_s=WITHIN_S,
        what="ReopenContainerLog",
    )
    await node.run_for(1)
    files = node.machine.log_files("web", "main")
    rotated_before = [file for file in files if file.startswith("0.log.2020")]
    expect_equal(node, rotated_before, [f"{first}.gz", f"{second}.gz"], "rotated logs of before")
    expect_equal(node, len(files), 4, "log files")
    text = node.machine.log_text("web", "main", f"{second}.gz")
    expect_equal(node, text, f"text of {second}.gz", "text of the compressed log")


@conformance(
    id="log-rotation-off",
    rules=["GC-201.1"],
    needs=[STATUS],
    node_config={"containerLogMaxSize": "-1", "containerLogMonitorInterval": "3s"},
)
async def a_negative_size_switches_rotation_off(node: Node) -> None:
    """With a negative containerLogMaxSize no log is rotated."""
    await node.apply_static(pod("web", container("main", runs(prints(LINE)))))
    await node.wait_running("web")
    await node.run_for(2 * PERIOD_S)
    expect_equal(node, node.machine.log_files("web", "main"), ["0.log"], "log files")


@conformance(
    id="log-workers",
    rules=["GC-201.3"],
    needs=[STATUS, FAULTS],
    node_config={**SMALL_LOGS, "containerLogMaxWorkers": 2},
)
async def two_workers_rotate_two_logs_at_once(node: Node) -> None:
    """With containerLogMaxWorkers 2 one log is rotated while the rotation of another one hangs."""
    chatty = runs(prints(LINE))
    with node.runtime.on("ReopenContainerLog", container="stuck").hangs() as rule:
        await node.apply_static(pod("web", container("stuck", chatty)))
        await node.run_until(
            lambda: node.count("ReopenContainerLog", container="stuck"),
            within_s=limits.START_S + WITHIN_S,
            what="ReopenContainerLog of stuck",
        )
        await node.apply_static(pod("other", container("free", chatty)))
        await node.run_until(
            lambda: node.count("ReopenContainerLog", container="free"),
            within_s=limits.START_S + WITHIN_S,
            what="ReopenContainerLog of free",
        )
        rule.release()


@conformance(id="log-files-refused", rules=["GC-201.2"], needs=[Feature.RESTART], since="1.33")
async def one_log_file_is_too_few(node: Node) -> None:
    """A kubelet with containerLogMaxFiles 1 does not start."""
    log = await node.kubelet.refused_start(containerLogMaxFiles=1)
    expect(node, "containerLogMaxFiles" in log, "the field in the log", log)


@conformance(id="log-interval-refused", rules=["GC-201.4"], needs=[Feature.RESTART])
async def two_seconds_between_looks_at_logs_are_too_few(node: Node) -> None:
    """A kubelet with containerLogMonitorInterval 2s does not start."""
    log = await node.kubelet.refused_start(containerLogMonitorInterval="2s")
    expect(node, "containerLogMonitorInterval" in log, "the field in the log", log)
