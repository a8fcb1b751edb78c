"""The image step of a container start: is the image there, may and must it be pulled?

Rules: BACK-201..208, BACK-213. One `ImageManager` per kubelet: it holds the pull back-off and the
limits on pulls. What must never happen: a pull while the key is in back-off; a pull failure counted
as a crash-loop back-off (BACK-207).
Upstream: pkg/kubelet/images/image_manager.go: EnsureImageExists.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from refkubelet.model.duration import format_duration
from refkubelet.model.objects import Container, Pod, uid
from refkubelet.model.objects import annotations as pod_annotations
from refkubelet.runtime import reasons
from refkubelet.runtime.backoff import MAX_DELAY_S, BackoffLimits, BackoffTable, image_key
from refkubelet.runtime.client import CriCallError, CriClient
from refkubelet.runtime.container_events import ContainerEvents
from refkubelet.runtime.image_names import InvalidImageNameError, with_default_tag
from refkubelet.runtime.options import ImageOptions, RuntimeDeps
from refkubelet.runtime.records import ImageRecord
from simtime import Clock

ALWAYS: Final = "Always"
IF_NOT_PRESENT: Final = "IfNotPresent"
NEVER: Final = "Never"


class ImageError(Exception):
    """The image step failed; `reason` becomes the container's waiting reason."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        self.message = message
        super().__init__(message)


class ImageManager:
    """Makes sure images are there."""

    def __init__(self, client: CriClient, deps: RuntimeDeps, options: ImageOptions) -> None:
        self._client = client
        self._clock = deps.clock
        self._events = ContainerEvents(deps.events)
        self._limits = PullLimits(deps.clock, options)
        self.backoff = BackoffTable(BackoffLimits.up_to(MAX_DELAY_S))
        self._last_failures: dict[str, tuple[str, str]] = {}

    async def ensure_image(self, pod: Pod, container: Container, sandbox_config: Any) -> str:
        """The reference to create the container from. Raises `ImageError`; all events but the
        final `Error: <reason>` are recorded here."""
        try:
            image = with_default_tag(container.image or "")
        except InvalidImageNameError as error:
            message = reasons.invalid_image(container.image or "", str(error))
            self._warn(pod, container, reasons.EVENT_INSPECT_FAILED, message)
            raise ImageError(reasons.INVALID_IMAGE_NAME, message) from None
        policy = pull_policy(container, image)
        if policy != ALWAYS and (present := await self._present(pod, container, image)):
            message = reasons.already_present(container.image or "")
            self._events.normal(pod, container.name, reasons.EVENT_PULLED, message)
            return present.id
        if policy == NEVER:
            message = reasons.not_present(container.image or "")
            self._warn(pod, container, reasons.EVENT_ERR_IMAGE_NEVER_PULL, message)
            raise ImageError(reasons.ERR_IMAGE_NEVER_PULL, message)
        return await self._pull_unless_backing_off(_Pull(pod, container, image, sandbox_config))

    async def image_of(self, container: Container) -> ImageRecord:
        """The image as the runtime knows it, for its user (BACK-213). Raises `CriCallError`."""
        record = await self._client.image_status(container.image or "")
        return record or ImageRecord(id="", size_bytes=0)

    async def _present(self, pod: Pod, container: Container, image: str) -> ImageRecord | None:
        try:
            return await self._client.image_status(image, pod_annotations(pod))
        except CriCallError as error:
            message = reasons.failed_to_inspect(error.text)
            self._warn(pod, container, reasons.EVENT_INSPECT_FAILED, message)
            raise ImageError(reasons.IMAGE_INSPECT_ERROR, message) from None

    async def _pull_unless_backing_off(self, pull: _Pull) -> str:
        """BACK-206: the delay counts from the last failed attempt."""
        key = image_key(uid(pull.pod), pull.name)
        entry = self.backoff.get(key)
        now_ns = self._clock.wall_ns()
        if entry and self.backoff.wait_until(key, entry.last_update_ns, now_ns) is not None:
            message = reasons.back_off_pulling(pull.name)
            name = pull.container.name
            self._events.normal(pull.pod, name, reasons.EVENT_BACK_OFF, message)
            reason, text = self._last_failures.get(key, (reasons.ERR_IMAGE_PULL, ""))
            raise ImageError(reasons.IMAGE_PULL_BACK_OFF, f"{message}: {reason}: {text}")
        try:
            return await self._pull(pull)
        except CriCallError as error:
            text = error.message if error.code == "UNKNOWN" else error.text
            self._warn(
                pull.pod,
                pull.container,
                reasons.EVENT_FAILED,
                reasons.failed_to_pull(pull.name, text),
            )
            failed_ns = self._clock.wall_ns()
            self.backoff.next(key, failed_ns, failed_ns)
            self._last_failures[key] = classify(pull.name, text)
            raise ImageError(*self._last_failures[key]) from None

    async def _pull(self, pull: _Pull) -> str:
        asked_s = self._clock.monotonic_s()
        message = reasons.pulling(pull.name)
        self._events.normal(pull.pod, pull.container.name, reasons.EVENT_PULLING, message)
        async with self._limits.turn():
            began_s = self._clock.monotonic_s()
            notes = pod_annotations(pull.pod)
            ref = await self._client.pull_image(pull.image, pull.sandbox_config, annotations=notes)
        ended_s = self._clock.monotonic_s()
        size_bytes = await self._size_bytes(pull.image, notes)
        took, in_all = _milliseconds(ended_s - began_s), _milliseconds(ended_s - asked_s)
        message = reasons.pulled(pull.name, took, in_all, size_bytes)
        self._events.normal(pull.pod, pull.container.name, reasons.EVENT_PULLED, message)
        return ref

    async def _size_bytes(self, image: str, notes: dict[str, str]) -> int:
        """For the event's text only, so a failure is no failure of the pull."""
        try:
            record = await self._client.image_status(image, notes)
        except CriCallError:
            return 0
        return record.size_bytes if record else 0

    def forget_old_backoffs(self) -> None:
        """Housekeeping (BACK-004)."""
        self.backoff.collect(self._clock.wall_ns())
        failures = self._last_failures
        self._last_failures = {k: v for k, v in failures.items() if self.backoff.get(k)}

    def _warn(self, pod: Pod, container: Container, reason: str, message: str) -> None:
        self._events.warning(pod, container.name, reason, message)


