"""Runs one probe with its handler: exec, httpGet, tcpSocket or grpc, the first one set
(PROBE-060..073).

A handler returns an outcome, or raises `ProbeError` if the probe could not be run. Then it is tried
again at once, three times in all, and the run is discarded: it does not count as a failure, because
a broken call must not restart a container.
Upstream: pkg/kubelet/prober/prober.go; pkg/probe/.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import Final, Protocol

from lightkube.models.core_v1 import ExecAction, GRPCAction, HTTPGetAction, TCPSocketAction
from msgspec import Struct

from kubeobjects.golang.duration import format_duration
from refkubelet.cri.records import ExecResult
from refkubelet.cri.target import CriCallError
from refkubelet.events.recorder import EventRecorder
from refkubelet.host.addresses import UrlError, check_host
from refkubelet.host.http_get import http_get, http_request
from refkubelet.host.network import Network, NetworkError, host_port
from refkubelet.kuberuntime.config.environment import expand_all
from refkubelet.model.downward_api import VariableError
from refkubelet.model.objects import Container, PodStatus
from refkubelet.model.pod import PortError, pod_ref, resolve_port
from refkubelet.model.probe_results import ProbeResult
from refkubelet.probes.decide import ProbeTarget

TRIES: Final = 3  # PROBE-060
OUTPUT_BYTES: Final = 10 * 1024  # PROBE-064


class Outcome(Enum):
    """The outcome of a run; the values are the words in events (PROBE-081)."""

    SUCCESS = "success"
    WARNING = "warning"
    FAILURE = "failure"
    UNKNOWN = "unknown"


class ProbeError(Exception):
    """The probe could not be run; nothing follows for the container (PROBE-018)."""

    def __init__(self, text: str, outcome: Outcome = Outcome.UNKNOWN) -> None:
        super().__init__(text)
        self.outcome = outcome


class ProbeAnswer(Struct, frozen=True):
    """The answer of a handler; `output` goes into the event."""

    outcome: Outcome
    output: str = ""


class ExecRunner(Protocol):
    """Runs a command in a container; raises `CriCallError` (refkubelet.cri.client)."""

    async def exec_sync(
        self, container_id: str, command: Sequence[str], timeout_s: int = 0
    ) -> ExecResult: ...


class Prober:
    """Runs handlers and records the events of their outcomes."""

    def __init__(
        self, exec_runner: ExecRunner, events: EventRecorder, network: Network | None = None
    ) -> None:
        self._exec_runner = exec_runner
        self._events = events
        self._network = network

    async def probe(
        self, target: ProbeTarget, status: PodStatus, container_id: str
    ) -> ProbeResult | None:
        """Run the probe and record at most one event; None: the run is discarded (PROBE-018)."""
        word = target.probe_type.value
        try:
            answer = await self._with_tries(target, status, container_id)
        except ProbeError as error:
            state = error.outcome.value
            message = f"{word} probe errored and resulted in {state} state: {error}"
            self._event(target, "Unhealthy", message)
            return None
        if answer.outcome is Outcome.FAILURE:
            self._event(target, "Unhealthy", f"{word} probe failed: {answer.output}")
        if answer.outcome is Outcome.WARNING:
            self._event(target, "ProbeWarning", f"{word} probe warning: {answer.output}")
        healthy = answer.outcome in (Outcome.SUCCESS, Outcome.WARNING)
        return ProbeResult.SUCCESS if healthy else ProbeResult.FAILURE

    def _event(self, target: ProbeTarget, reason: str, message: str) -> None:
        path = target.field_path
        self._events.pod_event(target.pod, "Warning", reason, message, field_path=path)

    async def _with_tries(
        self, target: ProbeTarget, status: PodStatus, container_id: str
    ) -> ProbeAnswer:
        for attempt in range(TRIES):
            try:
                return await self._run(target, status, container_id)
            except ProbeError:
                if attempt == TRIES - 1:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    async def _run(self, target: ProbeTarget, status: PodStatus, container_id: str) -> ProbeAnswer:
        probe = target.probe
        try:
            if probe.exec is not None:
                return await self._run_exec(target, probe.exec, container_id)
            if probe.httpGet is not None:
                return await self._run_http(target, probe.httpGet, status)
            if probe.tcpSocket is not None:
                return await self._run_tcp(target, probe.tcpSocket, status)
            if probe.grpc is not None:
                return await self._run_grpc(target, probe.grpc, status)
        except (PortError, UrlError) as error:
            raise ProbeError(str(error)) from None
        raise ProbeError(f"missing probe handler for {pod_ref(target.pod)}:{target.container.name}")

    async def _run_exec(
        self, target: ProbeTarget, action: ExecAction, container_id: str
    ) -> ProbeAnswer:
        """Run the command in the container; the runtime enforces the timeout (PROBE-062..065)."""
        try:
            command = expanded(action.command or (), target.container)
        except VariableError as error:
            raise ProbeError(str(error)) from None
        try:
            answer = await self._exec_runner.exec_sync(
                container_id, command, timeout_s=target.timeout_s
            )
        except CriCallError as error:
            if error.code != "DEADLINE_EXCEEDED":
                raise ProbeError(str(error)) from error
            quoted = json.dumps(" ".join(command), ensure_ascii=False)
            took = format_duration(target.timeout_s)
            text = f"command timed out: {quoted} timed out after {took}"
            return ProbeAnswer(Outcome.FAILURE, text)
        output = (answer.stdout + answer.stderr)[:OUTPUT_BYTES].decode(errors="replace")
        outcome = Outcome.SUCCESS if answer.exit_code == 0 else Outcome.FAILURE
        return ProbeAnswer(outcome, output)

    async def _run_http(
        self, target: ProbeTarget, action: HTTPGetAction, status: PodStatus
    ) -> ProbeAnswer:
        """Send the request (PROBE-066..070). A body that breaks off is an error, whatever the HTTP
        status."""
        request = http_request(action, target.container, status.podIP or "")
        try:
            answer = await http_get(self._reach(), request, target.timeout_s)
        except NetworkError as error:
            return ProbeAnswer(Outcome.FAILURE, str(error))
        if answer.broken:
            raise ProbeError(answer.broken, Outcome.FAILURE)
        if 200 <= answer.status < 300:
            return ProbeAnswer(Outcome.SUCCESS, answer.body)
        if 300 <= answer.status < 400:
            text = f"Probe terminated redirects, Response body: {answer.body}"
            return ProbeAnswer(Outcome.WARNING, text)
        text = f"HTTP probe failed with statuscode: {answer.status}"
        return ProbeAnswer(Outcome.FAILURE, text)

    async def _run_tcp(
        self, target: ProbeTarget, action: TCPSocketAction, status: PodStatus
    ) -> ProbeAnswer:
        """Connect and close the connection at once; success if that works (PROBE-071)."""
        port = resolve_port(action.port, target.container)
        host = action.host or status.podIP or ""
        try:
            check_host(host, port)
            await self._reach().tcp_connect(host, port, target.timeout_s)
        except NetworkError as error:
            return ProbeAnswer(Outcome.FAILURE, str(error))
        return ProbeAnswer(Outcome.SUCCESS)

    async def _run_grpc(
        self, target: ProbeTarget, action: GRPCAction, status: PodStatus
    ) -> ProbeAnswer:
        """Call the gRPC health service; every answer but SERVING, and no answer, is a failure
        (PROBE-072, PROBE-073)."""
        address = host_port(status.podIP or "", action.port)
        try:
            health = await self._reach().grpc_health(
                address, action.service or "", target.timeout_s
            )
        except NetworkError as error:
            return ProbeAnswer(Outcome.FAILURE, str(error))
        if health == "SERVING":
            return ProbeAnswer(Outcome.SUCCESS)
        return ProbeAnswer(Outcome.FAILURE, f'service unhealthy (responded with "{health}")')

    def _reach(self) -> Network:
        if self._network is None:
            raise ProbeError("this kubelet has no network to probe over; use an exec probe")
        return self._network


def expanded(command: Sequence[str], container: Container) -> list[str]:
    """`command` with `$(VAR)` replaced by the values in the container's `env`: empty for a variable
    with valueFrom; an unknown variable stays as it is, `$$` becomes `$` (PROBE-062). Raises
    `VariableError`."""
    return expand_all(command, {e.name: e.value or "" for e in container.env or ()})
