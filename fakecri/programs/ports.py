"""Which container answers on which port of a pod: what containers declare with `serves`.

`Ports` decides and waits; it opens no socket. In virtual time a test's network asks it directly, in
real time `listening.py` puts sockets in front of it. What must never happen: a container answers
that does not run, or one pod answers on the address of another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from kubecri.v1 import api_pb2 as pb

from fakecri.behaviors.behavior import FOREVER, Serves
from fakecri.clockwork.clockwork import Clockwork
from fakecri.core.objects import Container, Sandbox, State
from fakecri.core.runtime import Core

REMEMBERED: Final = 10_000
NODE_NAMES: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class NotServed(ConnectionError):
    """Nothing listens on that port."""


class WrongProtocol(ConnectionError):
    """What listens there speaks another protocol; `spoken` says which."""

    def __init__(self, spoken: str) -> None:
        super().__init__(f"the listener speaks {spoken}")
        self.spoken = spoken


class Hung(ConnectionError):
    """The container ended before it answered."""


class NoSuchService(LookupError):
    """The health service does not know the service."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A client that connected. `path` and `headers` of an HTTP request (names as sent), `service`
    of a health check; `time_s` on the fake's clock."""

    time_s: float
    pod: str
    container: str
    port: int
    protocol: str
    path: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    service: str = ""

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


@dataclass(slots=True, eq=False)
class Ports:
    """The ports of all pods of a fake. `visits`: the clients that connected, oldest first; the last
    10,000."""

    core: Core
    clockwork: Clockwork
    visits: deque[Visit] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def listening(self) -> Iterator[tuple[Container, tuple[Serves, ...]]]:
        """The containers that listen now, and the rules for what they serve."""
        now_ns = self.core.now_ns()
        for container in self.core.containers.values():
            if container.plan.serves and container.state is State.RUNNING:
                active = container.plan.listening(container.age_s(now_ns))
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
            if container.plan.serves and container.state is State.RUNNING:
                age_s = container.age_s(now_ns)
                for rule in container.plan.serves:
                    changes = (rule.from_s, rule.until_s)
                    yield from (at_s - age_s for at_s in changes if age_s < at_s < FOREVER)

    def connect(self, host: str, port: int) -> str:
        """The protocol that is spoken on a port. Raises NotServed."""
        container, rules = self._find(host, port)
        self._note(container, rules[0])
        return rules[0].protocol

    async def http(
        self,
        host: str,
        port: int,
        path: str,
        headers: tuple[tuple[str, str], ...] = (),
        *,
        tls: bool = False,
    ) -> Serves:
        """The rule that answers a GET, after its delay; a path without a rule is 404. A query in
        `path` is noted and has no effect. Raises NotServed, WrongProtocol, Hung."""
        container, rules = self._find(host, port)
        protocol = "https" if tls else "http"
        if rules[0].protocol != protocol:
            raise WrongProtocol(rules[0].protocol)
        self._note(container, rules[0], path=path, headers=headers)
        wanted = path.partition("?")[0]
        rule = next((r for r in rules if r.path in (None, wanted)), None)
        if rule is None:
            return Serves(port, protocol, 404)
        await self._wait(container, rule)
        return replace(rule, location=rule.location.replace("{ip}", container.sandbox.ip))

    async def health(self, host: str, port: int, service: str) -> str:
        """The status that the health service tells, after its delay. Raises NotServed,
        WrongProtocol, Hung, NoSuchService."""
        container, rules = self._find(host, port)
        if rules[0].protocol != "grpc":
            raise WrongProtocol(rules[0].protocol)
        self._note(container, rules[0], service=service)
        rule = next((r for r in rules if r.service in (None, service)), None)
        if rule is None:
            raise NoSuchService("unknown service")
        await self._wait(container, rule)
        return rule.health

    def _find(self, host: str, port: int) -> tuple[Container, tuple[Serves, ...]]:
        now_ns = self.core.now_ns()
        for container in self.core.containers.values():
            plan = container.plan
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

    def is_node(self, host: str) -> bool:
        """Whether the node is called so, or has that address."""
        return host in NODE_NAMES or (bool(host) and host == self.core.node.address)

    async def _wait(self, container: Container, rule: Serves) -> None:
        if rule.delay_s > 0 and await self.clockwork.exit_of(container, within_s=rule.delay_s):
            raise Hung(f"{container.name} ended")

    def _note(
        self,
        container: Container,
        rule: Serves,
        *,
        path: str = "",
        headers: tuple[tuple[str, str], ...] = (),
        service: str = "",
    ) -> None:
        self.visits.append(
            Visit(
                time_s=self.core.now_ns() / 1e9,
                pod=container.pod.name,
                container=container.name,
                port=rule.port,
                protocol=rule.protocol,
                path=path,
                headers=headers,
                service=service,
            )
        )
