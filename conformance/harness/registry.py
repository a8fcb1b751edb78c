"""A registry as cases see it: images that can be pulled, openly or with a password, and outages.

Every case has one of its own, so that an outage is nobody else's. `FakeRegistry` is what a fake
runtime pulls from; `containerd/registry.py` starts real ones. What must never happen: a reference
that two cases share, since images stay on a real node.
"""

from __future__ import annotations

import base64
import json
from typing import Any, Final, Protocol

from fakecri import RegistryImage
from fakecri.core.images import connection_refused, not_found

USER: Final = "kubelet"
PASSWORD: Final = "let-me-in"
OPEN_HOST: Final = "open.registry.test"
CLOSED_HOST: Final = "closed.registry.test"


class Registry(Protocol):
    """`open_host` serves everybody, `closed_host` those who know `USER` and `PASSWORD`; both have
    the same images. Running from the beginning."""

    open_host: str
    closed_host: str

    async def add(self, name: str) -> None:
        """Serve an image as `name` (`app:1`) from now on."""
        ...

    async def stop(self) -> None:
        """Refuse connections."""
        ...

    async def start(self) -> None:
        """Serve again after `stop`."""
        ...


class Registries(Protocol):
    """Makes registries beside a real runtime."""

    async def make(self) -> Registry: ...


def pull_secret(
    name: str,
    *hosts: str,
    user: str = USER,
    password: str = PASSWORD,
    kind: str = "dockerconfigjson",
) -> dict[str, Any]:
    """A Secret with a login for these places, in the new format (`dockerconfigjson`) or the old
    one (`dockercfg`)."""
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
    """A Docker config.json with a login for these places."""
    auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    return json.dumps({"auths": {host: {"auth": auth} for host in hosts}})


class FakeRegistry:
    """A `fakecri.core.images.Registry` with the faults of `Registry`."""

    def __init__(self) -> None:
        self.open_host = OPEN_HOST
        self.closed_host = CLOSED_HOST
        self._images: set[str] = set()
        self._away = False

    def __call__(self, reference: str) -> RegistryImage | None:
        """What a pull of the normalised reference meets."""
        host, _, name = reference.partition("/")
        if host not in (self.open_host, self.closed_host):
            return None
        if self._away:
            return RegistryImage(error=connection_refused(reference))
        wanted = (USER, PASSWORD) if host == self.closed_host else None
        if name in self._images:
            content = f"{self.open_host}/{name}"  # the same image on both hosts
            return RegistryImage(content=content, credentials=wanted)
        return RegistryImage(error=not_found(reference), error_code="NOT_FOUND", credentials=wanted)

    async def add(self, name: str) -> None:
        self._images.add(name)

    async def stop(self) -> None:
        self._away = True

    async def start(self) -> None:
        self._away = False
