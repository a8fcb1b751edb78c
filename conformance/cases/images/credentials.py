"""Pull secrets, and which pods may use an image that was pulled with one."""

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
    """A pod whose container has that image, with those pull secrets."""
    references = [{"name": secret} for secret in secrets]
    return pod(name, container("main", image=image, **fields), imagePullSecrets=references)


async def private_image(node: Node) -> tuple[str, str]:
    """An image behind a password: its reference and its host."""
    registry = await node.runtime.registry()
    await registry.add("team/app:1")
    return f"{registry.closed_host}/team/app:1", registry.closed_host


def users(node: Node, image: str, pod: str | None = None) -> list[str]:
    """The user of each pull of that image; "" for an anonymous pull."""
    return [call.request.auth.username for call in pulls(node, image, pod)]


@conformance(id="pull-with-secret", rules=["BACK-209", "CRI-097"], needs=NEEDS)
async def a_pull_secret_opens_its_registry(node: Node) -> None:
    """The user and password of a pull secret for the image's registry are sent with the pull."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", host))
    await node.api.create_pod(with_secrets("web", image, "login"))
    await wait_running(node, "web")
    expect_equal(node, users(node, image), [USER], "users of the pulls")


@conformance(id="pull-with-old-secret", rules=["BACK-209"], needs=NEEDS)
async def a_secret_in_the_old_format_does_too(node: Node) -> None:
    """A pull secret of the old type kubernetes.io/dockercfg serves as well."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", f"https://{host}/v1/", kind="dockercfg"))
    await node.api.create_pod(with_secrets("web", image, "login"))
    await wait_running(node, "web")
    expect_equal(node, users(node, image), [USER], "users of the pulls")


@conformance(id="pull-wrong-password", rules=["BACK-205", "BACK-209", "CRI-097.5"], needs=NEEDS)
async def a_wrong_password_is_told(node: Node) -> None:
    """With a wrong password the container waits with ErrImagePull and the runtime's message, and no
    anonymous pull is tried."""
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
    """A login for another host, port or path is not sent, so that no registry learns the password
    of another."""
    image, host = await private_image(node)
    others = (f"other.{host}", f"{host}:5000", f"{host}/another")
    await node.api.create_secret(pull_secret("login", *others))
    await node.api.create_pod(with_secrets("web", image, "login"))
    await wait_waiting(node, "web", "ErrImagePull")
    expect_equal(node, set(users(node, image)), {""}, "users of the pulls")


@conformance(id="pull-secrets-in-turn", rules=["BACK-209", "CRI-097.5"], needs=NEEDS)
async def every_login_is_tried_the_closest_place_first(node: Node) -> None:
    """Several logins for one image are tried one after the other until one succeeds: those for the
    longer path first, equal ones in the order of the secrets."""
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
    """A Docker configuration in the kubelet's root directory is a login for all pods, tried after
    their own secrets, and an image pulled with it may be used by every pod."""
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
    """When a pull secret does not exist, an event warns of it and the image is pulled without
    it."""
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
    """While the API server cannot be reached, a restarted container still pulls with the pod's
    secret, which the kubelet remembers."""
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
    """A pod without the secret must pull an image that is present but was pulled with that secret,
    and the registry refuses it; with policy Never the image counts as absent for that pod."""
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
    """Pods with the same secret, or with the same login in another secret, use the present image
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
async def a_restarted_kubelet_knows_with_what_an_image_was_pulled(node: Node) -> None:
    """After a restart of the kubelet an image that was pulled with a secret still may not be used
    without it."""
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
