"""Exec, attach, port-forward, run and checkpoint: what is asked of the runtime, and of which
container.

The runtime gives an address, with which the client's connection is joined (`tunnel`). A request
that does not ask for an upgrade is refused after that, as upstream does.
Rules: SRV-025, SRV-026. Upstream: pkg/kubelet/server/server.go; pkg/kubelet/kubelet_pods.go:
GetExec, GetAttach, GetPortForward.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from refkubelet.cri.records import ListedContainer, RuntimePod, SandboxState
from refkubelet.cri.streams import Wanted
from refkubelet.cri.target import CriCallError
from refkubelet.model.objects import Pod
from refkubelet.model.pod import all_containers, full_name, name_and_namespace, uid
from refkubelet.server.access.credentials import without_token
from refkubelet.server.common.exchange import JSON, Answer, Request, Tunnel, as_json, error, text
from refkubelet.server.common.host import ServerHost
from refkubelet.server.common.routes import Route
from simclock import format_rfc3339

NO_POD: Final = "pod does not exist"
NO_STREAMS: Final = "you must specify at least 1 of stdin, stdout, stderr"
TUNNEL_PREFIX: Final = "SPDY/3.1+"
CLOSABLE: Final = "v5.channel.k8s.io"
BY_WEBSOCKET: Final = "ExtendWebSocketsToKubelet"
_RETRY_AFTER: Final = {"Retry-After": "60"}
_NUMBER: Final = re.compile(r"[+-]?[0-9]+\Z")


class Refusal(Exception):
    """A request that is answered with an error; `answer` is that answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body.decode())
        self.answer = answer


class Commands(Struct, frozen=True):
    """The handlers."""

    host: ServerHost

    async def exec(self, request: Request, route: Route) -> Answer:
        """/exec: run a command in a container, with streams to the client."""

        async def address() -> str:
            streams = _wanted(request)
            listed = await self._running(self._pod(route), route.parts["container"])
            url = await self.host.streams.exec(listed.id, request.every("command"), streams)
            self._count(request, "exec", by_websocket=is_closable(request))
            return url

        return await _joined(request, address)

    async def attach(self, request: Request, route: Route) -> Answer:
        """/attach: streams to and from the first process of a container."""

        async def address() -> str:
            streams = _wanted(request)
            pod, name = self._pod(route), route.parts["container"]
            listed = await self._container(pod, name)
            if listed is None:
                raise _failure(f"container {name} not found in pod {full_name(pod)}")
            pod_uid = route.parts.get("uid")
            if pod_uid and self.host.pods.static_uid(pod_uid) != uid(pod):
                raise _failure(f"pod {full_name(pod)} not found")
            tty = any(c.name == name and c.tty for c in all_containers(pod))
            streams = Wanted(streams.stdin, streams.stdout, streams.stderr, tty)
            url = await self.host.streams.attach(listed.id, streams)
            self._count(request, "attach", by_websocket=is_closable(request))
            return url

        return await _joined(request, address)

    async def port_forward(self, request: Request, route: Route) -> Answer:
        """/portForward: streams to ports of a pod."""

        async def address() -> str:
            ports = () if is_tunnelled(request) else ports_of(request)
            pod = self._pod(route)
            pod_uid = route.parts.get("uid")
            if pod_uid and uid(pod) != pod_uid:
                raise Refusal(text("pod not found", 404))
            runtime_pod = await self._runtime_pod(pod)
            if runtime_pod is None:
                raise _failure(f'pod not found ("{full_name(pod)}")')
            ready = [s for s in runtime_pod.sandboxes if s.state is SandboxState.READY]
            if not ready:
                raise _failure(f'failed to find sandboxID for pod "{full_name(pod)}"')
            newest = max(ready, key=lambda sandbox: sandbox.created_at_ns)
            url = await self.host.streams.port_forward(newest.id, ports)
            self._count(request, "portforward", by_websocket=is_tunnelled(request))
            return url

        return await _joined(request, address)

    def _count(self, request: Request, subresource: str, *, by_websocket: bool) -> None:
        """Count a stream of today's WebSocket protocols, unless their gate is off (SRV-038.5)."""
        if by_websocket and self.host.gates(BY_WEBSOCKET, True):
            self.host.counted.websockets.inc(subresource)

    async def run(self, request: Request, route: Route) -> Answer:
        """Run `cmd` to its end; the answer is its output, or 500 with why it failed."""
        command = request.first("cmd").split(" ")
        try:
            listed = await self._running(self._pod(route), route.parts["container"])
            result = await self.host.client.exec_sync(listed.id, command)
        except Refusal as refusal:
            return refusal.answer
        except CriCallError as problem:
            return text(problem.text, 500)
        if result.exit_code:
            why = result.stderr.decode(errors="replace")
            words = f"command '{' '.join(command)}' exited with {result.exit_code}: {why}"
            return text(words, 500)
        return Answer(body=result.stdout + result.stderr, content_type=JSON)

    async def checkpoint(self, request: Request, route: Route) -> Answer:
        """Let the runtime write a checkpoint of a container; the answer names the file."""
        try:
            return await self._checkpoint(request, route)
        except Refusal as refusal:
            return refusal.answer

    async def _checkpoint(self, request: Request, route: Route) -> Answer:
        pod, name = self._pod(route), route.parts["container"]
        if all(c.name != name for c in all_containers(pod)):
            return text(f"container {name} does not exist", 404)
        timeouts = request.every("timeout")
        if timeouts and not _is_int64(timeouts[-1]):
            return text("cannot parse value of timeout parameter", 404)
        timeout_s = int(timeouts[-1]) if timeouts else 0
        time = format_rfc3339(self.host.clock.wall_ns())
        file = f"checkpoint-{full_name(pod)}-{name}-{time}.tar"
        place = f"{self.host.files.checkpoints}/{file}"
        try:
            listed = await self._container(pod, name)
            if listed is None:
                raise _failure(f"container {name} not found")
            await self.host.streams.checkpoint(listed.id, place, timeout_s)
        except (CriCallError, Refusal) as problem:
            pod_name, namespace = name_and_namespace(pod)
            why = f"checkpointing of {namespace}/{pod_name}/{name} failed ({problem})"
            return text(why, 500)
        return as_json({"items": [place]})

    # -- which pod, which container --------------------------------------------------------------

    def _pod(self, route: Route) -> Pod:
        """Raises `Refusal`."""
        pod = self.host.pods.by_name(route.parts["namespace"], route.parts["pod"])
        if pod is None:
            raise Refusal(text(NO_POD, 404))
        return pod

    async def _runtime_pod(self, pod: Pod) -> RuntimePod | None:
        name, namespace = name_and_namespace(pod)
        pods = await self.host.pods.running()
        return next((p for p in pods if (p.name, p.namespace) == (name, namespace)), None)

    async def _container(self, pod: Pod, name: str) -> ListedContainer | None:
        of_pod = await self._runtime_pod(pod)
        return next((c for c in of_pod.containers if c.name == name), None) if of_pod else None

    async def _running(self, pod: Pod, name: str) -> ListedContainer:
        """Raises `Refusal` if no container of that name runs."""
        listed = await self._container(pod, name)
        if listed is None:
            raise _failure(f'container not found ("{name}")')
        return listed


