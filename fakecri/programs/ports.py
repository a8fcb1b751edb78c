"""Which container answers on which port of a pod: what containers declare with `serves`.

`Ports` decides and waits; it opens no socket. In virtual time a test's network asks it directly, in
real time `listening.py` puts sockets in front of it. What must never happen: a container answers
that does not run, or one pod answers on the address of another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kubecri.v1 import api_pb2 as pb
from msgspec import Struct, field

from fakecri.clockwork.clockwork import Clockwork
from fakecri.core.objects import Container, Sandbox, State
from fakecri.core.runtime import Core
from fakecri.words.behaviors import FOREVER, serves

REMEMBERED: Final = 10_000
NODE_NAMES: Final = frozenset({"127.0.0.1", "::1", "localhost"})


REFUSED: Final = "connection refused"
HUNG_UP: Final = "hung up"
"""What a `Visit` ended with in place of an answer."""


class NotServed(ConnectionRefusedError):
    """Nothing listens on that port."""


class WrongProtocol(ConnectionAbortedError):
    """What listens there speaks another protocol; `spoken` says which."""

    def __init__(self, spoken: str) -> None:
        super().__init__(f"the listener speaks {spoken}")
        self.spoken = spoken


class Hung(ConnectionError):
    """The container ended before it answered."""


class NoSuchService(LookupError):
    """The health service does not know the service."""


class Visit(Struct):
    """A client that connected, or tried to. `path` and `headers` of an HTTP request (names as
    sent), `service` of a health check; `time_s` and `ended_s` on the fake's clock.

    `answer`: an HTTP status (`200`; `200, broken off`), a health status (`SERVING`), `NOT_FOUND`
    for a service that is not known, `open` for a TCP connection, `hung up` when the container ended
    before it answered; "" when the client left first, or waits (`ended_s` is None then). Of clients
    that were turned away: `connection refused`, or `speaks http`.
    """

    time_s: float
    pod: str
    container: str
    port: int
    protocol: str
    path: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    service: str = ""
    answer: str = ""
    ended_s: float | None = None

    def header(self, name: str) -> list[str]:
        """The values of a header in order; the name may be in any case."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


def host_ports(sandbox: Sandbox) -> list[tuple[int, int]]:
    """The port mappings of a pod (CRI-047): ports of the node, and of the pod behind them."""
    if sandbox.on_host_network:
        return []
    return [
        (mapping.host_port, mapping.container_port)
        for mapping in sandbox.config.port_mappings
        if mapping.host_port and mapping.protocol == pb.TCP
    ]


