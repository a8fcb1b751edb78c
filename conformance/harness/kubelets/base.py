"""What the harness needs of a kubelet: start, stop, kill, and what it says about its pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class NodePaths:
    """The directories of one case; all below one temporary directory."""

    base: Path

    @property
    def manifests(self) -> Path:
        return self.base / "manifests"

    @property
    def root(self) -> Path:
        return self.base / "kubelet"

    @property
    def logs(self) -> Path:
        return self.base / "logs"

    @property
    def config(self) -> Path:
        return self.base / "kubelet.yaml"

    def make(self) -> None:
        """Create the directories."""
        for path in (self.manifests, self.root, self.logs):
            path.mkdir(parents=True, exist_ok=True)


class KubeletDied(Exception):
    """The kubelet under test ended by itself; the text holds its last words."""


class Kubelet(Protocol):
    """The kubelet under test. Starting twice, or stopping what does not run, is the harness's
    mistake and raises RuntimeError."""

    async def start(self, config: Mapping[str, Any]) -> None:
        """Start with that KubeletConfiguration; returns when it runs."""
        ...

    async def stop(self) -> None:
        """SIGTERM or its like; returns when it is gone. Containers keep running."""
        ...

    async def close(self) -> None:
        """Nothing of it is left, whatever state it is in."""
        ...

    async def kill(self) -> None:
        """SIGKILL or its like."""
        ...

    async def pods(self) -> Sequence[dict[str, Any]]:
        """What `/pods` lists, as JSON objects. Raises KubeletDied."""
        ...

    async def pod_resources(self, method: str, **fields: str) -> Any:
        """The answer of a method of the pod-resources API, asked with these fields. Raises
        LookupError with the kubelet's words when it has none."""
        ...

    async def summary(self) -> dict[str, Any]:
        """What `/stats/summary` shows. Raises KubeletDied."""
        ...
