"""Pull secrets, and which pods may use an image that was pulled with one."""

import base64
import json
from typing import Any

from kubelet_conformance.cases.images.seen import (
    PULLED_S,
    error_of,
    pulls,
    wait_event,
    wait_running,
    wait_waiting,
    waiting,
)
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.image_registry import USER, docker_config, pull_secret
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

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


@conformance(id="pull-with-secret", rules=["BACK-209.1", "CRI-097"], needs=NEEDS)
async def a_pull_secret_opens_its_registry(node: Node) -> None:
    """The user and password of a pull secret for the image's registry are sent with the pull."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", host))
    await node.api.create_pod(with_secrets("web", image, "login"))
    await wait_running(node, "web")
    expect_equal(node, users(node, image), [USER], "users of the pulls")


@conformance(id="pull-with-old-secret", rules=["BACK-209.4", "BACK-209.5"], needs=NEEDS)
async def a_secret_in_the_old_format_does_too(node: Node) -> None:
    """A pull secret of the old type kubernetes.io/dockercfg serves as well."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", f"https://{host}/v1/", kind="dockercfg"))
    await node.api.create_pod(with_secrets("web", image, "login"))
    await wait_running(node, "web")
    expect_equal(node, users(node, image), [USER], "users of the pulls")


@conformance(
    id="pull-wrong-password",
    rules=["BACK-205.3", "BACK-209.1", "CRI-097.5", "CRI-009.5"],
    needs=NEEDS,
)
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


@conformance(id="pull-without-secret", rules=["BACK-209.1"], needs=NEEDS)
async def without_a_secret_the_pull_is_anonymous(node: Node) -> None:
    """Without pull secrets there is one anonymous try, which a closed registry refuses."""
    image, _ = await private_image(node)
    await node.api.create_pod(with_secrets("web", image))
    await wait_waiting(node, "web", "ErrImagePull")
    expect_equal(node, users(node, image)[0], "", "user of the first pull")


@conformance(id="pull-secret-of-another-host", rules=["BACK-209.5"], needs=NEEDS)
async def a_login_goes_to_its_own_registry_only(node: Node) -> None:
    """A login for another host, for the domain above it, for another port or path is not sent, so
    that no registry learns the password of another."""
    image, host = await private_image(node)
    other_places = (f"other.{host}", host.partition(".")[2], f"{host}:5000", f"{host}/another")
    await node.api.create_secret(pull_secret("login", *other_places))
    await node.api.create_pod(with_secrets("web", image, "login"))
    await wait_waiting(node, "web", "ErrImagePull")
    expect_equal(node, set(users(node, image)), {""}, "users of the pulls")


@conformance(
    id="pull-secrets-in-turn",
    rules=["BACK-209.1", "BACK-209.5", "BACK-209.6", "CRI-097.5"],
    needs=NEEDS,
)
async def every_login_is_tried_the_closest_place_first(node: Node) -> None:
    """Several logins for one image are tried one after the other until one succeeds: those for the
    longer path first, equal ones in the order of the secrets; those after it are not tried."""
    image, host = await private_image(node)
    await node.api.create_secret(pull_secret("wide", f"*.{host.partition('.')[2]}"))
    await node.api.create_secret(pull_secret("host", host, user="host"))
    await node.api.create_secret(pull_secret("again", host))
    await node.api.create_secret(pull_secret("path", f"{host}/team", user="path"))
    await node.api.create_secret(pull_secret("text", f"{host}/te", user="text"))
    secrets = ("wide", "host", "again", "text", "path")
    await node.api.create_pod(with_secrets("web", image, *secrets))
    await wait_running(node, "web")
    expected_users = ["path", "text", "host", USER]
    expect_equal(node, users(node, image), expected_users, "users of the pulls")


@conformance(id="pull-secret-for-a-domain", rules=["BACK-209.5"], needs=NEEDS)
async def a_login_may_be_for_all_hosts_of_a_domain(node: Node) -> None:
    """A `*` in the place of a login stands for one part of a host's name, not for several, and not
    for none."""
    image, host = await private_image(node)
    domain = host.partition(".")[2]
    other_places = {"deeper": f"*.*.{domain}", "itself": f"*{host}.{domain}"}
    for name, place in other_places.items():
        await node.api.create_secret(pull_secret(name, place, user=name))
    await node.api.create_secret(pull_secret("wide", f"*.{domain}"))
    await node.api.create_pod(with_secrets("web", image, *other_places, "wide"))
    await wait_running(node, "web")
    expect_equal(node, users(node, image), [USER], "users of the pulls")


@conformance(id="pull-errors-together", rules=["BACK-209.2"], needs=[*NEEDS, Feature.FAULTS])
async def the_errors_of_all_logins_are_told(node: Node) -> None:
    """When every login fails the message has the errors of all of them, equal ones once."""
    image, host = await private_image(node)
    for name in ("one", "two", "three"):
        await node.api.create_secret(pull_secret(name, host, user=name))
    with node.runtime.on("PullImage").fails("UNKNOWN", "line is busy", times=1):
        await node.api.create_pod(with_secrets("web", image, "one", "two", "three"))
        message = await wait_waiting(node, "web", "ErrImagePull")
    error = error_of(pulls(node, image)[1])
    expect_equal(node, users(node, image)[:3], ["one", "two", "three"], "users of the pulls")
    expect_equal(node, message, f"[line is busy, {error}]", "message")


