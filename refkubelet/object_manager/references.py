"""The ConfigMaps and Secrets that a pod refers to: in volumes, variables and pull secrets. Pure.

Upstream: pkg/api/v1/pod/util.go: VisitPodSecretNames, VisitPodConfigmapNames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from lightkube.models.core_v1 import EphemeralContainer

from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import all_containers


def config_maps_of(pod: Pod) -> tuple[str, ...]:
    """The names of the pod's ConfigMaps, each once."""
    return _names(
        name for part in (_maps_in_volumes(pod), _maps_in_variables(pod)) for name in part
    )


def secrets_of(pod: Pod) -> tuple[str, ...]:
    """The names of the pod's Secrets, each once; pull secrets too."""
    pulls = (reference.name for reference in pod.spec.imagePullSecrets or ())
    return _names(chain(pulls, _secrets_in_volumes(pod), _secrets_in_variables(pod)))


def _names(found: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in found if name))


def _maps_in_volumes(pod: Pod) -> Iterator[str | None]:
    for volume in pod.spec.volumes or ():
        if volume.configMap is not None:
            yield volume.configMap.name
        for source in (volume.projected.sources or ()) if volume.projected is not None else ():
            if source.configMap is not None:
                yield source.configMap.name


def _secrets_in_volumes(pod: Pod) -> Iterator[str | None]:
    for volume in pod.spec.volumes or ():
        if volume.secret is not None:
            yield volume.secret.secretName
        for source in (volume.projected.sources or ()) if volume.projected is not None else ():
            if source.secret is not None:
                yield source.secret.name


def _maps_in_variables(pod: Pod) -> Iterator[str | None]:
    for container in all_containers(pod):
        yield from maps_in_variables(container)


def _secrets_in_variables(pod: Pod) -> Iterator[str | None]:
    for container in all_containers(pod):
        yield from secrets_in_variables(container)


def maps_in_variables(container: Container | EphemeralContainer) -> Iterator[str | None]:
    """The ConfigMaps of one container's variables."""
    for source in container.envFrom or ():
        if source.configMapRef is not None:
            yield source.configMapRef.name
    for variable in container.env or ():
        if variable.valueFrom is not None and variable.valueFrom.configMapKeyRef is not None:
            yield variable.valueFrom.configMapKeyRef.name


def secrets_in_variables(container: Container | EphemeralContainer) -> Iterator[str | None]:
    """The Secrets of one container's variables."""
    for source in container.envFrom or ():
        if source.secretRef is not None:
            yield source.secretRef.name
    for variable in container.env or ():
        if variable.valueFrom is not None and variable.valueFrom.secretKeyRef is not None:
            yield variable.valueFrom.secretKeyRef.name
