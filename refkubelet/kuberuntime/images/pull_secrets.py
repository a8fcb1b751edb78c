"""The pull secrets of a pod, read from the API server at each sync that may need them (BACK-209).

If the server does not answer, the last value is used, as upstream's cache would do (NODE-207). A
secret that cannot be read never stops the sync of the pod.
Upstream: pkg/kubelet/kubelet_pods.go: getPullSecretsForPod.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Final

from lightkube.models.core_v1 import Secret

from refkubelet.api.client import ApiError, ObjectReader
from refkubelet.api.kinds import SECRETS
from refkubelet.events.recorder import EventRecorder
from refkubelet.kuberuntime.common import reasons
from refkubelet.model.objects import Pod
from refkubelet.model.pod import pod_ref

log = logging.getLogger(__name__)

MAX_KEPT: Final = 1000
READ_TIMEOUT_S: Final = 1.0  # NODE-207


class PullSecrets:
    """Reads and caches pull secrets; one event of the pod names those that cannot be read."""

    def __init__(self, api: ObjectReader | None, events: EventRecorder) -> None:
        self._api = api
        self._events = events
        self._known: OrderedDict[tuple[str, str], Secret] = OrderedDict()

    async def of(self, pod: Pod) -> tuple[Secret, ...]:
        """The readable secrets of spec.imagePullSecrets, in order."""
        references = pod.spec.imagePullSecrets or []
        namespace = pod.metadata.namespace or ""
        secrets, missing = [], []
        for name in [r.name for r in references if r.name]:
            try:
                secrets.append(await self._get(namespace, name))
            except (ApiError, TimeoutError) as error:
                log.info("pull secret %s of pod %s: %s", name, pod_ref(pod), error)
                missing.append(name)
        if missing:
            message = reasons.pull_secrets_missing(missing)
            self._events.pod_event(pod, "Warning", reasons.EVENT_NO_PULL_SECRET, message)
        return tuple(secrets)

    async def _get(self, namespace: str, name: str) -> Secret:
        """One secret, from the server or else the last value. Raises `ApiError`, TimeoutError."""
        if self._api is None:
            raise ApiError(0, "NoApiServer", "a kubelet without API server reads no secrets")
        key = (namespace, name)
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                secret = await self._api.get(SECRETS, name, namespace)
        except (ApiError, TimeoutError) as error:
            if isinstance(error, ApiError) and error.not_found:
                self._known.pop(key, None)
            if key in self._known:
                return self._known[key]
            raise
        self._known[key] = secret
        self._known.move_to_end(key)
        while len(self._known) > MAX_KEPT:
            self._known.popitem(last=False)
        return secret
