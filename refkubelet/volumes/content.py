"""Fills configMap, secret, projected and downwardAPI volumes with what they shall hold (NODE-205).

Each set-up fetches the objects, makes the files of them (`payload`) and hands these to the writer.
What cannot be fetched leaves the volume as it is. What must never happen here: a value of a secret
in a log or an event.
Upstream: pkg/volume/configmap, secret, projected, downwardapi.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from lightkube.models.core_v1 import (
    ClusterTrustBundleProjection as TrustBundleProjection,
)
from lightkube.models.core_v1 import (
    ConfigMap,
    ConfigMapProjection,
    ConfigMapVolumeSource,
    Secret,
    ServiceAccountTokenProjection,
    Volume,
)
from msgspec import Struct

from kubeobjects.golang.errors import aggregate
from refkubelet.api.client import ApiError, ObjectReader
from refkubelet.api.kinds import CONFIG_MAPS, SECRETS
from refkubelet.model.downward_api import NodeAndPodFacts
from refkubelet.model.names import pod_volume_dir, safe_join
from refkubelet.model.objects import Pod
from refkubelet.model.pod import fs_user, uid
from refkubelet.object_manager.tokens import TokenManager
from refkubelet.object_manager.trust_bundles import TrustBundleManager
from refkubelet.volumes.atomic_writer import AtomicWriter
from refkubelet.volumes.empty_dirs import EmptyDirs
from refkubelet.volumes.ownership import fs_group, give_at_once
from refkubelet.volumes.payload import (
    NO_MODE,
    FileProjection,
    PayloadError,
    config_map_payload,
    downward_payload,
    nested_mount_points,
    secret_payload,
)
from refkubelet.volumes.plan import CONFIG_MAP, PLUGINS, kind_of

Files = dict[str, FileProjection]

OWN_FILE_MODE: Final = 0o600
"""The mode of tokens and trust bundles of pods whose user or group is known; the group may read
them, too, once the volume is given to it."""
STANDALONE: Final = "not supported due to running kubelet in standalone mode"


class ContentSources(Struct, frozen=True):
    """Where the content of volumes comes from. `objects` and `tokens` None: standalone."""

    objects: ObjectReader | None = None
    tokens: TokenManager | None = None
    trust_bundles: TrustBundleManager | None = None
    allocatable: Mapping[str, int] | None = None
    """Of the node, in nano units: limits that are not set read so."""


class ContentVolumes:
    """Sets up the volumes of these kinds."""

    def __init__(
        self, empty_dirs: EmptyDirs, writer: AtomicWriter, sources: ContentSources
    ) -> None:
        self._empty_dirs = empty_dirs
        self._writer = writer
        self._sources = sources

    async def set_up(self, pod: Pod, volume: Volume, size_bytes: int) -> None:
        """Make the volume, or update it. `size_bytes`: of its filesystem in memory. Raises
        `PayloadError`, `ApiError`, OSError, ValueError."""
        payload = await self._payload(pod, volume)
        kind = kind_of(volume)
        path = pod_volume_dir(self._empty_dirs.root_dir, uid(pod), PLUGINS[kind], volume.name)
        await self._empty_dirs.set_up_wrapped(
            pod, path, volume.name, in_memory=kind != CONFIG_MAP, size_bytes=size_bytes
        )
        for below in nested_mount_points(volume.name, pod):
            os.makedirs(safe_join(path, *below.split("/")), mode=0o755, exist_ok=True)
        self._writer.write(path, payload, lambda: give_at_once(path, fs_group(pod), read_only=True))

    def forget(self, pod: Pod) -> None:
        """The pod has ended."""
        if self._sources.tokens is not None:
            self._sources.tokens.forget(uid(pod))

    async def _payload(self, pod: Pod, volume: Volume) -> Files:
        if volume.configMap is not None:
            source = volume.configMap
            return await self._config_map(pod, source, source.defaultMode)
        if volume.secret is not None:
            secret = volume.secret
            name = secret.secretName or ""
            optional = bool(secret.optional)
            data = await self._get_secret(pod, name, optional=optional)
            return secret_payload(data, secret.items, secret.defaultMode, optional=optional)
        if volume.downwardAPI is not None:
            downward = volume.downwardAPI
            return downward_payload(downward.items, pod, self._facts(), downward.defaultMode)
        return await self._projected(pod, volume)

    def _facts(self) -> NodeAndPodFacts:
        return NodeAndPodFacts(allocatable=self._sources.allocatable or {})

    async def _config_map(
        self, pod: Pod, source: ConfigMapVolumeSource | ConfigMapProjection, mode: int | None
    ) -> Files:
        optional = bool(source.optional)
        try:
            config_map = await self._objects().get(CONFIG_MAPS, source.name or "", _namespace(pod))
        except ApiError as error:
            if not (error.not_found and optional):
                raise
            config_map = ConfigMap()
        return config_map_payload(config_map, source.items, mode, optional=optional)

    async def _get_secret(self, pod: Pod, name: str, *, optional: bool) -> Secret:
        try:
            return await self._objects().get(SECRETS, name, _namespace(pod))
        except ApiError as error:
            if not (error.not_found and optional):
                raise
            return Secret()

    def _objects(self) -> ObjectReader:
        if self._sources.objects is None:
            raise PayloadError(STANDALONE)
        return self._sources.objects

    async def _projected(self, pod: Pod, volume: Volume) -> Files:
        """The files of all sources; of equal paths the last one wins. All errors are told."""
        projected = volume.projected
        if projected is None or projected.defaultMode is None:
            raise PayloadError(NO_MODE)
        if self._sources.objects is None:
            raise PayloadError(
                f"cannot setup projected volume {volume.name} because kube client is not configured"
            )
        files: Files = {}
        errors: list[str] = []
        for source in projected.sources or ():
            try:
                files |= await self._of_source(pod, source, projected.defaultMode)
            except (PayloadError, ApiError) as error:
                errors.append(_words(error))
        if errors:
            raise PayloadError(aggregate(errors))
        return files

    async def _of_source(self, pod: Pod, source: Any, mode: int) -> Files:
        """The files of one source. Raises `PayloadError`, `ApiError`."""
        if source.secret is not None:
            optional = bool(source.secret.optional)
            data = await self._get_secret(pod, source.secret.name or "", optional=optional)
            return secret_payload(data, source.secret.items, mode, optional=optional)
        if source.configMap is not None:
            return await self._config_map(pod, source.configMap, mode)
        if source.downwardAPI is not None:
            return downward_payload(source.downwardAPI.items, pod, self._facts(), mode)
        if source.serviceAccountToken is not None:
            return await self._token(pod, source.serviceAccountToken, mode)
        if source.clusterTrustBundle is not None:
            return await self._trust_bundle(pod, source.clusterTrustBundle, mode)
        if getattr(source, "podCertificate", None) is not None:
            raise PayloadError("pod certificates are not supported by this kubelet")
        return {}

    async def _token(self, pod: Pod, source: ServiceAccountTokenProjection, mode: int) -> Files:
        if self._sources.tokens is None:
            raise PayloadError("cannot use TokenManager when kubelet is in standalone mode")
        token = await self._sources.tokens.get(pod, source.audience or "", source.expirationSeconds)
        return {source.path: _own_file(pod, token.encode(), mode)}

    async def _trust_bundle(self, pod: Pod, source: TrustBundleProjection, mode: int) -> Files:
        bundles = self._sources.trust_bundles
        if bundles is None:
            raise PayloadError(
                "ClusterTrustBundle projection is not supported in static kubelet mode"
            )
        missing = bool(source.optional)
        if source.name is not None:
            anchors = await bundles.by_name(source.name, allow_missing=missing)
        elif source.signerName is not None:
            anchors = await bundles.by_signer(
                source.signerName, source.labelSelector, allow_missing=missing
            )
        else:
            raise PayloadError(
                "ClusterTrustBundle projection requires either name or signerName to be set"
            )
        return {source.path: _own_file(pod, anchors, mode)}


def _own_file(pod: Pod, data: bytes, mode: int) -> FileProjection:
    """A file that only the pod's user, and its group, may read, if these are known."""
    user = fs_user(pod)
    own = user is not None or fs_group(pod) is not None
    return FileProjection(data, OWN_FILE_MODE if own else mode, user)


def _words(error: PayloadError | ApiError) -> str:
    return error.message if isinstance(error, ApiError) else str(error)


def _namespace(pod: Pod) -> str:
    return pod.metadata.namespace or ""