@dataclass(frozen=True, slots=True)
class _Pull:
    """One pull: `image` has a tag, `name` is the text of the spec."""

    pod: Pod
    container: Container
    image: str
    sandbox_config: Any

    @property
    def name(self) -> str:
        return self.container.image or ""


def pull_policy(container: Container, image: str) -> str:
    """The container's policy; unset: Always for `:latest`, else IfNotPresent."""
    if container.imagePullPolicy:
        return container.imagePullPolicy
    return ALWAYS if image.endswith(":latest") else IF_NOT_PRESENT


def classify(image: str, error: str) -> tuple[str, str]:
    """Reason and message of a failed pull, by the beginning of its text (BACK-205).

    >>> classify("a:1", "RegistryUnavailable: down")[1]
    'image pull failed for a:1 because the registry is unavailable: down'
    """
    for reason, why in (
        (reasons.REGISTRY_UNAVAILABLE, "the registry is unavailable"),
        (reasons.SIGNATURE_VALIDATION_FAILED, "the signature validation failed"),
    ):
        if error.startswith(reason):
            rest = error.removeprefix(reason)
            return reason, f"image pull failed for {image} because {why}{rest}"
    return reasons.ERR_IMAGE_PULL, error


def _milliseconds(duration_s: float) -> str:
    return format_duration(round(duration_s, 3))


class PullLimits:
    """How many pulls at a time, and how often (BACK-208)."""

    def __init__(self, clock: Clock, options: ImageOptions) -> None:
        self._clock = clock
        self._options = options
        slots = 1 if options.serialize_pulls else options.max_parallel_pulls
        self._slots = asyncio.Semaphore(slots) if slots else None
        self._tokens = float(options.pull_burst)
        self._filled_s = clock.monotonic_s()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a slot. Without a token the pull fails at once (`pull QPS exceeded`)."""
        if not self._take_token():
            raise CriCallError("PullImage", "UNKNOWN", "pull QPS exceeded")
        if self._slots is None:
            yield
            return
        async with self._slots:
            yield

    def _take_token(self) -> bool:
        if self._options.pull_qps <= 0:
            return True
        now_s = self._clock.monotonic_s()
        gained = (now_s - self._filled_s) * self._options.pull_qps
        self._tokens = min(self._tokens + gained, float(self._options.pull_burst))
        self._filled_s = now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
