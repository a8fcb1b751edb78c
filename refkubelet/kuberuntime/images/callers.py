"""For whom a plug-in is asked: the service account of the pod, with a token of it (BACK-216).

A plug-in without tokenAttributes is asked for the node. What must never happen here: a plug-in
learns annotations that its configuration does not name; a token in a log.
Upstream: pkg/credentialprovider/plugin/plugin.go: serviceAccountProvider.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from refkubelet.api.client import ApiError, ObjectReader
from refkubelet.api.kinds import SERVICE_ACCOUNTS
from refkubelet.config.credentials.providers import PER_TOKEN, TokenAttributes
from refkubelet.kuberuntime.images.plugin_wire import NOBODY, Caller
from refkubelet.model.objects import Pod
from refkubelet.model.pod import pod_ref

log = logging.getLogger(__name__)


class CallerUnknownError(Exception):
    """The service account, or a token of it, cannot be read; the text says why."""


class TokenSource(Protocol):
    """Who has tokens of pods: `object_manager.tokens.TokenManager`."""

    async def get(self, pod: Pod, audience: str, expiration_s: int | None) -> str:
        """A token of the pod's service account for that audience. `expiration_s` None: as long as
        the server gives it. Raises `ApiError`."""


class Callers:
    """Finds the service accounts of pods. Without API server there are none."""

    def __init__(
        self, accounts: ObjectReader | None = None, tokens: TokenSource | None = None
    ) -> None:
        self._accounts = accounts
        self._tokens = tokens

    async def of(self, pod: Pod, attributes: TokenAttributes | None) -> Caller | None:
        """For whom the plug-in is asked; None: it is not asked for this pod. Raises
        `CallerUnknownError`."""
        if attributes is None:
            return NOBODY
        name, namespace = pod.spec.serviceAccountName or "", pod.metadata.namespace or ""
        if not name:
            return None if attributes.require_account else NOBODY
        if self._accounts is None or self._tokens is None:
            raise CallerUnknownError(
                f"service account {namespace}/{name}: a kubelet without API server reads none"
            )
        try:
            account = await self._accounts.get(SERVICE_ACCOUNTS, name, namespace)
            metadata = account.metadata
            annotations = told_annotations(attributes, (metadata and metadata.annotations) or {})
            if annotations is None:
                log.debug("%s: service account %s has not all annotations", pod_ref(pod), name)
                return None
            token = await self._tokens.get(pod, attributes.audience, None)
        except ApiError as error:
            raise CallerUnknownError(f"service account {namespace}/{name}: {error}") from None
        return Caller(
            namespace=namespace,
            name=name,
            uid=(metadata and metadata.uid) or "",
            token=token,
            annotations=annotations,
            per_token=attributes.cache_type == PER_TOKEN,
        )


def told_annotations(
    attributes: TokenAttributes, annotations: Mapping[str, str]
) -> dict[str, str] | None:
    """Those that the plug-in gets; None: a required one is missing.

    >>> told_annotations(TokenAttributes(required_keys=("a",), optional_keys=("b",)), {"a": "1"})
    {'a': '1'}
    >>> told_annotations(TokenAttributes(required_keys=("a",)), {"b": "1"}) is None
    True
    """
    if any(key not in annotations for key in attributes.required_keys):
        return None
    keys = (*attributes.required_keys, *attributes.optional_keys)
    return {key: annotations[key] for key in keys if key in annotations}
