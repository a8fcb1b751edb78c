"""ConfigMaps, Secrets and services for the variables of containers.

Services are watched from the start of the kubelet; ConfigMaps and Secrets are those of the pod,
which the object manager keeps.
Rules: LIFE-137. Upstream: pkg/kubelet/util/manager; kubelet.go: the service lister.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from lightkube.models.core_v1 import ConfigMap, Secret, Service

from refkubelet.api.client import ApiClient, ApiError, ObjectReader
from refkubelet.api.kinds import CONFIG_MAPS, SECRETS, SERVICES
from refkubelet.api.reflector import Reflector
from refkubelet.kuberuntime.common.runtime_deps import SECRET, ApiObjects, ObjectKey
from refkubelet.kuberuntime.config.environment import referenced_objects
from refkubelet.model.downward_api import VariableError
from refkubelet.model.objects import Container, Pod
from simclock import Clock, Rng


class VariableObjects:
    """Implements `runtime_deps.ObjectSource`."""

    def __init__(self, api: ApiClient, objects: ObjectReader, clock: Clock, rng: Rng) -> None:
        self._objects = objects
        self._services: tuple[Service, ...] | None = None
        self._reflector = Reflector(api, SERVICES, self._take_services, clock=clock, rng=rng)

    async def run(self) -> None:
        """Watch the services until cancelled."""
        await self._reflector.run()

    async def of(self, pod: Pod, container: Container) -> ApiObjects:
        """The objects that the container's variables refer to. Raises `VariableError` if the server
        does not answer."""
        namespace = pod.metadata.namespace or ""
        data = {key: await self._read(namespace, key) for key in referenced_objects(container)}
        return ApiObjects(data, self._services)

    async def _read(self, namespace: str, key: ObjectKey) -> Mapping[str, str] | None:
        kind, name = key
        try:
            if kind == SECRET:
                return secret_data(await self._objects.get(SECRETS, name, namespace))
            return config_map_data(await self._objects.get(CONFIG_MAPS, name, namespace))
        except ApiError as error:
            if error.not_found:
                return None
            raise VariableError(error.message) from error

    async def _take_services(self, services: tuple[Service, ...]) -> None:
        self._services = services


def config_map_data(config_map: ConfigMap) -> Mapping[str, str]:
    """The values of a ConfigMap; binaryData is not used for variables."""
    return config_map.data or {}


def secret_data(secret: Secret) -> Mapping[str, str]:
    """The values of a Secret as texts; bytes that are not UTF-8 become surrogates. Raises
    `VariableError` for a value that is not base64."""
    result = {}
    for key, value in (secret.data or {}).items():
        try:
            decoded = base64.b64decode(value or "", validate=True)
        except binascii.Error as error:
            name = secret.metadata.name if secret.metadata else ""
            raise VariableError(f"key {key} of secret {name} is not base64: {error}") from error
        result[key] = decoded.decode(errors="surrogateescape")
    return result
