"""The pages that show what the kubelet knows: pods, metrics, statistics, health, configuration.

Rules: SRV-002, SRV-030, SRV-031, SRV-032, MIRR-035. Upstream: pkg/kubelet/server/server.go.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from refkubelet.cri.records import RuntimePod
from refkubelet.model.objects import Pod, to_dict
from refkubelet.server.common.exchange import TEXT, Answer, Request, as_json, text
from refkubelet.server.common.health import all_checks, one_check
from refkubelet.server.common.host import ServerHost
from refkubelet.server.common.routes import Route
from refkubelet.server.pages.resource_metrics import page

log = logging.getLogger(__name__)
PROMETHEUS = f"text/plain; version=0.0.4; {TEXT.partition('; ')[2]}"
Json = dict[str, Any]


class Pages(Struct, frozen=True):
    """The handlers, each by the name that `routes` gives it."""

    host: ServerHost

    async def pods(self, request: Request, route: Route) -> Answer:
        """/pods: the pods of all sources, as a PodList."""
        return as_json(pod_list(self.host.pods.all()))

    async def running_pods(self, request: Request, route: Route) -> Answer:
        """/runningpods/: the pods that the runtime runs, as a PodList."""
        return as_json(running_list(await self.host.pods.running()))

    async def summary(self, request: Request, route: Route) -> Answer:
        """/stats/summary; 500 with the reason if it cannot be made."""
        short = request.every("only_cpu_and_memory") == ("true",)
        try:
            return as_json(await self.host.pages.summary(only_cpu_and_memory=short))
        except Exception as problem:
            log.warning("cannot make /stats/summary: %s", problem)
            return text(f"Internal Error: {problem}", 500)

    async def metrics(self, request: Request, route: Route) -> Answer:
        """/metrics."""
        return _metrics(await self.host.pages.metrics())

    async def probe_metrics(self, request: Request, route: Route) -> Answer:
        """/metrics/probes."""
        return _metrics(self.host.pages.probe_metrics())

    async def cadvisor_metrics(self, request: Request, route: Route) -> Answer:
        """/metrics/cadvisor."""
        return _metrics(await self.host.pages.cadvisor_metrics())

    async def resource_metrics(self, request: Request, route: Route) -> Answer:
        """/metrics/resource; without a summary it says only that there was an error."""
        try:
            summary: Json | None = await self.host.pages.summary(only_cpu_and_memory=True)
        except Exception as problem:
            log.warning("cannot make /metrics/resource: %s", problem)
            summary = None
        return _metrics(page(summary))

    async def healthz(self, request: Request, route: Route) -> Answer:
        """/healthz: all checks together."""
        return all_checks(self.host.checks, request)

    async def healthz_one(self, request: Request, route: Route) -> Answer:
        """/healthz/NAME: one check."""
        return one_check(self.host.checks, request)

    async def configz(self, request: Request, route: Route) -> Answer:
        """/configz: the configuration, with its defaults."""
        return as_json({"kubeletconfig": self.host.pages.configz()})


def _metrics(page_text: str) -> Answer:
    return Answer(body=page_text.encode(), content_type=PROMETHEUS)


def pod_list(pods: Sequence[Pod]) -> Json:
    """A v1 PodList as JSON; as in upstream the items have no kind and apiVersion, and
    an empty list is null."""
    items = []
    for pod in pods:
        item = to_dict(pod)
        item.pop("kind", None)
        item.pop("apiVersion", None)
        items.append(item)
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items or None}


def running_list(pods: Sequence[RuntimePod]) -> Json:
    """A v1 PodList of what the runtime has: names, and the images of containers."""
    items = [
        {
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "spec": {
                "containers": [
                    {"name": c.name, "image": c.image, "resources": {}} for c in pod.containers
                ]
            },
            "status": {},
        }
        for pod in pods
    ]
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items or None}
