"""Whether the kubelet looks for an image and pulls it: policies, names, and answers of the
runtime."""

from conformance.cases.images.seen import (
    PULLED_S,
    error_of,
    expect_about,
    image_calls,
    pulls,
    wait_event,
    wait_running,
    wait_waiting,
    waiting,
)
from conformance.harness import limits
from conformance.harness.expect import expect, expect_equal
from conformance.harness.manifests import IMAGE, MISSING_IMAGE, container, pod
from conformance.harness.node import Node
from conformance.harness.workload import exits, in_turn, runs
from conformance.registry import Feature, conformance

API, STATUS, FAULTS, REGISTRY = Feature.API, Feature.STATUS, Feature.FAULTS, Feature.REGISTRY
NO_CRASH_DELAY = {"crashLoopBackOff": {"maxContainerRestartPeriod": "1s"}}


@conformance(id="image-policy-present", rules=["BACK-202"], needs=[API, STATUS])
async def a_present_image_is_not_pulled(node: Node) -> None:
    """With IfNotPresent an image that is present is used, and an event says so."""
    await node.api.create_pod(pod("web"))
    await wait_running(node, "web")
    expect_equal(node, node.count("PullImage"), 0, "pulls")
    text = f'Container image "{IMAGE}" already present on machine and can be accessed by the pod'
    expect_about(node, await wait_event(node, "web", "Pulled", text), "Normal")


@conformance(id="image-policy-absent", rules=["BACK-202", "BACK-213"], needs=[STATUS, REGISTRY])
async def an_absent_image_is_looked_for_and_pulled(node: Node) -> None:
    """With IfNotPresent an absent image is looked for and pulled, then its size and its user are
    looked up, and the container is created."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    await node.apply_static(pod("web", container("main", image=image)))
    await wait_running(node, "web")
    wanted = ["ImageStatus", "PullImage", "ImageStatus", "ImageStatus", "CreateContainer"]
    expect_equal(node, image_calls(node, image), wanted, "calls about the image")
    made = node.calls("CreateContainer", pod="web")[0].request.config.image
    pulled = pulls(node, image)[0].response.image_ref
    expect_equal(node, (made.image, made.user_specified_image), (pulled, image), "image made from")


@conformance(id="image-policy-always", rules=["BACK-202"], needs=[STATUS, REGISTRY], node_config=NO_CRASH_DELAY)  # fmt: skip  # noqa: E501
async def always_pulls_at_every_start(node: Node) -> None:
    """With Always the image is pulled without looking for it first, again at every restart."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    work = in_turn(exits(1), runs())
    await node.apply_static(pod("web", container("main", work, image=image, imagePullPolicy="Always")))  # fmt: skip  # noqa: E501
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=PULLED_S + limits.SYNC_ERROR_S,
        what="a second start",
    )
    expect_equal(node, image_calls(node, image)[0], "PullImage", "first call about the image")
    expect_equal(node, len(pulls(node, image)), 2, "pulls for two starts")


@conformance(id="image-policy-never", rules=["BACK-202"], needs=[API, STATUS, REGISTRY])
async def never_does_not_pull(node: Node) -> None:
    """With Never an absent image is not pulled, although the registry has it: the container waits
    with ErrImageNeverPull."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    await node.api.create_pod(pod("web", container("main", image=image, imagePullPolicy="Never")))
    text = f'Container image "{image}" is not present with pull policy of Never'
    expect_equal(node, await wait_waiting(node, "web", "ErrImageNeverPull"), text, "message")
    expect_about(node, await wait_event(node, "web", "ErrImageNeverPull", text), "Warning")
    error = await wait_event(node, "web", "Failed", "Error: ErrImageNeverPull")
    expect_about(node, error, "Warning")
    expect_equal(node, node.count("PullImage"), 0, "pulls")
    expect_equal(node, node.api.phase("web"), "Pending", "phase")


@conformance(id="image-policy-never-present", rules=["BACK-202"], needs=[STATUS])
async def never_uses_what_is_there(node: Node) -> None:
    """With Never a present image is used."""
    await node.apply_static(pod("web", container("main", imagePullPolicy="Never")))
    await wait_running(node, "web")
    expect_equal(node, node.count("PullImage"), 0, "pulls")


@conformance(id="image-default-tag", rules=["BACK-201", "BACK-202"], needs=[STATUS, REGISTRY])
async def a_name_without_tag_means_latest_and_always(node: Node) -> None:
    """Without a tag and a policy the image `:latest` is pulled without looking for it first; the
    pod's spec stays as written."""
    registry = await node.runtime.registry()
    await registry.add("app:latest")
    image = f"{registry.open_host}/app"
    plan = pod("web", container("main", image=image))
    del plan.manifest["spec"]["containers"][0]["imagePullPolicy"]
    await node.apply_static(plan)
    await wait_running(node, "web")
    expect_equal(node, len(pulls(node, f"{image}:latest")), 1, "pulls of :latest")
    expect_equal(node, image_calls(node, f"{image}:latest")[0], "PullImage", "first call")
    made = node.calls("CreateContainer", pod="web")[0].request.config.image
    expect_equal(node, made.user_specified_image, image, "user_specified_image")


