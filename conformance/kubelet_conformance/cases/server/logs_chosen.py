"""Which container's log is shown, when several instances of one name come into question."""

from fakecri import prints
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import MISSING_IMAGE, container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, STATUS = Feature.API, Feature.STATUS


def log_path(node: Node, name: str) -> str:
    """The path of a container's log in the pod `web`."""
    return f"/containerLogs/default/{node.runtime.pod_name('web')}/{name}"


def waits_for(node: Node, name: str = "main") -> str:
    """Why a container of `web` waits; "" if it does not."""
    return str(node.container("web", name).get("state", {}).get("waiting", {}).get("reason", ""))


@conformance(id="logs-previous-of-ended", rules=["SRV-022.1"], needs=[STATUS])
async def the_previous_log_of_an_ended_container_is_another(node: Node) -> None:
    """When two instances have ended, the log is that of the second, and the previous one is that
    of the first, or nothing once its record was removed, but never the second again."""
    first = exits(1, prints("first"), after_s=2.0)
    second = exits(0, prints("second"), after_s=2.0)
    main = container("main", in_turn(first, second))
    await node.apply_static(pod("web", main, restartPolicy="OnFailure"))
    await node.run_until(
        lambda: node.phase("web") == "Succeeded", within_s=2 * limits.START_S + 15 + 10
    )
    answer = await node.kubelet.get(log_path(node, "main"))
    expect_equal(node, (answer.status, answer.text), (200, "second\n"), "the log")
    answer = await node.kubelet.get(f"{log_path(node, 'main')}?previous=true")
    removed = answer.text.startswith("unable to retrieve container logs for ")
    expect(node, answer.status == 200, "status 200", answer)
    expect(node, answer.text == "first\n" or removed, "the log of the first one", answer.text)


@conformance(id="logs-in-back-off", rules=["SRV-022.1"], needs=[API, STATUS])
async def a_container_in_back_off_shows_its_last_log(node: Node) -> None:
    """While a container waits for its next start, its log is that of the instance that ended last,
    and so is the previous one."""
    crashing = exits(1, prints("a line"), after_s=0.5)
    await node.api.create_pod(pod("web", container("main", crashing)))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 3,
        within_s=10 + 3 * limits.START_S + limits.SYNC_ERROR_S,
        what="the third start of main",
    )
    await node.run_for(3.0)
    # a sync that comes after the one that decided to wait shows it (BACK-010)
    await node.api.patch_pod("web", {"metadata": {"annotations": {"a-sync": "is asked for"}}})
    await node.run_until(
        lambda: waits_for(node) == "CrashLoopBackOff",
        within_s=limits.NOTICE_S,
        what="main waits in its back-off",
    )
    for query in ("", "?previous=true"):
        answer = await node.kubelet.get(log_path(node, "main") + query)
        expect_equal(node, (answer.status, answer.text), (200, "a line\n"), f"the log {query}")
    expect_equal(node, waits_for(node), "CrashLoopBackOff", "why main waits")


@conformance(id="logs-of-missing-image", rules=["SRV-022.2", "SRV-021.4"], needs=[STATUS])
async def a_failed_pull_is_told_in_words(node: Node) -> None:
    """The log of a container whose image cannot be pulled is 400: in other words after a failed
    pull than while the next one is waited for."""
    await node.apply_static(pod("web", container("main", image=MISSING_IMAGE)))
    name = node.runtime.pod_name("web")
    where = f'container "main" in pod "{name}" is waiting to start'
    for reason, words in (
        ("ErrImagePull", "image can't be pulled"),
        ("ImagePullBackOff", "trying and failing to pull image"),
    ):
        await node.run_until(
            lambda reason=reason: waits_for(node) == reason,  # type: ignore[misc]
            within_s=2 * limits.START_S + limits.SYNC_ERROR_S,
            what=reason,
        )
        answer = await node.kubelet.get(log_path(node, "main"))
        expect_equal(node, (answer.status, answer.text), (400, f"{where}: {words}"), reason)


@conformance(id="logs-ephemeral", rules=["SRV-022.3", "SRV-022.1"], needs=[API, STATUS])
async def ephemeral_containers_have_logs_too(node: Node) -> None:
    """The log of an ephemeral container is shown while it runs and when it has ended; it has no
    previous one."""
    web = pod("web")
    await node.api.create_pod(web)
    await node.wait_running("web")
    await node.api.debug(web, container("debug", exits(0, prints("looked"), after_s=10.0)))
    for state in ("running", "terminated"):
        await node.run_until(
            lambda state=state: state in node.api.container("web", "debug").get("state", {}),  # type: ignore[misc]
            within_s=10 + limits.START_S + limits.NOTICE_S,
            what=f"debug is {state}",
        )
        await node.run_for(limits.NOTICE_S)
        answer = await node.kubelet.get(log_path(node, "debug"))
        expect_equal(node, (answer.status, answer.text), (200, "looked\n"), f"the log when {state}")
    answer = await node.kubelet.get(f"{log_path(node, 'debug')}?previous=true")
    expect_equal(node, answer.status, 400, "status of the previous log")


@conformance(
    id="logs-of-each-kind", rules=["SRV-022.1", "SRV-022.2", "SRV-022.3"], needs=[API, STATUS]
)
async def every_kind_of_container_has_its_own_logs(node: Node) -> None:
    """While an init container works, its log and that of the sidecar before it are shown, and the
    regular container of the same pod is told to wait. An init container and a sidecar that were
    started again show what they write now, and what they wrote before."""
    crashes = exits(1, prints("no luck"), after_s=2.0)
    first = container("first", in_turn(crashes, exits(0, prints("done"), after_s=12.0)))
    beside = sidecar("beside", in_turn(exits(1, prints("one"), after_s=8.0), runs(prints("two"))))
    web = pod("web", container("main", runs(prints("at work"))), init=[beside, first])
    await node.api.create_pod(web)

    async def log(name: str, query: str = "") -> tuple[int, str]:
        answer = await node.kubelet.get(log_path(node, name) + query)
        return answer.status, answer.text

    def restarted(name: str) -> bool:
        state = node.container("web", name)
        return bool(state.get("restartCount") == 1 and "running" in state.get("state", {}))

    await node.run_until(
        lambda: restarted("first"), within_s=4 * limits.START_S, what="first was started again"
    )
    await node.run_for(1)
    expect_equal(node, await log("first"), (200, "done\n"), "the log of first")
    expect_equal(node, await log("first", "?previous=true"), (200, "no luck\n"), "the one before")
    waits = 'container "main" in pod "web" is waiting to start: PodInitializing'
    expect_equal(node, await log("main"), (400, waits), "the log of main")
    await node.run_until(
        lambda: restarted("beside") and node.running("web"),
        within_s=12 + 15 + 4 * limits.START_S,
        what="beside was started again, and main runs",
    )
    await node.run_for(1)
    texts = {name: await log(name) for name in ("beside", "main", "first")}
    expected = {"beside": (200, "two\n"), "main": (200, "at work\n"), "first": (200, "done\n")}
    expect_equal(node, texts, expected, "logs")
    expect_equal(node, await log("beside", "?previous=true"), (200, "one\n"), "the one before")
    expect_equal(node, (await log("main", "?previous=true"))[0], 400, "the one before, of main")
