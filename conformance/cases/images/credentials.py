"""Pull secrets, and who may use an image that one of them brought to the node."""

from typing import Any

from conformance.cases.images.seen import (
    PULLED_S,
    error_of,
    pulls,
    wait_event,
    wait_running,
    wait_waiting,
)
from conformance.harness.expect import expect, expect_equal
from conformance.harness.image_registry import USER, docker_config, pull_secret
from conformance.harness.manifests import PodPlan, container, pod
from conformance.harness.node import Node
from conformance.harness.workload import exits, in_turn, runs
from conformance.registry import Feature, conformance

API, STATUS, REGISTRY = Feature.API, Feature.STATUS, Feature.REGISTRY
NEEDS = [API, STATUS, REGISTRY]
NO_CRASH_DELAY = {"crashLoopBackOff": {"maxContainerRestartPeriod": "1s"}}


def with_secrets(name: str, image: str, *secrets: str, **fields: Any) -> PodPlan:
    """A pod whose container has that image, and its pull secrets."""
    references = [{"name": secret} for secret in secrets]
    return pod(name, container("main", image=image, **fields), imagePullSecrets=references)


async def private_image(node: Node) -> tuple[str, str]:
    """An image behind a password: its name, and its host."""
    registry = await node.runtime.registry()
    await registry.add("team/app:1")
    return f"{registry.closed_host}/team/app:1", registry.closed_host


def users(node: Node, image: str, pod: str | None = None) -> list[str]:
    """As whom the pulls of that image came; "": anonymously."""
    return [call.request.auth.username for call in pulls(node, image, pod)]


@conformance(id="pull-with-secret", rules=["BACK-209", "CRI-097"], needs=NEEDS)
async def a_pull_secret_opens_its_registry(node: Node) -> None:
    """The user and password of a pull secret for the image's registry go with the pull."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", host))
    await node.api.create_pod(with_secrets("web", image, "login"))
    await wait_running(node, "web")
    expect_equal(node, users(node, image), [USER], "users of the pulls")


@conformance(id="pull-with-old-secret", rules=["BACK-209"], needs=NEEDS)
async def a_secret_in_the_old_format_does_too(node: Node) -> None:
    """The same with a secret of type kubernetes.io/dockercfg."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", f"https://{host}/v1/", kind="dockercfg"))
    await node.api.create_pod(with_secrets("web", image, "login"))
    await wait_running(node, "web")
    expect_equal(node, users(node, image), [USER], "users of the pulls")


@conformance(id="pull-wrong-password", rules=["BACK-205", "BACK-209"], needs=NEEDS)
async def a_wrong_password_is_told(node: Node) -> None:
    """With a wrong password: ErrImagePull with the runtime's words, no anonymous try after it."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", host, password="guess"))
    await node.api.create_pod(with_secrets("web", image, "login"))
    message = await wait_waiting(node, "web", "ErrImagePull")
    error = error_of(pulls(node, image)[0])
    expect_equal(node, message, error, "message")
    expect(node, "401 Unauthorized" in message, "401 Unauthorized in the message", message)
    expect_equal(node, set(users(node, image)), {USER}, "users of the pulls")


@conformance(id="pull-without-secret", rules=["BACK-209"], needs=NEEDS)
async def without_a_secret_the_pull_is_anonymous(node: Node) -> None:
    """Without pull secrets there is one anonymous try, which a closed registry refuses."""
    image, _ = await private_image(node)
    await node.api.create_pod(with_secrets("web", image))
    await wait_waiting(node, "web", "ErrImagePull")
    expect_equal(node, users(node, image)[0], "", "user of the first pull")


@conformance(id="pull-secret-of-another-host", rules=["BACK-209"], needs=NEEDS)
async def a_login_goes_to_its_own_registry_only(node: Node) -> None:
    """A login for another host, port or path is not sent."""
    image, host = await private_image(node)
    others = (f"other.{host}", f"{host}:5000", f"{host}/another")
    await node.api.create_secret(pull_secret("login", *others))
    await node.api.create_pod(with_secrets("web", image, "login"))
    await wait_waiting(node, "web", "ErrImagePull")
    expect_equal(node, set(users(node, image)), {""}, "users of the pulls")


@conformance(id="pull-secrets-in-turn", rules=["BACK-209"], needs=NEEDS)
async def every_login_is_tried_the_closest_place_first(node: Node) -> None:
    """Several logins for one image are tried one after the other: the longer path first, logins
    for one place in the order of the secrets, until one succeeds."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("wide", f"*.{host.partition('.')[2]}", user="wide"))
    await node.api.create_secret(pull_secret("host", host, user="host"))
    await node.api.create_secret(pull_secret("again", host))
    await node.api.create_secret(pull_secret("path", f"{host}/team", user="path"))
    secrets = ("wide", "host", "again", "path")
    await node.api.create_pod(with_secrets("web", image, *secrets))
    await wait_running(node, "web")
    expect_equal(node, users(node, image), ["path", "host", USER], "users of the pulls")


