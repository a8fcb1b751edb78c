"""Pulls images, with limits on parallel pulls and their rate, and several credentials (BACK-208,
BACK-209).

What must never happen: an error text that leaves out the runtime's answer to one of the
credentials.
Upstream: pkg/kubelet/images/puller.go, helpers.go; kuberuntime/kuberuntime_image.go: PullImage.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri
from msgspec import Struct

from kubeobjects.golang.errors import aggregate
from kubeobjects.golang.strconv import quoted
from refkubelet.cri.client import CriClient
from refkubelet.cri.target import INVALID_ANSWER, CriCallError
from refkubelet.kuberuntime.common.runtime_options import ImageOptions
from refkubelet.kuberuntime.images.keyring import Credential
from refkubelet.model.token_bucket import TokenBucket
from simclock import Clock

QPS_EXCEEDED: Final = "pull QPS exceeded"


class PullError(Exception):
    """A pull failed; the text has the runtime's answer to each credential."""


class Pulled(Struct, frozen=True):
    """A pull that succeeded. `took_s`: without the wait for other pulls; `credential` None: it was
    anonymous; `size_bytes` 0: unknown."""

    ref: str
    size_bytes: int
    took_s: float
    credential: Credential | None


class ImagePuller:
    """Pulls one image at a time, several, or all at once, in the order of the requests."""

    def __init__(self, client: CriClient, clock: Clock, options: ImageOptions) -> None:
        self._client = client
        self._clock = clock
        self._options = options
        slots = 1 if options.serialize_pulls else options.max_parallel_pulls
        self._slots = asyncio.Semaphore(slots) if slots else None
        self._bucket = TokenBucket(options.pull_burst, options.pull_qps)

    async def pull(
        self,
        image: str,
        sandbox_config: Any,
        annotations: Mapping[str, str],
        credentials: tuple[Credential, ...],
    ) -> Pulled:
        """Wait for other pulls, pull, and read the image's size. Raises `PullError`."""
        async with self._turn():
            began_s = self._clock.monotonic_s()
            self._take_token()
            ref, used = await self._try_all(image, sandbox_config, annotations, credentials)
            size_bytes = await self._size_bytes(image, annotations)
            return Pulled(ref, size_bytes, self._clock.monotonic_s() - began_s, used)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._slots is None:
            yield
            return
        async with self._slots:
            yield

    def _take_token(self) -> None:
        """Raise `PullError` if the rate limit is exceeded."""
        limited = self._options.pull_qps > 0
        if limited and not self._bucket.take(self._clock.monotonic_s()):
            raise PullError(QPS_EXCEEDED)

    async def _try_all(
        self,
        image: str,
        sandbox_config: Any,
        annotations: Mapping[str, str],
        credentials: tuple[Credential, ...],
    ) -> tuple[str, Credential | None]:
        """Call the runtime with each credential until one succeeds; without credentials once,
        anonymously. Raises `PullError`."""
        errors = []
        for credential in credentials or (None,):
            try:
                ref = await self._client.pull_image(
                    image, sandbox_config, annotations=annotations, auth=_auth(credential)
                )
            except CriCallError as error:
                errors.append(pull_error_text(error, image))
            else:
                return ref, credential
        raise PullError(aggregate(errors))

    async def _size_bytes(self, image: str, annotations: Mapping[str, str]) -> int:
        """The image's size for the event; 0 if it cannot be read."""
        try:
            record = await self._client.image_status(image, annotations)
        except CriCallError:
            return 0
        return record.size_bytes if record else 0


def _auth(credential: Credential | None) -> Any | None:
    if credential is None:
        return None
    return cri.AuthConfig(username=credential.username, password=credential.password)


def pull_error_text(error: CriCallError, image: str) -> str:
    """The text of a failed pull for events: UNKNOWN without its code (BACK-205), and a special text
    for an answer without an image reference."""
    if error.code == "UNKNOWN":
        return error.message
    if error.code == INVALID_ANSWER:
        return f"imageRef of image {quoted(image)} is not set"
    return error.text
