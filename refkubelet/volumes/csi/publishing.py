"""Publishes volumes for pods, and ends that (NODE-217.4 to .7, NODE-218, NODE-219.1).

What must never happen here: a container is started without its volume, or a pod is over while its
volume is still published; a secret or a token is logged.
Upstream: pkg/volume/csi/csi_mounter.go.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from kubecri.csi import api_pb2 as api
from lightkube.models.storage_v1 import CSIDriver
from msgspec import Struct, field

from refkubelet.api.client import ApiError, ObjectReader
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.object_manager.tokens import Token
from refkubelet.volumes.csi.client import CsiClient, CsiError
from refkubelet.volumes.csi.mounts import (
    CsiMount,
    SecretKey,
    belongs_to_group,
    driver_spec,
    mode_refusal,
    pod_info,
)
from refkubelet.volumes.csi.names import target_path, told, volume_dir
from refkubelet.volumes.csi.records import (
    FILE,
    VolumeRecord,
    pod_data,
    remove_mount,
    write_record,
)
from refkubelet.volumes.csi.requests import VOLUME_MOUNT_GROUP, volume_capability
from refkubelet.volumes.csi.secrets import NoSecret, secret_data
from refkubelet.volumes.mount_errors import SET_UP, MountFailed
from refkubelet.volumes.ownership import change_policy, fs_group, give_to_group

TOKENS: Final = "csi.storage.k8s.io/serviceAccount.tokens"
NO_TOKENS: Final = "mounter.SetUpAt failed to get service accoount token attributes"
"""Spelt as upstream spells it."""


class Tokens(Protocol):
    """Tokens of service accounts (`object_manager.tokens.TokenManager`)."""

    async def token(self, pod: Pod, audience: str, expiration_s: int | None) -> Token:
        """Raises `ApiError`."""


class Stage(Struct, frozen=True):
    """What is known of a volume before it is published. `driver`: its CSIDriver object; `path`:
    where it is staged, "" if it is not."""

    driver: CSIDriver | None
    capabilities: Collection[str]
    publish_context: Mapping[str, str] = field(default_factory=dict)
    path: str = ""


class Publishing:
    """Asks drivers to publish volumes below the directories of pods."""

    def __init__(
        self, root_dir: str, node_name: str, secrets: ObjectReader, tokens: Tokens
    ) -> None:
        self._root_dir = root_dir
        self._node_name = node_name
        self._secrets = secrets
        self._tokens = tokens
        self._published: dict[str, bool] = {}  # by directory; True: the pod may use the volume

    async def publish(self, pod: Pod, mount: CsiMount, client: CsiClient, stage: Stage) -> str:
        """Publish the volume, or do so again; returns where containers find it. Raises
        `MountFailed`, `ApiError`, OSError."""
        refusal = mode_refusal(mount, stage.driver)
        if refusal is not None:
            text = f"mounter.SetupAt failed to check volume lifecycle mode: {refusal}"
            raise MountFailed(SET_UP, told(text))
        secrets = await self.secrets(mount.publish_secret, "NodePublishSecretRef", SET_UP)
        context = await self._context(pod, mount, stage.driver, secrets)
        directory = volume_dir(self._root_dir, uid(pod), mount.name)
        record = VolumeRecord(mount.driver, mount.handle, directory, target_path(directory))
        request = api.NodePublishVolumeRequest(
            volume_id=mount.handle,
            publish_context=stage.publish_context,
            staging_target_path=stage.path,
            target_path=record.mount,
            volume_capability=volume_capability(mount, stage.capabilities, fs_group(pod)),
            readonly=mount.read_only,
            secrets=secrets,
            volume_context=context,
        )
        await self._call(record, pod_data(mount, self._node_name), client, request)
        if VOLUME_MOUNT_GROUP not in stage.capabilities and belongs_to_group(mount, stage.driver):
            policy = change_policy(pod)
            await give_to_group(record.mount, fs_group(pod), read_only=False, policy=policy)
        return record.mount

    async def unpublish(self, record: VolumeRecord, client: CsiClient) -> None:
        """End the volume of a pod. Raises `CsiError`, OSError."""
        request = api.NodeUnpublishVolumeRequest(volume_id=record.handle, target_path=record.mount)
        await client.call("NodeUnpublishVolume", request)
        self._published.pop(record.directory, None)
        remove_mount(record)

    async def secrets(self, key: SecretKey | None, kind: str, step: str) -> dict[str, str]:
        """What the secret holds; nothing without one. `kind`, `step`: what the error names. Raises
        `MountFailed`."""
        try:
            return await secret_data(self._secrets, key)
        except NoSecret as error:
            where = "/".join(key or ())
            raise MountFailed(step, f"fetching {kind} {where} failed: {error}") from None

    async def _call(
        self, record: VolumeRecord, data: Mapping[str, str], client: CsiClient, request: Any
    ) -> None:
        """Write the record and call the driver. When that fails for good nothing is left, unless
        the volume was published before, by an earlier kubelet, too: then the pod keeps it
        (NODE-218.5, NODE-219.5)."""
        has_record = os.path.exists(os.path.join(record.directory, FILE))
        is_kept = self._published.setdefault(record.directory, has_record)
        write_record(record.directory, data)
        try:
            await client.call("NodePublishVolume", request)
        except CsiError as error:
            if error.is_final and not is_kept:
                with suppress(OSError):
                    remove_mount(record)
                    del self._published[record.directory]
            raise MountFailed(SET_UP, str(error)) from None
        self._published[record.directory] = True

    async def _context(
        self, pod: Pod, mount: CsiMount, driver: CSIDriver | None, secrets: dict[str, str]
    ) -> dict[str, str]:
        """The volume's attributes, with what the driver wants to know of the pod; tokens go into
        `secrets` if it wants them there. Raises `MountFailed`."""
        context, spec = dict(mount.attributes), driver_spec(driver)
        if spec is None:
            return context
        if spec.podInfoOnMount:
            context |= pod_info(pod, mount)
        if spec.tokenRequests:
            tokens = {TOKENS: await self._token_text(pod, spec.tokenRequests)}
            (secrets if spec.serviceAccountTokenInSecrets else context).update(tokens)
        return context

    async def _token_text(self, pod: Pod, requests: Collection[Any]) -> str:
        """The tokens by audience, as JSON. Raises `MountFailed`."""
        tokens = {}
        for token_request in requests:
            audience = token_request.audience or ""
            try:
                token = await self._tokens.token(pod, audience, token_request.expirationSeconds)
            except ApiError as error:
                raise MountFailed(SET_UP, told(f"{NO_TOKENS}: {error.message}")) from None
            expires = token.expires.strftime("%Y-%m-%dT%H:%M:%SZ")
            tokens[audience] = {"token": token.text, "expirationTimestamp": expires}
        return json.dumps({a: tokens[a] for a in sorted(tokens)}, separators=(",", ":"))
