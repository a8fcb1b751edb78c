"""Whether the kubelet looks for an image and pulls it: policies, names, and answers of the
runtime."""

from typing import Any

from kubelet_conformance.cases.images.seen import (
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
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import (
    IMAGE,
    MISSING_IMAGE,
    OTHER_IMAGE,
    container,
    pod,
)
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS, REGISTRY = Feature.API, Feature.STATUS, Feature.FAULTS, Feature.REGISTRY


@conformance(id="image-policy-present", rules=["BACK-202.2"], needs=[API, STATUS], since="1.35")
async def a_present_image_is_not_pulled(node: Node) -> None:
    """With IfNotPresent an image that is present is used, and an event says so."""
    await node.api.create_pod(pod("web"))
    await wait_running(node, "web")
    expect_equal(node, node.count("PullImage"), 0, "pulls")
    text = f'Container image "{IMAGE}" already present on machine and can be accessed by the pod'
    expect_about(node, await wait_event(node, "web", "Pulled", text), "Normal")


@conformance(
    id="image-policy-absent", rules=["BACK-202.2", "BACK-213"], needs=[STATUS, REGISTRY], alone=True
)
async def an_absent_image_is_looked_for_and_pulled(node: Node) -> None:
    """With IfNotPresent an absent image is looked for and pulled, then its size and its user are
    looked up, and the container is created."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    await node.apply_static(pod("web", container("main", image=image)))
    await wait_running(node, "web")
    expected_calls = ["ImageStatus", "PullImage", "ImageStatus", "ImageStatus", "CreateContainer"]
    expect_equal(node, image_calls(node, image), expected_calls, "calls about the image")
    image_used = node.calls("CreateContainer", pod="web")[0].request.config.image
    pulled = pulls(node, image)[0].response.image_ref
    expect_equal(
        node,
        (image_used.image, image_used.user_specified_image),
        (pulled, image),
        "image made from",
    )


@conformance(id="image-policy-always", rules=["BACK-202.1"], needs=[STATUS, REGISTRY], since="1.32")
async def always_pulls_at_every_start(node: Node) -> None:
    """With Always the image is pulled without looking for it first, again at every restart."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    work = in_turn(exits(1), runs())
    main = container("main", work, image=image, imagePullPolicy="Always")
    await node.apply_static(pod("web", main))
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=PULLED_S + limits.SYNC_ERROR_S,
        what="a second start",
    )
    expect_equal(node, image_calls(node, image)[0], "PullImage", "first call about the image")
    expect_equal(node, len(pulls(node, image)), 2, "pulls for two starts")


@conformance(
    id="image-policy-never", rules=["BACK-202.3", "BACK-204.4"], needs=[API, STATUS, REGISTRY]
)
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


@conformance(id="image-policy-never-present", rules=["BACK-202.3"], needs=[STATUS])
async def never_uses_what_is_there(node: Node) -> None:
    """With Never a present image is used."""
    await node.apply_static(pod("web", container("main", imagePullPolicy="Never")))
    await wait_running(node, "web")
    expect_equal(node, node.count("PullImage"), 0, "pulls")


@conformance(
    id="image-default-tag",
    rules=["BACK-201.1", "BACK-202.1"],
    needs=[API, STATUS, REGISTRY],
    since="1.32",
)
async def a_name_without_tag_means_latest_and_always(node: Node) -> None:
    """Without a tag and a policy the image `:latest` is pulled without looking for it first; the
    pod's spec and its events have the name as written."""
    registry = await node.runtime.registry()
    await registry.add("app:latest")
    image = f"{registry.open_host}/app"
    plan = pod("web", container("main", image=image))
    del plan.manifest["spec"]["containers"][0]["imagePullPolicy"]
    await node.apply_static(plan)
    await wait_running(node, "web")
    await wait_event(node, "web", "Pulling", f'Pulling image "{image}"')
    expect_equal(node, len(pulls(node, f"{image}:latest")), 1, "pulls of :latest")
    expect_equal(node, image_calls(node, f"{image}:latest")[0], "PullImage", "first call")
    image_used = node.calls("CreateContainer", pod="web")[0].request.config.image
    expect_equal(node, image_used.user_specified_image, image, "user_specified_image")


