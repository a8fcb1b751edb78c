"""An image registry as cases see it: images to pull, with a password or without, and outages.

Each case has its own, so that an outage does not disturb other cases, and references are never
shared between cases, since images stay on a real node. A fake runtime pulls from
`runtimes.fake`; `containerd.image_registries` starts real ones.
"""

from __future__ import annotations

import base64
import json
from typing import Any, Final, Protocol

USER: Final = "kubelet"
PASSWORD: Final = "let-me-in"
OPEN_HOST: Final = "open.registry.test"
CLOSED_HOST: Final = "closed.registry.test"


class ImageRegistry(Protocol):
    """A registry under two host names with the same images: `open_host` needs no login,
    `closed_host` that of `USER` with `PASSWORD`. It runs from the beginning."""

    open_host: str
    closed_host: str

    async def add(self, name: str) -> None:
        """Serve an image as `name` (`app:1`) from now on."""

    async def stop(self) -> None:
        """Refuse connections from now on."""

    async def start(self) -> None:
        """Serve again after `stop`."""


class ImageRegistries(Protocol):
    """Makes registries beside a real runtime."""

    async def make(self) -> ImageRegistry:
        """A new one, running and empty."""


def pull_secret(
    name: str,
    *hosts: str,
    user: str = USER,
    password: str = PASSWORD,
    kind: str = "dockerconfigjson",
) -> dict[str, Any]:
    """A Secret with a login for these hosts; `kind`: the new format (`dockerconfigjson`) or the
    old one (`dockercfg`)."""
    text = docker_config(*hosts, user=user, password=password)
    if kind == "dockercfg":
        text = json.dumps(json.loads(text)["auths"])
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": f"kubernetes.io/{kind}",
        "data": {f".{kind}": base64.b64encode(text.encode()).decode()},
    }


def docker_config(*hosts: str, user: str = USER, password: str = PASSWORD) -> str:
    """The text of a Docker config.json with a login for these hosts."""
    auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    return json.dumps({"auths": {host: {"auth": auth} for host in hosts}})
