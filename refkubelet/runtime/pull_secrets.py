"""The pull secrets of a pod, read from the API server at each sync that may need them (BACK-209).

What must never happen: a secret that cannot be had keeps the pod from being synced.
Upstream: pkg/kubelet/kubelet_pods.go: getPullSecretsForPod.
"""

from __future__ import annotations

import logging
from typing import Protocol

from lightkube.models.core_v1 import Secret

from refkubelet.apiclient import ApiError
from refkubelet.events import EventRecorder
from refkubelet.model.objects import Pod, pod_ref
from refkubelet.runtime import reasons

log = logging.getLogger(__name__)


class SecretReader(Protocol):
    """What is asked of the API client."""

    async def get_secret(self, namespace: str, name: str) -> Secret:
        """Raises `ApiError`."""
        ...


class PullSecrets:
    """Reads them, and tells in one event of the pod which ones cannot be read."""

    def __init__(self, api: SecretReader | None, events: EventRecorder) -> None:
        self._api = api
        self._events = events

    async def of(self, pod: Pod) -> tuple[Secret, ...]:
        """Those of spec.imagePullSecrets that can be read, in their order."""
        references = (pod.spec.imagePullSecrets if pod.spec else None) or []
        namespace = (pod.metadata.namespace if pod.metadata else None) or ""
        found, missing = [], []
        for name in [r.name for r in references if r.name]:
            try:
                found.append(await self._get(namespace, name))
            except ApiError as error:
                log.info("pull secret %s of pod %s: %s", name, pod_ref(pod), error)
                missing.append(name)
        if missing:
            message = reasons.pull_secrets_missing(missing)
            self._events.pod_event(pod, "Warning", reasons.EVENT_NO_PULL_SECRET, message)
        return tuple(found)

    async def _get(self, namespace: str, name: str) -> Secret:
        if self._api is None:
            raise ApiError(0, "NoApiServer", "a kubelet without API server reads no secrets")
        return await self._api.get_secret(namespace, name)