@conformance(id="image-name-short", rules=["BACK-201.1"], needs=[STATUS])
async def a_short_name_is_not_made_longer(node: Node) -> None:
    """A name without a registry is sent as it is, but for the tag."""
    main = container("main", image="not-there", imagePullPolicy="Never")
    await node.apply_static(pod("web", main))
    await wait_waiting(node, "web", "ErrImageNeverPull")
    names = {c.request.image.image for c in node.calls("ImageStatus")}
    expect(node, "not-there:latest" in names, "a question for not-there:latest", names)


@conformance(id="image-name-digest", rules=["BACK-201.1", "BACK-210.3"], needs=[STATUS, REGISTRY])
async def a_name_with_a_digest_gets_no_tag(node: Node) -> None:
    """A name with a digest and without a tag is sent as it is; a present image that was pulled
    under a tag of the same repository is used."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    await node.apply_static(pod("web", container("main", image=f"{registry.open_host}/app:1")))
    await wait_running(node, "web")
    listed = [
        name
        for call in node.calls("ImageStatus")
        for name in call.response.image.repo_digests
        if name.startswith(f"{registry.open_host}/app@")
    ]
    expect(node, listed, "a digest of the image in ImageStatus", listed)
    await node.apply_static(pod("next", container("main", image=listed[0])))
    await wait_running(node, "next")
    expect_equal(node, pulls(node, listed[0]), [], "pulls of the digest")
    names = {c.request.image.image for c in node.calls("ImageStatus")}
    digests = {name for name in names if "@" in name}
    expect_equal(node, digests, {listed[0]}, "names with a digest that the runtime is asked for")


@conformance(id="image-name-invalid", rules=["BACK-201.2"], needs=[STATUS])
async def a_name_that_is_no_reference_is_not_looked_for(node: Node) -> None:
    """A container whose image is no valid reference waits with InvalidImageName, and no call about
    the image is made."""
    image = "localhost/Upper:1"
    wrong_images = {"id": "0123456789abcdef" * 4, "url": "http://localhost/app"}
    wrong = [container(name, image=other) for name, other in wrong_images.items()]
    await node.apply_static(pod("web", container("main", image=image), *wrong, container("fine")))
    for name in wrong_images:
        await wait_waiting(node, "web", "InvalidImageName", name)
    message = await wait_waiting(node, "web", "InvalidImageName")
    expected = (
        f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": '
        "invalid reference format: repository name (Upper) must be lowercase"
    )
    expect_equal(node, message, expected, "message")
    image_requests = [c for c in node.calls() if c.method in ("ImageStatus", "PullImage")]
    names = {c.request.image.image for c in image_requests}
    expect_equal(node, names, {IMAGE}, "images that the runtime is asked about")
    await wait_running(node, "web", "fine")


@conformance(
    id="image-inspect-error",
    rules=["BACK-203.1"],
    needs=[API, STATUS, FAULTS],
    since="1.32",
    alone=True,
)
async def a_failing_look_is_told_and_repeated(node: Node) -> None:
    """While ImageStatus fails the container waits with ImageInspectError, and it is tried again."""
    with node.runtime.on("ImageStatus").fails("UNKNOWN", "store is broken"):
        await node.api.create_pod(pod("web"))
        message = await wait_waiting(node, "web", "ImageInspectError")
        expected = 'Failed to inspect image "": rpc error: code = Unknown desc = store is broken'
        expect_equal(node, message, expected, "message")
        expect_about(node, await wait_event(node, "web", "InspectFailed", expected), "Warning")
        await wait_event(node, "web", "Failed", "Error: ImageInspectError")
        expect_equal(node, node.count("PullImage"), 0, "pulls")
    await node.run_until(
        lambda: node.running("web"),
        within_s=limits.SYNC_ERROR_S + PULLED_S,
        what="the container runs after the next try",
    )


@conformance(
    id="image-incomplete", rules=["BACK-203.2"], needs=[STATUS, FAULTS], since="1.32", alone=True
)
async def an_image_without_id_or_size_is_not_used(node: Node) -> None:
    """An image whose id is empty or whose size is 0 in the answer is an error of ImageStatus."""

    def change(answer: Any) -> None:
        name = answer.image.repo_tags[0] if answer.image.repo_tags else ""
        if name == IMAGE:
            answer.image.size = 0
        elif name == OTHER_IMAGE:
            answer.image.id = ""

    two = (container("main"), container("other", image=OTHER_IMAGE))
    with node.runtime.on("ImageStatus").changes_answer(change):
        await node.apply_static(pod("web", *two))
        for name in ("main", "other"):
            message = await wait_waiting(node, "web", "ImageInspectError", name)
            start = 'Failed to inspect image "": '
            expect(node, message.startswith(start), f"a message {start}...", message)
    expect_equal(node, node.count("PullImage"), 0, "pulls")


@conformance(id="pull-without-reference", rules=["BACK-203.3"], needs=[STATUS, FAULTS, REGISTRY])
async def a_pull_must_name_what_was_pulled(node: Node) -> None:
    """A pull whose answer has no image_ref has failed: ErrImagePull, and no container."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    main = container("main", image=image, imagePullPolicy="Always")

    def forget(answer: Any) -> None:
        answer.image_ref = ""

    with node.runtime.on("PullImage").changes_answer(forget):
        await node.apply_static(pod("web", main))
        await wait_waiting(node, "web", "ErrImagePull")
    expect_equal(node, node.count("CreateContainer"), 0, "containers")


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
    pull_failed = {"reason": reason, "message": text}
    back_off = {
        "reason": "ImagePullBackOff",
        "message": f'Back-off pulling image "{MISSING_IMAGE}": {reason}: {text}',
    }
    expect(node, state in (pull_failed, back_off), f"waiting = {pull_failed} or {back_off}", state)


