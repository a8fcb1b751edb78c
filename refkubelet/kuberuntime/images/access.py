"""Decides whether a pod may use a present image, and records pulls: an intent before a pull, a
record after it (BACK-210..212).

`pull_records` decides, `pull_record_files` stores. What must never happen: a pull without an intent
on disk, after which the next kubelet would take the image for a preloaded one; a record that is
written only after the container runs.
Upstream: pkg/kubelet/images/pullmanager/image_pull_manager.go.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from refkubelet.config.schema.image_policies import VerificationPolicy
from refkubelet.cri.client import CriClient
from refkubelet.cri.target import CriCallError
from refkubelet.kuberuntime.images.keyring import Credential
from refkubelet.kuberuntime.images.pull_record_files import PullRecordFiles
from refkubelet.kuberuntime.images.pull_records import (
    Access,
    PulledRecord,
    access_with,
    accounts_of,
    merged,
    needs_credentials,
    secret_use,
    verify,
)
from refkubelet.telemetry.runtime_metrics import ImageMetrics
from simclock import Clock

log = logging.getLogger(__name__)

CredentialsOf = Callable[[], Awaitable[tuple[Credential, ...]]]


class EveryoneMay:
    """Replaces `ImageAccess` if the gate KubeletEnsureSecretPulledImages is off: every pod may use
    every present image, and nothing is recorded."""

    verifies = False

    async def recover(self) -> None:
        """Nothing to do."""

    async def must_pull(self, image: str, image_ref: str, credentials_of: CredentialsOf) -> bool:
        return False

    def begin(self, image: str) -> None:
        """Nothing is recorded."""

    def succeeded(self, image: str, image_ref: str, used: Credential | None) -> None:
        """Nothing is recorded."""

    def failed(self, image: str) -> None:
        """Nothing to remove."""

    def prune(self, kept_refs: Iterable[str], before_ns: int) -> None:
        """Nothing to remove."""


class ImageAccess:
    """The intents and records of this kubelet; records are read from disk once and then cached."""

    verifies = True

    def __init__(
        self,
        client: CriClient,
        clock: Clock,
        root_dir: Path,
        policy: VerificationPolicy,
        metrics: ImageMetrics | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._policy = policy
        self._metrics = metrics or ImageMetrics()
        self._files = PullRecordFiles(root_dir, self._metrics)
        self._records: dict[str, PulledRecord | None] = {}
        self._pulling: Counter[str] = Counter()
        self._recovered = False

    async def recover(self) -> None:
        """Turn the intents of an earlier kubelet whose images are present now into records that no
        pod may use unverified. Only the first call does this; if the runtime does not answer, the
        intents stay."""
        if self._recovered:
            return
        self._recovered = True
        intents = set(self._files.intents())
        if not intents:
            return
        try:
            images = await self._client.list_images()
        except CriCallError as error:
            log.error("cannot list images to recover interrupted pulls: %s", error)
            return
        for image in images:
            for name in (*image.repo_digests, *image.repo_tags):
                if name in intents:
                    self._record(name, image.id, None)
                    self._files.delete_intent(name)

    async def must_pull(self, image: str, image_ref: str, credentials_of: CredentialsOf) -> bool:
        """Whether the pod must pull a present image to prove that it may use it. `credentials_of`
        is called only if the answer depends on it."""
        must_pull, result = await self._checked(image, image_ref, credentials_of)
        self._metrics.checks.inc(result)
        return must_pull

    async def _checked(
        self, image: str, image_ref: str, credentials_of: CredentialsOf
    ) -> tuple[bool, str]:
        """Whether the pod must pull, and what the metrics call that."""
        try:
            record = self._read(image_ref)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            log.error("cannot read the pull record of image %s: %s", image_ref, error)
            return True, "error"
        pulled = record is not None or self._is_being_pulled(image)
        if not self._policy.verifies(image, pulled_by_kubelet=pulled):
            return False, "credentialPolicyAllowed"
        credentials = await credentials_of() if needs_credentials(record, image) else ()
        secrets = [use for c in credentials if (use := secret_use(c)) is not None]
        verdict = verify(record, image, secrets, accounts_of(credentials))
        if verdict.learned is not None:
            self._record(image, image_ref, Access(secrets=(verdict.learned,)))
        return (
            verdict.must_pull,
            "mustAuthenticate" if verdict.must_pull else "credentialRecordFound",
        )

    def _is_being_pulled(self, image: str) -> bool:
        return self._pulling[image] > 0 or self._files.has_intent(image)

    def begin(self, image: str) -> None:
        """Record the intent of a pull, before it is tried. Raises OSError."""
        self._files.write_intent(image)
        self._pulling[image] += 1

    def succeeded(self, image: str, image_ref: str, used: Credential | None) -> None:
        """Record a pull that succeeded, and remove its intent. If the record cannot be written, the
        intent stays, so that the image is not taken for a preloaded one."""
        if self._record(image, image_ref, access_with(used)):
            self.failed(image)

    def failed(self, image: str) -> None:
        """Remove the intent of a pull that has ended, if no other pull of the image is running."""
        if self._pulling[image] > 1:
            self._pulling[image] -= 1
            return
        try:
            self._files.delete_intent(image)
        except OSError as error:
            log.error("cannot remove the intent of a pull: %s", error)
        del self._pulling[image]

    def prune(self, kept_refs: Iterable[str], before_ns: int) -> None:
        """Drop the records of images that are not in `kept_refs`, unless they were updated since
        `before_ns`, the begin of the image collection."""
        kept_set = frozenset(kept_refs)
        for record in self._files.records():
            if record.updated_ns >= before_ns or record.image_ref in kept_set:
                continue
            try:
                self._files.delete(record.image_ref)
            except OSError as error:
                log.error("cannot remove a pull record: %s", error)
            self._records.pop(record.image_ref, None)

    def _read(self, image_ref: str) -> PulledRecord | None:
        if image_ref not in self._records:
            self._records[image_ref] = self._files.read(image_ref)
        return self._records[image_ref]

    def _record(self, image: str, image_ref: str, access: Access | None) -> bool:
        try:
            before = self._read(image_ref)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            before = None
        after = merged(before, image_ref, image, access, now_ns=self._clock.wall_ns())
        if after is before:
            return True
        try:
            self._files.write(after)
        except OSError as error:
            log.error("cannot write the pull record of image %s: %s", image_ref, error)
            return False
        self._records[image_ref] = after
        return True
