"""`node.kubelet`: the kubelet under test: stop it, start it with other fields, ask it.

A case never reaches the inside of the kubelet: it is started, gets signals, and answers on the
interfaces that every kubelet has.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import failure
from kubelet_conformance.harness.kubelets.base import HttpAnswer, HttpRequest, KubeletDied
from kubelet_conformance.harness.kubelets.clients import make_authority
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.node.watch import Watch


class NodeKubelet:
    """The kubelet of the node. It runs when the case begins.

    `config` of these methods are fields of KubeletConfiguration by their names in the API
    (`maxPods=5`), `flags` are words of the command line (`--max-pods=5`). Stopping a kubelet that
    does not run, or starting one that does, raises RuntimeError.
    """

    def __init__(self, parts: Parts, watch: Watch) -> None:
        self._parts = parts
        self._watch = watch

    async def stop(self) -> None:
        """Stop the kubelet as a service manager does (SIGTERM); its containers keep running."""
        self._watch.plan("stop")
        await self._parts.kubelet.stop()

    async def kill(self) -> None:
        """Kill the kubelet without warning (SIGKILL); its containers keep running."""
        self._watch.plan("kill")
        await self._parts.kubelet.kill()

    async def start(self, *flags: str, **config: Any) -> None:
        """Start the kubelet again; the flags and the fields in `config` hold from now on. Raises
        KubeletDied."""
        self._parts.config.update(config)
        self._parts.flags += flags
        self._watch.plan("start")
        await self._parts.kubelet.start(self._parts.config, self._parts.flags)
        self._watch.kubelet_started()

    async def restart(self, *flags: str, **config: Any) -> None:
        """Stop the kubelet and start it; the flags and the fields in `config` hold from now on."""
        await self.stop()
        await self.start(*flags, **config)

    async def refused_start(self, *flags: str, **config: Any) -> str:
        """Stop the kubelet, start it with flags and fields that it must not accept, and return the
        last lines of its log. No kubelet runs afterwards, and they are forgotten.

        Raises ExpectationFailed when it runs with them for limits.START_S.
        """
        await self.stop()
        try:
            given = {**self._parts.config, **config}
            await self._parts.kubelet.start(given, (*self._parts.flags, *flags))
            await self._watch.run_for(limits.START_S + self._watch.slack_s)
        except KubeletDied as died:
            await self._parts.kubelet.close()
            return str(died).replace('\\"', '"')  # Go quotes errors in its log
        given_words = f"{' '.join(flags)} {config or ''}".strip()
        raise failure(self._watch, f"a kubelet that does not start with {given_words}", "it runs")

    @asynccontextmanager
    async def pressure(self, signal: str) -> AsyncIterator[None]:
        """A block in which the node is under pressure by configuration (Feature.PRESSURE): the
        kubelet is restarted with a hard threshold for `signal` (`memory.available`) that no node
        can meet, and at the end with the case's own thresholds."""
        before = self._parts.config.get("evictionHard", {})
        await self.restart(evictionHard={signal: "99.9%"})
        yield
        await self.restart(evictionHard=before)

    async def get(self, path: str, **request: Any) -> HttpAnswer:
        """The answer to GET of `path` (with its query) on the main port; `request`: the fields of
        HttpRequest. Raises KubeletDied."""
        return await self.http(path=path, **request)

    async def http(self, **request: Any) -> HttpAnswer:
        """The answer to a request, which has the fields of HttpRequest. Raises KubeletDied."""
        return await self._parts.kubelet.http(HttpRequest(**request))

    def client_authority(self) -> str:
        """The path of a file with an authority for client certificates: clientCAFile."""
        return str(make_authority(self._parts.paths.client_ca.parent))

    def certificate_file(self, name: str) -> Path:
        """A file in the directory where the kubelet keeps its certificates; it may be missing."""
        return self._parts.paths.pki / name

    async def summary(self) -> dict[str, Any]:
        """The statistics of the node and its pods, as `/stats/summary` shows them now. Raises
        KubeletDied."""
        return await self._parts.kubelet.summary()

    async def pod_resources(self, method: str, **fields: str) -> Any:
        """The answer of the pod-resources API to `List`, `GetAllocatableResources` or `Get`, or to
        `v1alpha1.List`;
        `fields` are those of the request. Raises LookupError with the kubelet's message for a pod
        that it does not know."""
        return await self._parts.kubelet.pod_resources(method, **fields)