@conformance(
    id="registry-unavailable",
    rules=["BACK-205.1", "BACK-205.4", "BACK-204.3", "CRI-009.6"],
    needs=[API, STATUS, FAULTS],
)
async def a_registry_that_is_away_has_a_reason_of_its_own(node: Node) -> None:
    """The text of a pull error that begins with RegistryUnavailable becomes that reason, with the
    rest as the message."""
    state = await _reason_of(node, "UNKNOWN", "RegistryUnavailable: no route")
    why = "the registry is unavailable: no route"
    _expect_waiting(node, state, "RegistryUnavailable", why)
    error = f'Failed to pull image "{MISSING_IMAGE}": RegistryUnavailable: no route'
    await wait_event(node, "web", "Failed", error)


@conformance(
    id="signature-refused", rules=["BACK-205.2", "BACK-205.4", "CRI-009.6"], needs=[STATUS, FAULTS]
)
async def a_refused_signature_has_a_reason_of_its_own(node: Node) -> None:
    """The text of a pull error that begins with SignatureValidationFailed becomes that reason, with
    the rest as the message."""
    state = await _reason_of(node, "UNKNOWN", "SignatureValidationFailed: unknown key")
    why = "the signature validation failed: unknown key"
    _expect_waiting(node, state, "SignatureValidationFailed", why)


@conformance(id="pull-error-with-code", rules=["BACK-205.3", "BACK-205.4"], needs=[STATUS, FAULTS])
async def a_code_in_front_hides_the_special_reasons(node: Node) -> None:
    """With another code than UNKNOWN the text begins with the code, so the reason is
    ErrImagePull."""
    state = await _reason_of(node, "UNAVAILABLE", "RegistryUnavailable: no route")
    text = error_of(pulls(node, MISSING_IMAGE)[0])
    expect_equal(
        node, text, "rpc error: code = Unavailable desc = RegistryUnavailable: no route", "text"
    )
    pull_failed = {"reason": "ErrImagePull", "message": text}
    back_off = {
        "reason": "ImagePullBackOff",
        "message": f'Back-off pulling image "{MISSING_IMAGE}": ErrImagePull: {text}',
    }
    expect(node, state in (pull_failed, back_off), f"waiting = {pull_failed} or {back_off}", state)