@conformance(id="pull-secret-of-another-type", rules=["BACK-209.4"], needs=NEEDS)
async def only_pull_secrets_are_logins(node: Node) -> None:
    """A Secret of another type is no login, although it has the same key; those after it are."""
    image, host = await private_image(node)
    await node.api.create_secret({**pull_secret("login", host), "type": "Opaque"})
    await node.api.create_pod(with_secrets("web", image, "login"))
    await wait_waiting(node, "web", "ErrImagePull")
    expect_equal(node, set(users(node, image)), {""}, "users of the pulls")
    await node.api.create_secret(pull_secret("good", host))
    await node.api.create_pod(with_secrets("other", image, "login", "good"))
    await wait_running(node, "other")
    expect_equal(node, users(node, image, "other"), [USER], "users of the pulls of the other pod")


@conformance(id="pull-secret-broken", rules=["BACK-209.4"], needs=NEEDS)
async def a_secret_that_cannot_be_read_stops_the_pull(node: Node) -> None:
    """With a pull secret that holds no logins no pull is tried, not even an anonymous one."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    broken = base64.b64encode(b'{"auths": "no map"}').decode()
    login = {**pull_secret("login", "any"), "data": {".dockerconfigjson": broken}}
    await node.api.create_secret(login)
    await node.api.create_pod(with_secrets("web", image, "login"))
    await node.run_until(
        lambda: waiting(node, "web").get("reason") not in (None, "ContainerCreating"),
        within_s=PULLED_S,
        what="the container waits for its image",
    )
    await node.run_for(2)
    expect_equal(node, users(node, image), [], "users of the pulls")


@conformance(id="pull-with-hub-login", rules=["BACK-209.7"], needs=[*NEEDS, Feature.FAULTS])
async def the_login_of_the_hub_is_for_names_without_a_registry(node: Node) -> None:
    """A login for https://index.docker.io/v1/ is sent with pulls of names that have no registry,
    and with no others."""
    registry = await node.runtime.registry()
    plain, other = "not-there:1", f"{registry.open_host}/app:1"
    await node.api.create_secret(pull_secret("hub", "https://index.docker.io/v1/"))
    two = (container("main", image=plain), container("other", image=other))
    with node.runtime.on("PullImage").fails("UNKNOWN", "not today"):
        await node.api.create_pod(pod("web", *two, imagePullSecrets=[{"name": "hub"}]))
        await node.run_until(
            lambda: pulls(node, plain) and pulls(node, other), within_s=PULLED_S, what="both pulls"
        )
    expect_equal(node, set(users(node, plain)), {USER}, f"users of the pulls of {plain}")
    expect_equal(node, set(users(node, other)), {""}, f"users of the pulls of {other}")


@conformance(
    id="pull-logins-and-rate",
    rules=["BACK-208.5"],
    needs=NEEDS,
    node_config={"registryPullQPS": 1, "registryBurst": 1},
)
async def several_logins_are_one_pull_for_the_rate(node: Node) -> None:
    """The rate limit counts a pull once, however many logins it tries."""
    image, host = await private_image(node)
    for name in ("one", "two"):
        await node.api.create_secret(pull_secret(name, host, user=name))
    await node.api.create_secret(pull_secret("login", host))
    await node.api.create_pod(with_secrets("web", image, "one", "two", "login"))
    await wait_running(node, "web")
    expect_equal(node, users(node, image), ["one", "two", USER], "users of the pulls")


@conformance(
    id="pull-with-node-login", rules=["BACK-209.1", "BACK-209.8"], needs=[*NEEDS, Feature.RESTART]
)
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


@conformance(
    id="node-logins-reread",
    rules=["BACK-209.8"],
    needs=[*NEEDS, Feature.RESTART, Feature.VIRTUAL_TIME],
)
async def the_logins_of_the_node_are_read_every_five_minutes(node: Node) -> None:
    """.dockercfg in the kubelet's root directory is used while there is no config.json; a new file
    counts after 5 minutes."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    old = json.loads(docker_config(registry.open_host, user="old"))["auths"]
    await node.kubelet.stop()
    node.machine.write_root_file(".dockercfg", json.dumps(old))
    await node.kubelet.start()

    async def user_of(name: str) -> str:
        await node.api.create_pod(with_secrets(name, image, imagePullPolicy="Always"))
        await wait_running(node, name)
        return users(node, image, name)[0]

    expect_equal(node, await user_of("web"), "old", "user of the first pull")
    node.machine.write_root_file("config.json", docker_config(registry.open_host, user="new"))
    await node.run_for(200)
    expect_equal(node, await user_of("soon"), "old", "user after 200 s")
    await node.run_for(100)
    expect_equal(node, await user_of("later"), "new", "user after 5 min")


@conformance(id="pull-secret-missing", rules=["BACK-209.3", "LIFE-070"], needs=NEEDS)
async def a_missing_secret_is_told_and_left_out(node: Node) -> None:
    """When a pull secret does not exist, an event warns of it and the image is pulled without it,
    or with those that exist."""
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
    closed, host = await private_image(node)
    await node.api.create_secret(pull_secret("login", host))
    await node.api.create_pod(with_secrets("next", closed, "gone", "login"))
    await wait_running(node, "next")
    text = text.replace("gone, lost", "gone")
    await wait_event(node, "next", "FailedToRetrieveImagePullSecret", text)
    expect_equal(node, users(node, closed), [USER], "users of the pulls with another secret")


@conformance(id="pull-secret-without-api", rules=["BACK-209.1", "NODE-207"], needs=NEEDS, node_config=NO_CRASH_DELAY, since="1.35", alone=True)  # fmt: skip  # noqa: E501
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
