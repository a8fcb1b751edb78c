"""A host for the kubelet's ports without a kubelet, and reviews by a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import AsyncMock

from pods import make_pod

from fakecri import FakeCRI
from kubeobjects.structs import replace
from refkubelet.api.client import ApiError
from refkubelet.config import KubeletConfiguration
from refkubelet.config.schema.kubelet_config import (
    AnonymousAuthentication,
    Authentication,
    Authorization,
    WebhookAuthentication,
)
from refkubelet.cri.client import CriClient
from refkubelet.cri.streams import StreamClient
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.server.access.authentication import RequestAuthenticator
from refkubelet.server.access.authorization import authorizer_of
from refkubelet.server.access.gate import Gate
from refkubelet.server.access.reviews import Reviews
from refkubelet.server.common.exchange import Answer, ClientCertificate, Request
from refkubelet.server.common.host import ServedFiles, ServedPages, ServedPods, ServerHost
from refkubelet.server.port import Port, main_port
from simclock import Clock, RealClock

POD = make_pod("c", name="web-n1", uid="u", phase="Running")
OPEN = Authentication(
    webhook=WebhookAuthentication(enabled=False), anonymous=AnonymousAuthentication(enabled=True)
)
EVERYBODY = KubeletConfiguration(authentication=OPEN, authorization=Authorization("AlwaysAllow"))


class ReviewTable:
    """An API server that knows tokens and who may what; `asked` has the bodies it was sent."""

    def __init__(
        self,
        tokens: Mapping[str, Mapping[str, Any]] | None = None,
        allowed: Mapping[str, set[str]] | None = None,
    ) -> None:
        self.tokens = dict(tokens or {})
        self.allowed = dict(allowed or {})
        self.asked: list[Mapping[str, Any]] = []
        self.fails: ApiError | None = None

    async def create_review(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(body)
        if self.fails is not None:
            raise self.fails
        spec = body["spec"]
        if path.endswith("/tokenreviews"):
            user = self.tokens.get(spec["token"])
            return {"status": {"authenticated": user is not None, "user": user or {}}}
        subresource = spec["resourceAttributes"]["subresource"]
        return {"status": {"allowed": subresource in self.allowed.get(spec["user"], set())}}

    def kinds(self) -> list[str]:
        """The kinds of the reviews that were asked for."""
        return [body["kind"] for body in self.asked]


def host(clock: Clock | None = None, pods: tuple[Pod, ...] = (POD,), **changes: Any) -> ServerHost:
    """A host with these pods, the statuses they bring, and a runtime without anything."""
    target = changes.pop("target", None) or FakeCRI()
    by_name = {(p.metadata.namespace, p.metadata.name): p for p in pods}
    made = ServerHost(
        clock=clock or RealClock(),
        pods=ServedPods(
            all=lambda: pods,
            by_name=lambda namespace, name: by_name.get((namespace, name)),
            static_uid=lambda uid: uid,
            status=lambda pod: pod.status or PodStatus(),
            running=AsyncMock(return_value=()),
        ),
        client=CriClient(target),
        streams=StreamClient(target, 10),
        checks={"ping": lambda: None, "syncloop": lambda: None},
        pages=ServedPages(
            metrics=AsyncMock(return_value="x 1\n"),
            probe_metrics=lambda: "p 1\n",
            cadvisor_metrics=AsyncMock(return_value="c 1\n"),
            summary=AsyncMock(return_value={"node": {}, "pods": []}),
            configz=lambda: {"kind": "KubeletConfiguration"},
        ),
        files=ServedFiles(checkpoints="/nowhere/checkpoints"),
    )
    for group in ("pods", "pages", "files"):
        record = getattr(made, group)
        own = {name: changes.pop(name) for name in record.__struct_fields__ if name in changes}
        made = replace(made, **{group: replace(record, **own)})
    return replace(made, **changes)


def port(
    config: KubeletConfiguration = EVERYBODY,
    served: ServerHost | None = None,
    api: ReviewTable | None = None,
    clock: Clock | None = None,
) -> Port:
    """The main port of that configuration."""
    clock = clock or RealClock()
    reviews = Reviews(api, clock) if api is not None else None
    authenticator = RequestAuthenticator(config.authentication, reviews, clock)
    gate = Gate(authenticator, authorizer_of(config.authorization, reviews, clock), "n1")
    return main_port(config, served or host(clock), gate)


async def ask(
    on: Port,
    target: str,
    method: str = "GET",
    *,
    owner: tuple[str, ...] = (),
    **headers: str,
) -> tuple[int, str]:
    """Status and text. `owner`: common name and organizations of a client certificate; an
    underscore in a header's name is a dash."""
    answer = await answered(on, target, method, owner=owner, **headers)
    return answer.status, await body(answer)


async def answered(
    on: Port, target: str, method: str = "GET", *, owner: tuple[str, ...] = (), **headers: str
) -> Answer:
    path, _, query = target.partition("?")
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    request = Request(
        method=method,
        path=path,
        query=tuple((name, value) for name, _, value in pairs),
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        certificate=ClientCertificate(owner[0], owner[1:], "ab") if owner else None,
    )
    return await on.answer(request)


async def body(answer: Answer) -> str:
    found = answer.body
    if answer.chunks is not None:
        found += b"".join([chunk async for chunk in answer.chunks])
    return found.decode()
