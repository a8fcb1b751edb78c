"""The configuration of a container: names, image, command, what is noted on it."""

from typing import Any

from kubelet_conformance.cases.cri.common import container_config, started
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, Level, conformance

API, STATUS = Feature.API, Feature.STATUS


@conformance(
    id="cri-container-names",
    rules=["LIFE-136.1", "LIFE-136.2", "LIFE-136.3", "CRI-052.3"],
    needs=[STATUS],
)
async def each_attempt_of_a_container_has_its_name_and_its_log(node: Node) -> None:
    """A container has the kubelet's labels and none of its pod's own; each attempt has its number
    and a log of its own, below the log directory that the sandbox configuration names again."""
    work = in_turn(exits(1), runs())
    plan = pod("web", container("main", work), metadata={"labels": {"app": "shop"}})
    await node.apply_static(plan)
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.START_S + limits.NOTICE_S,
        what="two starts of main",
    )
    sandbox = node.calls("RunPodSandbox", pod="web")[0]
    for attempt, call in enumerate(node.calls("CreateContainer", container="main")):
        config = call.request.config
        labels = dict(config.labels)
        expect_equal(node, labels.pop("io.kubernetes.container.name", ""), "main", "its name")
        own = {key: sandbox.request.config.labels[key] for key in labels}
        expect_equal(node, labels, own, "further labels: those of the sandbox")
        kubelets = {f"io.kubernetes.pod.{word}" for word in ("name", "namespace", "uid")}
        expect_equal(node, set(labels), kubelets, "labels beside its name")
        names = (config.metadata.name, config.metadata.attempt, config.log_path)
        expect_equal(node, names, ("main", attempt, f"main/{attempt}.log"), "name, attempt, log")
        again = call.request.sandbox_config
        expect_equal(node, again, sandbox.request.config, "the sandbox configuration")


@conformance(
    id="cri-container-image", rules=["LIFE-136.4", "CRI-083.1"], needs=[STATUS, Feature.REGISTRY]
)
async def a_container_is_created_with_what_the_pull_has_answered(node: Node) -> None:
    """The image of CreateContainer is the reference that PullImage answered, or the id of a present
    image; the name in the spec is told beside it."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    await node.apply_static(pod("pulled", container("main", image=image)))
    await node.apply_static(pod("present"))
    await started(node, "pulled", "present", within_s=limits.START_S + limits.SYNC_ERROR_S)
    ref = node.calls("PullImage")[0].response.image_ref
    spec = container_config(node, "main", "pulled").image
    expect_equal(node, (spec.image, spec.user_specified_image), (ref, image), "pulled image")
    present = container_config(node, "main", "present").image
    name = present.user_specified_image
    ids = {c.response.image.id for c in node.calls("ImageStatus") if c.request.image.image == name}
    expect_equal(node, {present.image}, ids, "present image")


@conformance(id="cri-container-terminal", rules=["LIFE-136"], level=Level.DETAIL, needs=[STATUS])
async def what_a_process_starts_with_is_passed_on(node: Node) -> None:
    """workingDir, stdin, stdinOnce and tty reach the runtime, and are unset where the spec has
    none."""
    fields: dict[str, Any] = {
        "workingDir": "/tmp",
        "stdin": True,
        "stdinOnce": True,
        "tty": True,
    }
    await node.apply_static(pod("web", container("main", **fields), container("plain")))
    await node.wait_running("web", "main", "plain")
    starts = {}
    for name in ("main", "plain"):
        config = container_config(node, name)
        starts[name] = (config.working_dir, config.stdin, config.stdin_once, config.tty)
    expected_starts = {"main": ("/tmp", True, True, True), "plain": ("", False, False, False)}
    expect_equal(node, starts, expected_starts, "directory, stdin, stdin once, tty")


@conformance(id="cri-container-notes", rules=["LIFE-136"], level=Level.DETAIL, needs=[STATUS])
async def what_a_later_kubelet_must_know_is_noted(node: Node) -> None:
    """Annotations of a container note its restart count, the path and policy of its termination
    message, and the grace period of its pod."""
    main = container("main", terminationMessagePolicy="FallbackToLogsOnError")
    await node.apply_static(pod("web", main, grace_s=7))
    await node.wait_running("web")
    notes = dict(container_config(node, "main").annotations)
    expected_notes = {
        "io.kubernetes.container.restartCount": "0",
        "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
        "io.kubernetes.container.terminationMessagePolicy": "FallbackToLogsOnError",
        "io.kubernetes.pod.terminationGracePeriod": "7",
    }
    relevant_notes = {key: notes.get(key) for key in expected_notes}
    expect_equal(node, relevant_notes, expected_notes, "annotations")
    expect(node, notes.get("io.kubernetes.container.hash"), "a hash of the spec", notes)