@conformance(id="image-name-invalid", rules=["BACK-201"], needs=[STATUS])
async def a_name_that_is_no_reference_is_not_looked_for(node: Node) -> None:
    """A container whose image is no valid reference waits with InvalidImageName, and no call about
    the image is made."""
    image = "localhost/Upper:1"
    await node.apply_static(pod("web", container("main", image=image), container("fine")))
    message = await wait_waiting(node, "web", "InvalidImageName")
    wanted = (
        f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": '
        "invalid reference format: repository name (Upper) must be lowercase"
    )
    expect_equal(node, message, wanted, "message")
    asked = [c for c in node.calls() if c.method in ("ImageStatus", "PullImage")]
    expect_equal(node, [c for c in asked if c.request.image.image == image], [], "calls about it")
    await wait_running(node, "web", "fine")


@conformance(id="image-inspect-error", rules=["BACK-203"], needs=[API, STATUS, FAULTS])
async def a_failing_look_is_told_and_repeated(node: Node) -> None:
    """While ImageStatus fails the container waits with ImageInspectError, and it is tried again."""
    with node.runtime.on("ImageStatus").fails("UNKNOWN", "store is broken"):
        await node.api.create_pod(pod("web"))
        message = await wait_waiting(node, "web", "ImageInspectError")
        wanted = 'Failed to inspect image "": rpc error: code = Unknown desc = store is broken'
        expect_equal(node, message, wanted, "message")
        expect_about(node, await wait_event(node, "web", "InspectFailed", wanted), "Warning")
        await wait_event(node, "web", "Failed", "Error: ImageInspectError")
        expect_equal(node, node.count("PullImage"), 0, "pulls")
    await node.run_until(
        lambda: node.running("web"),
        within_s=limits.SYNC_ERROR_S + PULLED_S,
        what="the container runs after the next try",
    )


async def _reason_of(node: Node, code: str, text: str) -> dict[str, str]:
    """The waiting state of a container whose pull fails with that code and text."""
    with node.runtime.on("PullImage").fails(code, text):
        await node.apply_static(pod("web", container("main", image=MISSING_IMAGE)))
        await node.run_until(
            lambda: waiting(node, "web").get("reason") not in (None, "ContainerCreating"),
            within_s=PULLED_S,
            what="the container waits for its image",
        )
        expect(node, pulls(node, MISSING_IMAGE), "a pull", "none")
        return waiting(node, "web")


def _expect_waiting(node: Node, state: dict[str, str], reason: str, why: str) -> None:
    """Expect the waiting state to have that reason, or already the back-off that follows it; both
    tell `why` the image could not be pulled."""
    text = f"image pull failed for {MISSING_IMAGE} because {why}"
    wanted = {"reason": reason, "message": text}
    back_off = {
        "reason": "ImagePullBackOff",
        "message": f'Back-off pulling image "{MISSING_IMAGE}": {reason}: {text}',
    }
    expect(node, state in (wanted, back_off), f"waiting = {wanted} or {back_off}", state)


@conformance(id="registry-unavailable", rules=["BACK-205"], needs=[STATUS, FAULTS])
async def a_registry_that_is_away_has_a_reason_of_its_own(node: Node) -> None:
    """The text of a pull error that begins with RegistryUnavailable becomes that reason, with the
    rest as the message."""
    state = await _reason_of(node, "UNKNOWN", "RegistryUnavailable: no route")
    why = "the registry is unavailable: no route"
    _expect_waiting(node, state, "RegistryUnavailable", why)


@conformance(id="signature-refused", rules=["BACK-205"], needs=[STATUS, FAULTS])
async def a_refused_signature_has_a_reason_of_its_own(node: Node) -> None:
    """The text of a pull error that begins with SignatureValidationFailed becomes that reason, with
    the rest as the message."""
    state = await _reason_of(node, "UNKNOWN", "SignatureValidationFailed: unknown key")
    why = "the signature validation failed: unknown key"
    _expect_waiting(node, state, "SignatureValidationFailed", why)


@conformance(id="pull-error-with-code", rules=["BACK-205"], needs=[STATUS, FAULTS])
async def a_code_in_front_hides_the_special_reasons(node: Node) -> None:
    """With another code than UNKNOWN the text begins with the code, so the reason is
    ErrImagePull."""
    state = await _reason_of(node, "UNAVAILABLE", "RegistryUnavailable: no route")
    text = error_of(pulls(node, MISSING_IMAGE)[0])
    expect_equal(
        node, text, "rpc error: code = Unavailable desc = RegistryUnavailable: no route", "text"
    )
    wanted = {"reason": "ErrImagePull", "message": text}
    back_off = {
        "reason": "ImagePullBackOff",
        "message": f'Back-off pulling image "{MISSING_IMAGE}": ErrImagePull: {text}',
    }
    expect(node, state in (wanted, back_off), f"waiting = {wanted} or {back_off}", state)
