"""The image step of a container start: makes sure that the image is present and may be used.

Rules: BACK-201..213. `pulls` limits when images are pulled, `access` decides which pods may use a
present image, `keyring` finds the credentials. What must never happen: a pull during its back-off;
a failed pull counted as a crash-loop back-off (BACK-207).
Upstream: pkg/kubelet/images/image_manager.go: EnsureImageExists.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from lightkube.models.core_v1 import Secret
from msgspec import Struct

from kubeobjects.golang.duration import format_duration
from kubeobjects.golang.strconv import quoted
from refkubelet.cri.client import CriClient
from refkubelet.cri.records import ImageRecord
from refkubelet.cri.target import INVALID_ANSWER, CriCallError
from refkubelet.events.recorder import field_path
from refkubelet.kuberuntime.common import reasons
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.decisions.backoff import (
    MAX_DELAY_S,
    BackoffLimits,
    BackoffTable,
    image_key,
)
from refkubelet.kuberuntime.images.access import EveryoneMay, ImageAccess
from refkubelet.kuberuntime.images.keyring import (
    Credential,
    CredentialError,
    credentials_of,
    keyring,
)
from refkubelet.kuberuntime.images.node_credentials import NodeCredentials
from refkubelet.kuberuntime.images.pulls import ImagePuller, Pulled, PullError
from refkubelet.model.image_names import InvalidImageNameError, repository, with_default_tag
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import annotations as pod_annotations
from refkubelet.model.pod import uid
from refkubelet.telemetry.runtime_metrics import size_label

ALWAYS: Final = "Always"
IF_NOT_PRESENT: Final = "IfNotPresent"
NEVER: Final = "Never"


class ImageError(Exception):
    """The image step failed; `reason` becomes the container's waiting reason."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        self.message = message
        super().__init__(message)


class ImageRequest(Struct, frozen=True):
    """An image that a pod needs; `name` and `policy` as in its spec ("": the default policy).
    `field_path`: the field of the pod that events refer to; "": the pod."""

    pod: Pod
    name: str
    policy: str
    sandbox_config: Any
    pull_secrets: tuple[Secret, ...] = ()
    field_path: str = ""

    @classmethod
    def of_container(
        cls, pod: Pod, container: Container, sandbox_config: Any, secrets: tuple[Secret, ...] = ()
    ) -> ImageRequest:
        policy = container.imagePullPolicy or ""
        path = field_path(pod, container.name)
        return cls(
            pod,
            container.image or "",
            policy,
            sandbox_config=sandbox_config,
            pull_secrets=secrets,
            field_path=path,
        )


class _FoundOnce:
    """The credentials of one request, looked for when they are first asked for."""

    def __init__(self, find: Callable[[], Awaitable[tuple[Credential, ...]]]) -> None:
        self._find = find
        self._found: tuple[Credential, ...] | None = None

    async def get(self) -> tuple[Credential, ...]:
        if self._found is None:
            self._found = await self._find()
        return self._found


@dataclass(slots=True)
class _Need:
    """What the metrics tell of one request; None: it is not known."""

    policy: str = ""
    present: bool | None = None
    pull: bool | None = None


def _word(known: bool | None) -> str:
    return "unknown" if known is None else str(known).lower()


