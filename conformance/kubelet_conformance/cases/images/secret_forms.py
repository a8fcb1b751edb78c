"""How logins may be written in a pull secret, and what is none (BACK-209.4, BACK-209.5)."""

import base64
import json
from typing import Any, Final

from kubelet_conformance.cases.images.credentials import (
    NEEDS,
    private_image,
    users,
    with_secrets,
)
from kubelet_conformance.cases.images.seen import PULLED_S, wait_running, waiting
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.image_registry import PASSWORD, USER, pull_secret
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import conformance


def encoded(text: str) -> str:
    """In base64."""
    return base64.b64encode(text.encode()).decode()


LOGIN: Final = encoded(f"{USER}:{PASSWORD}")
ENTRIES: Final[dict[str, dict[str, str]]] = {
    "two-fields": {"username": USER, "password": PASSWORD},
    "auth-wins": {"username": "other", "password": "other", "auth": LOGIN},
    "empty-auth": {"username": USER, "password": PASSWORD, "auth": ""},
    "no-padding": {"auth": LOGIN.rstrip("=")},
    "line-end": {"auth": f"{LOGIN[:6]}\r\n{LOGIN[6:]}\n"},
    "more-fields": {"auth": LOGIN, "email": "a@example.com", "unknown": "x"},
}
"""Entries of a host that are the login."""
PLACES: Final = ("https://{}", "http://{}/", "https://{}/v1/", "{}/v2/team", "user@{}")
"""How the host may be written."""
BROKEN: Final[dict[str, Any]] = {
    "text-entry": {"auths": {"HOST": "x"}},
    "number-user": {"auths": {"HOST": {"username": 1, "password": "x"}}},
    "no-base64": {"auths": {"HOST": {"auth": "no base64!"}}},
    "cut-base64": {"auths": {"HOST": {"auth": encoded("a:b") + "A"}}},
    "padding": {"auths": {"HOST": {"auth": encoded("a:bc").rstrip("=") + "="}}},
    "no-colon": {"auths": {"HOST": {"auth": encoded("alone")}}},
    "other-host": {"auths": {"example.com": {"auth": encoded("alone")}, "HOST": {"auth": LOGIN}}},
}
"""What is no Docker configuration: one wrong entry is enough."""


def secret(name: str, config: Any, host: str) -> dict[str, Any]:
    """A pull secret with that configuration."""
    text = json.dumps(config).replace("HOST", host)
    return {**pull_secret(name, host), "data": {".dockerconfigjson": encoded(text)}}


@conformance(id="pull-secret-forms", rules=["BACK-209.4", "BACK-209.5"], needs=NEEDS, alone=True)
async def a_login_may_be_written_in_several_ways(node: Node) -> None:
    """User and password stand in two fields or together in `auth`, which wins, with padding or
    without and over several lines; hosts may be written as URLs."""
    image, host = await private_image(node)
    secrets = {name: {"auths": {host: entry}} for name, entry in ENTRIES.items()}
    for number, place in enumerate(PLACES):
        secrets[f"place-{number}"] = {"auths": {place.format(host): {"auth": LOGIN}}}
    for name, config in secrets.items():
        await node.api.create_secret(secret(name, config, host))
        await node.api.create_pod(with_secrets(name, image, name, imagePullPolicy="Always"))
        await wait_running(node, name)
        expect_equal(node, users(node, image, name), [USER], f"users of the pulls of {name}")


@conformance(id="pull-secret-forms-broken", rules=["BACK-209.4"], needs=NEEDS, alone=True)
async def what_is_no_login_stops_the_pull(node: Node) -> None:
    """With a pull secret of which one entry cannot be read nothing is pulled, not even with what is
    good in it."""
    image, host = await private_image(node)
    for name, config in BROKEN.items():
        await node.api.create_secret(secret(name, config, host))
        await node.api.create_pod(with_secrets(name, image, name))
        await node.run_until(
            lambda name=name: (  # type: ignore[misc]
                waiting(node, name).get("reason") not in (None, "ContainerCreating")
            ),
            within_s=PULLED_S,
            what=f"{name} waits for its image",
        )
    await node.run_for(2)
    for name in BROKEN:
        expect_equal(node, users(node, image, name), [], f"users of the pulls of {name}")