class Ports(Struct, eq=False):
    """The ports of all pods of a fake. `visits`: the clients that connected, oldest first; the last
    10,000. `turned_away`: those that found no listener, or one that speaks another protocol; not
    those that a socket of this machine refused."""

    core: Core
    clockwork: Clockwork
    visits: deque[Visit] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    turned_away: deque[Visit] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def listening(self) -> Iterator[tuple[Container, tuple[serves, ...]]]:
        """The containers that listen now, and the rules for what they serve."""
        now_ns = self.core.now_ns()
        for container in self.core.containers.values():
            if container.run.plan.serves and container.state is State.RUNNING:
                active = container.run.plan.listening(container.age_s(now_ns))
                if active:
                    yield container, active

    def protocol_in(self, sandbox: Sandbox, port: int) -> tuple[str, str] | None:
        """Under which address a port of a pod is served, and the protocol spoken there; None:
        nothing listens."""
        host = sandbox.ip or "127.0.0.1"
        for container, rules in self.listening():
            if container.sandbox is sandbox:
                for rule in rules:
                    if rule.port == port:
                        return host, rule.protocol
        return None

    def waits_s(self) -> Iterator[float]:
        """Seconds until each moment at which a running container begins or ends to serve
        something."""
        now_ns = self.core.now_ns()
        for container in self.core.containers.values():
            if container.run.plan.serves and container.state is State.RUNNING:
                age_s = container.age_s(now_ns)
                for rule in container.run.plan.serves:
                    changes = (rule.from_s, rule.until_s)
                    yield from (at_s - age_s for at_s in changes if age_s < at_s < FOREVER)

    def connect(self, host: str, port: int) -> str:
        """The protocol that is spoken on a port. Raises NotServed."""
        visit = Visit(self._now_s(), "", "", port, "tcp")
        _, rules = self._receive(visit, host)
        visit.answer, visit.ended_s = "open", visit.time_s
        return rules[0].protocol

    async def http(
        self,
        host: str,
        port: int,
        path: str,
        headers: tuple[tuple[str, str], ...] = (),
        *,
        tls: bool = False,
    ) -> serves:
        """The rule that answers a GET, after its delay; a path without a rule is 404. A query in
        `path` is noted and has no effect. Raises NotServed, WrongProtocol, Hung."""
        protocol = "https" if tls else "http"
        visit = Visit(self._now_s(), "", "", port, protocol, path, headers)
        container, rules = self._receive(visit, host)
        wanted = path.partition("?")[0]
        not_there = serves(port, protocol, 404)
        rule = next((r for r in rules if r.path in (None, wanted)), not_there)
        broken = ", broken off" if rule.lost_bytes else ""
        await self._answer(visit, container, rule.delay_s, f"{rule.status}{broken}")
        return replace(rule, location=rule.location.replace("{ip}", container.sandbox.ip))

    async def health(self, host: str, port: int, service: str) -> str:
        """The status that the health service tells, after its delay. Raises NotServed,
        WrongProtocol, Hung, NoSuchService."""
        visit = Visit(self._now_s(), "", "", port, "grpc", service=service)
        container, rules = self._receive(visit, host)
        rule = next((r for r in rules if r.service in (None, service)), None)
        if rule is None:
            await self._answer(visit, container, 0.0, "NOT_FOUND")
            raise NoSuchService("unknown service")
        await self._answer(visit, container, rule.delay_s, rule.health)
        return rule.health

    def _receive(self, visit: Visit, host: str) -> tuple[Container, tuple[serves, ...]]:
        """Whom the visit is for, and the rules for its port; it is noted. Raises NotServed,
        WrongProtocol."""
        try:
            container, rules = self._find(host, visit.port)
        except NotServed:
            visit.pod = self._pod_at(host)
            visit.answer, visit.ended_s = REFUSED, visit.time_s
            self.turned_away.append(visit)
            raise
        visit.pod, visit.container, visit.port = container.pod.name, container.name, rules[0].port
        spoken = rules[0].protocol
        if visit.protocol not in ("tcp", spoken):
            visit.answer, visit.ended_s = f"speaks {spoken}", visit.time_s
            self.turned_away.append(visit)
            raise WrongProtocol(spoken)
        self.visits.append(visit)
        return container, rules

    async def _answer(
        self, visit: Visit, container: Container, delay_s: float, answer: str
    ) -> None:
        """Returns after the delay, when the visit has its answer. Raises Hung."""
        try:
            if delay_s > 0 and await self.clockwork.exit_of(container, within_s=delay_s):
                visit.answer = HUNG_UP
                raise Hung(f"{container.name} ended")
            visit.answer = answer
        finally:  # also when the client leaves
            visit.ended_s = self._now_s()

    def _now_s(self) -> float:
        return self.core.now_ns() / 1e9

    def _pod_at(self, host: str) -> str:
        """The pod that has this address; "": none."""
        sandboxes = self.core.sandboxes.values()
        return next((s.config.metadata.name for s in sandboxes if host in s.ips), "")

    def _find(self, host: str, port: int) -> tuple[Container, tuple[serves, ...]]:
        now_ns = self.core.now_ns()
        for container in self.core.containers.values():
            plan = container.run.plan
            if not plan.serves or container.state is not State.RUNNING:
                continue
            inside = {port} if self._is_address_of(host, container) else set()
            if self.is_node(host):
                inside |= {of for at, of in host_ports(container.sandbox) if at == port}
            active = plan.listening(container.age_s(now_ns)) if inside else ()
            fitting = tuple(rule for rule in active if rule.port in inside)
            if fitting:
                return container, fitting
        raise NotServed(f"nothing listens on {host}:{port}")

    def _is_address_of(self, host: str, container: Container) -> bool:
        sandbox = container.sandbox
        if sandbox.ip:
            return host in sandbox.ips
        if sandbox.on_host_network:
            return self.is_node(host)
        return False

    def open_at(self, address: str) -> Iterator[int]:
        """The ports on which containers of the pod with this address listen."""
        for container, rules in self.listening():
            if container.sandbox.ip == address:
                yield from sorted({rule.port for rule in rules})

    def is_alive(self, address: str) -> bool:
        """Whether a pod that runs, or the node, has this address."""
        pods = (sandbox for sandbox in self.core.sandboxes.values() if sandbox.ready)
        return any(address in pod.ips for pod in pods) or self.is_node(address)

    def is_node(self, host: str) -> bool:
        """Whether the node is called so, or has that address."""
        return host in NODE_NAMES or (bool(host) and host == self.core.node.address)
