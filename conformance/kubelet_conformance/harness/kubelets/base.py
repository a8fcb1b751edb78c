"""The interface of a kubelet under test: start, stop, kill, and what it shows of its pods."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct, field

LOG_LINKS: Final = Path("/var/log/containers")
"""Where every real kubelet makes links to the logs of containers."""
DEVICE_PLUGINS: Final = Path("/var/lib/kubelet/device-plugins")
"""Where kubelet programs listen for device plugins, whatever their flags say."""


class NodePaths(Struct, frozen=True):
    """The directories of one case; all below one temporary directory."""

    base: Path

    @property
    def manifests(self) -> Path:
        """The directory of static pod manifests."""
        return self.base / "manifests"

    @property
    def root(self) -> Path:
        """The kubelet's root directory."""
        return self.base / "kubelet"

    @property
    def logs(self) -> Path:
        """The directory of pod logs."""
        return self.base / "logs"

    @property
    def log_links(self) -> Path:
        """The directory of links to container logs, for a kubelet that can be told which, or has a
        given machine: a real one has LOG_LINKS."""
        return self.base / "containers"

    @property
    def links_below_root(self) -> Path:
        """Where refkubelet as a process makes them: it leaves the machine's directories alone."""
        return self.root / "logs" / "containers"

    @property
    def client_ca(self) -> Path:
        """The file of the authority that signs client certificates, in cases that make one."""
        return self.base / "clients" / "ca.crt"

    @property
    def pki(self) -> Path:
        """Where the kubelet keeps its certificates (--cert-dir)."""
        return self.base / "pki"

    @property
    def config(self) -> Path:
        """The kubelet's configuration file."""
        return self.base / "kubelet.yaml"

    @property
    def login_config(self) -> Path:
        """The file of credential provider plug-ins, in cases that have some."""
        return self.base / "login-plugins.json"

    @property
    def login_programs(self) -> Path:
        """The directory of their programs."""
        return self.base / "login-programs"

    def make(self) -> None:
        """Create the directories."""
        for path in (self.manifests, self.root, self.logs, self.log_links):
            path.mkdir(parents=True, exist_ok=True)


MAIN: Final = "main"
READ_ONLY: Final = "read-only"
HEALTHZ: Final = "healthz"


class HttpRequest(Struct, frozen=True, kw_only=True):
    """A request to one of the kubelet's ports: MAIN, READ_ONLY or HEALTHZ.

    `path` with its query, as it is sent; `certificate`: common name and organizations of a client
    certificate of the case's own authority. `for_s`: the client leaves after so many seconds; None:
    it waits for the end of the answer.
    """

    port: str = MAIN
    method: str = "GET"
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    certificate: tuple[str, tuple[str, ...]] | None = None
    for_s: float | None = None


class HttpAnswer(Struct, frozen=True):
    """What came; the names of `headers` are in lower case."""

    status: int
    text: str
    headers: Mapping[str, str]

    def json(self) -> Any:
        """The text as JSON. Raises ValueError."""
        return json.loads(self.text)


class KubeletDied(Exception):
    """The kubelet under test has ended by itself, or does not answer; the text has the last lines
    of its log. `ended`: it is known to have ended."""

    def __init__(self, text: str, *, ended: bool = False) -> None:
        super().__init__(text)
        self.ended = ended


class Kubelet(Protocol):
    """The kubelet under test. Starting one that runs, or stopping one that does not, is a mistake
    of the harness and raises RuntimeError."""

    async def start(self, config: Mapping[str, Any], flags: Sequence[str] = ()) -> None:
        """Start with that KubeletConfiguration and these flags, `--name=value`; returns when it
        runs. Raises KubeletDied."""

    async def stop(self) -> None:
        """End it as SIGTERM does; returns when it has ended. Containers keep running."""

    async def close(self) -> None:
        """End it if it runs, and remove everything of it."""

    async def kill(self) -> None:
        """End it as SIGKILL does; returns when it has ended."""

    def log_lines(self) -> Sequence[str]:
        """Its log since the case began, of all its starts; of a long one the end."""
        ...

    async def pods(self) -> Sequence[dict[str, Any]]:
        """The pods in `/pods`, as JSON objects. Raises KubeletDied."""

    async def pod_resources(self, method: str, **fields: str) -> Any:
        """The answer of that method of the pod-resources API; `fields` are those of the request.
        Raises LookupError with the kubelet's message when it refuses."""

    async def http(self, request: HttpRequest) -> HttpAnswer:
        """The answer of one of its ports. Raises KubeletDied."""

    async def summary(self) -> dict[str, Any]:
        """The content of `/stats/summary`. Raises KubeletDied."""
