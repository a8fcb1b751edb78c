"""Runs lifecycle hooks, the postStart and preStop handlers (LIFE-142, LIFE-143).

Handlers: exec, httpGet, sleep. A tcpSocket handler is valid in the API, but always fails here. Any
answer of an HTTP server is a success; only a request without an answer fails.
Upstream: pkg/kubelet/lifecycle/handlers.go.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from lightkube.models.core_v1 import HTTPGetAction

from kubeobjects.golang.strconv import quoted
from refkubelet.cri.client import CriClient
from refkubelet.cri.target import CriCallError
from refkubelet.failures import Complaints
from refkubelet.host.addresses import UrlError
from refkubelet.host.http_get import HOOK_AGENT, http_get, http_request
from refkubelet.host.network import HttpRequest, NetworkError
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps, Signal
from refkubelet.kuberuntime.reading.pod_reader import PodReader
from refkubelet.model.objects import Container, LifecycleHandler, Pod
from refkubelet.model.pod import PortError, pod_ref, uid

log = logging.getLogger(__name__)

NO_TLS: Final = "server gave HTTP response to HTTPS client"


class HookError(Exception):
    """The handler failed; the text says why."""


class HookRunner:
    """Runs the handlers of hooks."""

    def __init__(self, client: CriClient, deps: RuntimeDeps) -> None:
        self._client = client
        self._clock = deps.clock
        self._network = deps.network
        self._counted = deps.measures.metrics.started
        self._pods = PodReader(client)
        self._complaints = Complaints(log, deps.clock)

    async def run(
        self, container_id: str, pod: Pod, container: Container, handler: LifecycleHandler
    ) -> None:
        """Run the handler to its end, without a time limit. Raises `HookError` for every failure,
        unexpected exceptions included (LIFE-142, LIFE-143)."""
        try:
            await self._run(container_id, pod, container, handler)
        except HookError:
            raise
        except Exception as error:
            complaint = f"a hook of container {container.name} in {pod_ref(pod)}"
            self._complaints.failed(complaint, error)
            raise HookError(f"Cannot run handler: {type(error).__name__}: {error}") from error

    async def run_until(
        self,
        signal: Signal | None,
        container_id: str,
        *,
        pod: Pod,
        container: Container,
        handler: LifecycleHandler,
    ) -> bool:
        """Run the handler to its end, or give it up when `signal` is set; False: it was given up.
        Raises `HookError`."""
        call = self.run(container_id, pod, container, handler)
        hook = asyncio.create_task(call, name=f"postStart of {container_id}")
        try:
            await first_of(hook, signal)
            if not hook.done():
                return False
            await hook
        finally:
            hook.cancel()
        return True

    async def _run(
        self, container_id: str, pod: Pod, container: Container, handler: LifecycleHandler
    ) -> None:
        if handler.exec is not None:
            await self._exec(container_id, pod, container, handler.exec.command or [])
        elif handler.httpGet is not None:
            try:
                await self._http(pod, container, handler.httpGet)
            except (NetworkError, PortError, UrlError, CriCallError, _NoPodIp) as error:
                path = handler.httpGet.path or ""
                raise HookError(
                    f"HTTP lifecycle hook ({path}) for Container {quoted(container.name)} "
                    f"in Pod {quoted(pod_ref(pod))} failed - error: {error}"
                ) from None
        elif handler.sleep is not None:
            await self._sleep(float(handler.sleep.seconds))
        else:
            kind = "tcpSocket" if handler.tcpSocket is not None else "no action"
            raise HookError(f"Cannot run handler: invalid handler: {kind}")

    async def _exec(
        self, container_id: str, pod: Pod, container: Container, command: list[str]
    ) -> None:
        try:
            result = await self._client.exec_sync(container_id, command)
        except CriCallError as error:
            raise HookError(exec_message(command, pod, container, error=error.text)) from None
        if result.exit_code != 0:
            stderr = result.stderr.decode(errors="replace")
            text = f"command '{' '.join(command)}' exited with {result.exit_code}: {stderr}"
            output = result.stdout + result.stderr
            raise HookError(exec_message(command, pod, container, error=text, output=output))

    async def _sleep(self, seconds: float) -> None:
        try:
            await self._clock.sleep(seconds)
        except asyncio.CancelledError:
            self._counted.sleeps_cut_short.inc()
            raise

    async def _http(self, pod: Pod, container: Container, action: HTTPGetAction) -> None:
        """Send the request; if the server answers HTTPS with plain HTTP, send it again without
        TLS."""
        if self._network is None:
            raise NetworkError("this kubelet has no network to call out to")
        address = action.host or await self._pod_ip(pod)
        request = http_request(action, container, address, HOOK_AGENT)
        try:
            await http_get(self._network, request, None)
        except NetworkError as error:
            if NO_TLS not in str(error):
                raise
            await http_get(self._network, without_tls(request), None)
            self._counted.http_fallbacks.inc()

    async def _pod_ip(self, pod: Pod) -> str:
        """The pod's first address, from the runtime, because it may not be in a status yet."""
        running = await self._pods.pod(uid(pod))
        ips = (await self._pods.status_of(running)).ips if running is not None else ()
        if not ips:
            raise _NoPodIp("failed to find networking container: the pod has no address")
        return ips[0]


async def first_of(
    hook: asyncio.Task[None], signal: Signal | None, timeout_s: float | None = None
) -> None:
    """Wait until the hook has ended, the signal is set or the time is over, whichever is first;
    the hook goes on. `signal` None: nothing but the other two ends the wait."""
    if signal is None:
        await asyncio.wait({hook}, timeout=timeout_s)
        return
    cut = asyncio.create_task(signal.wait(), name=f"end of {hook.get_name()}")
    try:
        await asyncio.wait({hook, cut}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        cut.cancel()


class _NoPodIp(Exception):
    """The pod has no address for the request."""


def without_tls(request: HttpRequest) -> HttpRequest:
    """The same request over plain HTTP, without the credentials meant for the TLS server."""
    headers = tuple((name, v) for name, v in request.headers if name != "Authorization")
    return HttpRequest("http" + request.url.removeprefix("https"), headers)


def exec_message(
    command: list[str], pod: Pod, container: Container, *, error: str, output: bytes = b""
) -> str:
    """Upstream's message of a failed exec hook. `output`: stdout, then stderr."""
    output_text = quoted(output.decode(errors="surrogateescape"))
    return (
        f"Exec lifecycle hook ([{' '.join(command)}]) for Container {quoted(container.name)} "
        f"in Pod {quoted(pod_ref(pod))} failed - error: {error}, message: {output_text}"
    )