async def _joined(request: Request, address: Callable[[], Awaitable[str]]) -> Answer:
    """The connection joined with the address that the runtime gives; or why it cannot be."""
    try:
        url = await address()
    except Refusal as refusal:
        return refusal.answer
    except CriCallError as problem:
        return refused_by_runtime(problem)
    if not request.is_upgrade:
        return error(500, "Upgrade request required")
    return Answer(tunnel=Tunnel(url, without_token(request)))


def refused_by_runtime(problem: CriCallError) -> Answer:
    """The answer to an error of the runtime (SRV-025.6)."""
    if problem.not_found:
        return text(problem.text, 404)
    if problem.code == "RESOURCE_EXHAUSTED":
        return Answer(status=429, body=problem.text.encode(), headers=_RETRY_AFTER)
    return text(problem.text, 500)


def _failure(words: str) -> Refusal:
    return Refusal(text(words, 500))


def _is_int64(value: str) -> bool:
    return bool(_NUMBER.match(value)) and -(1 << 63) <= int(value) < 1 << 63


def _wanted(request: Request) -> Wanted:
    """The streams of exec and attach. Raises `Refusal` if there is none (SRV-025.2)."""
    tty = request.first("tty") == "1"
    streams = Wanted(
        stdin=request.first("input") == "1",
        stdout=request.first("output") == "1",
        stderr=request.first("error") == "1" and not tty,
        tty=tty,
    )
    if not (streams.stdin or streams.stdout or streams.stderr):
        raise Refusal(text(NO_STREAMS, 400))
    return streams


def is_closable(request: Request) -> bool:
    """Whether a WebSocket has the protocol whose streams can be closed one by one."""
    return request.is_websocket and CLOSABLE in request.websocket_protocols


def is_tunnelled(request: Request) -> bool:
    """Whether a WebSocket carries SPDY, so that the ports come later (SRV-026.2)."""
    return request.is_websocket and any(
        p.startswith(TUNNEL_PREFIX) and p.endswith(".k8s.io") for p in request.websocket_protocols
    )


def ports_of(request: Request) -> tuple[int, ...]:
    """The ports of a WebSocket; none for SPDY, whose streams name them. Raises `Refusal`."""
    if not request.is_websocket:
        return ()
    values = request.every("port")
    if not values:
        raise Refusal(text('query parameter "port" is required', 400))
    ports: list[int] = []
    for value in values:
        if not value:
            raise Refusal(text('query parameter "port" cannot be empty', 400))
        ports += (_port(value, word) for word in value.split(","))
    return tuple(ports)


def _port(value: str, word: str) -> int:
    if not word.isascii() or not word.isdigit():
        why = f'strconv.ParseUint: parsing "{word}": invalid syntax'
        raise Refusal(text(f'unable to parse "{value}" as a port: {why}', 400))
    if int(word) > 65535:
        why = f'strconv.ParseUint: parsing "{word}": value out of range'
        raise Refusal(text(f'unable to parse "{value}" as a port: {why}', 400))
    if int(word) < 1:
        raise Refusal(text(f'port "{value}" must be > 0', 400))
    return int(word)