class ImageManager:
    """Does the image step, and keeps the back-off of pulls."""

    def __init__(self, client: CriClient, deps: RuntimeDeps, options: RuntimeOptions) -> None:
        self._client = client
        self._clock = deps.clock
        self._events = deps.events
        self._puller = ImagePuller(client, deps.clock, options.images)
        self._node_credentials = NodeCredentials(deps.clock, options.images.docker_config_files)
        self._plugins = deps.login_plugins
        self._counted = deps.measures.metrics.images
        self._latency = deps.measures.latency
        policy = options.images.verification
        self.access = (
            ImageAccess(client, deps.clock, options.root_dir, policy, deps.measures.metrics.images)
            if policy
            else EveryoneMay()
        )
        self.backoff = BackoffTable(BackoffLimits.up_to(MAX_DELAY_S))
        self._last_failures: dict[str, tuple[str, str]] = {}

    async def ensure_image(self, request: ImageRequest) -> str:
        """Pull the image if needed; returns the reference for creating the container. Raises
        `ImageError`. Records all events but the final `Error: <reason>`."""
        need = _Need()
        try:
            return await self._ensure(request, need)
        finally:
            words = _word(need.present), _word(need.pull)
            self._counted.requests.inc(need.policy.lower(), *words)

    async def _ensure(self, request: ImageRequest, need: _Need) -> str:
        """The same; `need` becomes what the metrics tell of it (BACK-213)."""
        need.policy = request.policy or default_policy(request.name)
        await self.access.recover()
        try:
            image = with_default_tag(request.name)
        except InvalidImageNameError as error:
            message = reasons.invalid_image(request.name, str(error))
            self._warn(request, reasons.EVENT_INSPECT_FAILED, message)
            raise ImageError(reasons.INVALID_IMAGE_NAME, message) from None
        need.policy = policy = request.policy or default_policy(image)
        credentials = _FoundOnce(lambda: self._credentials(request, image))
        present = None
        if policy != ALWAYS:
            present = await self._present(request, image)
            need.present = present is not None
        if present is not None:
            need.pull = await self.access.must_pull(request.name, present.id, credentials.get)
        if present is not None and not need.pull:
            if self._latency is not None:  # another pod has pulled it meanwhile
                self._latency.pull_ended(uid(request.pod))
            message = reasons.already_present(request.name, verified=self.access.verifies)
            self._tell(request, reasons.EVENT_PULLED, message)
            return present.id
        need.pull = True if policy != NEVER or present is not None else None
        if policy == NEVER:
            # The same message if it is present but not accessible: presence is a secret, too.
            message = reasons.not_present(request.name)
            self._warn(request, reasons.EVENT_ERR_IMAGE_NEVER_PULL, message)
            raise ImageError(reasons.ERR_IMAGE_NEVER_PULL, message)
        return await self._noted_pull(request, image, await credentials.get())

    async def image_of(self, container: Container) -> ImageRecord:
        """The runtime's record of the image, for the image's user (BACK-213). Raises
        `CriCallError`."""
        record = await self._client.image_status(container.image or "")
        return record or ImageRecord(id="", size_bytes=0)

    async def _present(self, request: ImageRequest, image: str) -> ImageRecord | None:
        try:
            return await self._client.image_status(image, pod_annotations(request.pod))
        except CriCallError as error:
            text = error.text
            if error.code == INVALID_ANSWER:
                text = f"Id or size of image {quoted(image)} is not set"
            message = reasons.failed_to_inspect(text)
            self._warn(request, reasons.EVENT_INSPECT_FAILED, message)
            raise ImageError(reasons.IMAGE_INSPECT_ERROR, message) from None

    async def _credentials(self, request: ImageRequest, image: str) -> tuple[Credential, ...]:
        """The fitting credentials: of the pull secrets, then of the node, then of the plug-ins
        (BACK-209). Raises `ImageError`."""
        name = repository(image)
        try:
            from_secrets = keyring(credentials_of(request.pull_secrets))
        except CredentialError as error:
            raise ImageError(str(error), str(error)) from None
        credentials = from_secrets.lookup(name) + self._node_credentials.lookup(name)
        if self._plugins is None:
            return credentials
        of_plugins: tuple[Credential, ...] = await self._plugins.lookup(request.pod, name)
        return credentials + of_plugins

    async def _noted_pull(
        self, request: ImageRequest, image: str, credentials: tuple[Credential, ...]
    ) -> str:
        """Record the intent, pull, and record the pull (BACK-211). Raises `ImageError`."""
        try:
            self.access.begin(request.name)
        except OSError as error:
            message = reasons.intent_not_recorded(request.name, str(error))
            raise ImageError(f"failed to record image pull intent: {error}", message) from None
        try:
            pulled = await self._pull_unless_backing_off(request, image, credentials)
        except Exception:  # not cancellation: if the kubelet ends, the next one needs the intent
            self.access.failed(request.name)
            raise
        self.access.succeeded(request.name, pulled.ref, pulled.credential)
        return pulled.ref

    async def _pull_unless_backing_off(
        self, request: ImageRequest, image: str, credentials: tuple[Credential, ...]
    ) -> Pulled:
        """Pull, or raise `ImageError` during the back-off, whose delay counts from the last failed
        attempt (BACK-206)."""
        key = image_key(uid(request.pod), request.name)
        entry = self.backoff.get(key)
        now_ns = self._clock.wall_ns()
        if entry and self.backoff.wait_until(key, entry.last_update_ns, now_ns) is not None:
            message = reasons.back_off_pulling(request.name)
            self._tell(request, reasons.EVENT_BACK_OFF, message)
            reason, text = self._last_failures.get(key, (reasons.ERR_IMAGE_PULL, ""))
            raise ImageError(reasons.IMAGE_PULL_BACK_OFF, f"{message}: {reason}: {text}")
        try:
            return await self._pull(request, image, credentials)
        except PullError as error:
            message = reasons.failed_to_pull(request.name, str(error))
            self._warn(request, reasons.EVENT_FAILED, message)
            failed_ns = self._clock.wall_ns()
            self.backoff.next(key, failed_ns, failed_ns)
            self._last_failures[key] = classify(request.name, str(error))
            raise ImageError(*self._last_failures[key]) from None

    async def _pull(
        self, request: ImageRequest, image: str, credentials: tuple[Credential, ...]
    ) -> Pulled:
        asked_s = self._clock.monotonic_s()
        if self._latency is not None:
            self._latency.pull_began(uid(request.pod))
        self._tell(request, reasons.EVENT_PULLING, reasons.pulling(request.name))
        notes = pod_annotations(request.pod)
        pulled = await self._puller.pull(image, request.sandbox_config, notes, credentials)
        if self._latency is not None:
            self._latency.pull_ended(uid(request.pod))
        in_all_s = self._clock.monotonic_s() - asked_s
        self._counted.pull_duration.observe(in_all_s, size_label(pulled.size_bytes))
        took, in_all = whole_milliseconds(pulled.took_s), whole_milliseconds(in_all_s)
        message = reasons.pulled(request.name, took, in_all, pulled.size_bytes)
        self._tell(request, reasons.EVENT_PULLED, message)
        return pulled

    def forget_old_backoffs(self) -> None:
        """Drop expired back-offs and their last failures (BACK-004)."""
        self.backoff.collect(self._clock.wall_ns())
        if self._last_failures:
            failures = self._last_failures
            self._last_failures = {k: v for k, v in failures.items() if self.backoff.get(k)}

    def _tell(self, request: ImageRequest, reason: str, message: str) -> None:
        path = request.field_path
        self._events.pod_event(request.pod, "Normal", reason, message, field_path=path)

    def _warn(self, request: ImageRequest, reason: str, message: str) -> None:
        path = request.field_path
        self._events.pod_event(request.pod, "Warning", reason, message, field_path=path)


def default_policy(image: str) -> str:
    """The pull policy of a spec without one: Always for `:latest`, else IfNotPresent.

    >>> default_policy("a:latest"), default_policy("a:1")
    ('Always', 'IfNotPresent')
    """
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


def whole_milliseconds(duration_s: float) -> str:
    """A duration cut to milliseconds, as Go prints it; first rounded to microseconds, because
    floats are inexact.

    >>> whole_milliseconds(1.2349), whole_milliseconds(0.3 - 1e-12), whole_milliseconds(0.0004)
    ('1.234s', '300ms', '0s')
    """
    return format_duration(math.floor(round(duration_s * 1e6) / 1e3) / 1e3)