@conformance(id="pull-with-node-login", rules=["BACK-209"], needs=[*NEEDS, Feature.RESTART])
async def a_login_of_the_node_is_for_every_pod(node: Node) -> None:
    """A Docker configuration in the kubelet's root directory opens a registry for all pods, after
    their own secrets; what it brought may be used by every pod."""
    image, host = await private_image(node)
    await node.kubelet.stop()
    node.machine.write_root_file("config.json", docker_config(host))
    await node.kubelet.start()
    await node.api.create_secret(pull_secret("login", host, user="own"))
    await node.api.create_pod(with_secrets("web", image, "login"))
    await wait_running(node, "web")
    expect_equal(node, users(node, image), ["own", USER], "users of the pulls")
    await node.api.create_pod(with_secrets("guest", image))
    await wait_running(node, "guest")
    expect_equal(node, pulls(node, image, "guest"), [], "pulls of another pod")


@conformance(id="pull-secret-missing", rules=["BACK-209", "LIFE-070"], needs=NEEDS)
async def a_missing_secret_is_told_and_left_out(node: Node) -> None:
    """A pull secret that does not exist: a warning, and the pull goes on without it."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    await node.api.create_pod(with_secrets("web", image, "gone", "lost"))
    await wait_running(node, "web")
    text = (
        "Unable to retrieve some image pull secrets (gone, lost); attempting to pull the image "
        "may not succeed."
    )
    event = await wait_event(node, "web", "FailedToRetrieveImagePullSecret", text)
    expect_equal(node, event["type"], "Warning", "type of the event")
    expect_equal(node, users(node, image), [""], "users of the pulls")


@conformance(id="pull-secret-without-api", rules=["BACK-209", "NODE-207"], needs=NEEDS, node_config=NO_CRASH_DELAY)  # fmt: skip  # noqa: E501
async def a_known_secret_serves_while_the_api_is_away(node: Node) -> None:
    """While the API server is away a restarted container of a pod with a pull secret still pulls
    with it."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", host))
    work = in_turn(exits(1, after_s=5), runs())
    plan = pod(
        "web",
        container("main", work, image=image, imagePullPolicy="Always"),
        imagePullSecrets=[{"name": "login"}],
    )
    await node.api.create_pod(plan)
    await wait_running(node, "web")
    with node.api.down():
        await node.run_until(
            lambda: node.count("StartContainer", pod="web") == 2,
            within_s=5 + 2 * PULLED_S,
            what="a second start",
        )
    expect_equal(node, users(node, image), [USER, USER], "users of the pulls")


@conformance(id="image-not-for-everyone", rules=["BACK-210"], needs=NEEDS)
async def an_image_pulled_with_a_secret_is_not_for_everyone(node: Node) -> None:
    """A pod without the secret must pull the present image itself, and cannot; with policy Never
    it is told that the image is not there."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", host))
    await node.api.create_pod(with_secrets("owner", image, "login"))
    await wait_running(node, "owner")
    await node.api.create_pod(with_secrets("guest", image))
    await wait_waiting(node, "guest", "ErrImagePull")
    expect_equal(node, users(node, image, "guest")[0], "", "user of the guest's pull")
    await node.api.create_pod(with_secrets("quiet", image, imagePullPolicy="Never"))
    text = f'Container image "{image}" is not present with pull policy of Never'
    expect_equal(node, await wait_waiting(node, "quiet", "ErrImageNeverPull"), text, "message")


@conformance(id="image-for-the-same-secret", rules=["BACK-210"], needs=NEEDS)
async def the_same_login_needs_no_second_pull(node: Node) -> None:
    """Pods with the same secret, or with the same login in another one, use the present image
    without a pull."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", host))
    await node.api.create_secret(pull_secret("copy", host))
    await node.api.create_pod(with_secrets("owner", image, "login"))
    await wait_running(node, "owner")
    await node.api.create_pod(with_secrets("same", image, "login"))
    await node.api.create_pod(with_secrets("equal", image, "copy"))
    await wait_running(node, "same")
    await wait_running(node, "equal")
    expect_equal(node, len(pulls(node, image)), 1, "pulls for three pods")


@conformance(id="image-pulled-openly", rules=["BACK-210"], needs=NEEDS)
async def an_image_pulled_anonymously_is_for_everyone(node: Node) -> None:
    """An image that was pulled without credentials is used by other pods without a pull."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    for name in ("owner", "guest"):
        await node.api.create_pod(with_secrets(name, image))
        await wait_running(node, name)
    expect_equal(node, len(pulls(node, image)), 1, "pulls for two pods")


@conformance(id="image-records-stay", rules=["BACK-211"], needs=[*NEEDS, Feature.RESTART])
async def a_restarted_kubelet_knows_who_pulled(node: Node) -> None:
    """After a restart an image pulled with a secret is still not for everyone."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", host))
    await node.api.create_pod(with_secrets("owner", image, "login"))
    await wait_running(node, "owner")
    await node.kubelet.restart()
    await node.api.create_pod(with_secrets("guest", image))
    await wait_waiting(node, "guest", "ErrImagePull")
    await node.api.create_pod(with_secrets("same", image, "login"))
    await wait_running(node, "same")
    expect_equal(node, pulls(node, image, "same"), [], "pulls with the same secret")
