"""Validates a static pod with the checks of an API server at creation. Pure.

Each check yields `field: complaint` with the API's text (SRC-037), in upstream's order; the message
has all of them. Types need no check, because the pod was decoded. tests/data/manifests has recorded
verdicts of a real kubelet.
Upstream: pkg/apis/core/validation: ValidatePodCreate.
"""

from __future__ import annotations

from collections.abc import Iterator

from refkubelet.model.objects import Pod, PodSpec
from refkubelet.model.validation.containers import (
    container_problems,
    host_port_problems,
    restart_rules,
)
from refkubelet.model.validation.field_errors import (
    MAX_INT32,
    at_least,
    between,
    label,
    one_of,
    required,
    subdomain,
    unique_label,
)
from refkubelet.model.validation.pod_fields import metadata_problems, pod_level_problems
from refkubelet.model.validation.probes_and_hooks import probes_and_hooks, probes_and_hooks_of_init
from refkubelet.model.validation.references import file_volume_problems
from refkubelet.model.validation.resources import amount_problems, resource_name_problems
from refkubelet.model.validation.volumes import volume_problems


def pod_problems(pod: Pod) -> list[str]:
    """All complaints about a pod with API defaults; empty: it is valid."""
    meta = pod.metadata
    problems = [] if meta.name else [required("metadata.name")]
    problems += subdomain("metadata.name", meta.name)
    problems += label("metadata.namespace", meta.namespace)
    problems += metadata_problems(meta)
    return [*problems, *_spec(pod.spec)]


def _spec(spec: PodSpec) -> Iterator[str]:
    """All of the spec, in upstream's order."""
    yield from one_of("spec.restartPolicy", spec.restartPolicy, ("Always", "OnFailure", "Never"))
    yield from one_of(
        "spec.dnsPolicy",
        spec.dnsPolicy,
        ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    )
    grace = spec.terminationGracePeriodSeconds
    yield from at_least("spec.terminationGracePeriodSeconds", grace, 0)
    deadline = spec.activeDeadlineSeconds
    yield from between("spec.activeDeadlineSeconds", deadline, 1, MAX_INT32)
    volumes: set[str] = set()
    for i, volume in enumerate(spec.volumes or ()):
        place = f"spec.volumes[{i}]"
        yield from unique_label(f"{place}.name", volume.name, volumes)
        yield from volume_problems(place, volume)
    yield from _containers(spec, volumes)
    yield from amount_problems("spec.resources", spec.resources)
    yield from resource_name_problems("spec.resources", spec.resources, of_pod=True)
    yield from pod_level_problems(spec)
    yield from file_volume_problems(spec)


def _containers(spec: PodSpec, volumes: set[str]) -> Iterator[str]:
    if not spec.containers:
        yield required("spec.containers")
    names: set[str] = set()
    for i, c in enumerate(spec.containers or ()):
        place = f"spec.containers[{i}]"
        yield from container_problems(place, c, spec, names=names, volumes=volumes)
        yield from probes_and_hooks(place, c, spec)
        yield from restart_rules(place, c)
    yield from host_port_problems(spec)
    for i, c in enumerate(spec.initContainers or ()):
        place = f"spec.initContainers[{i}]"
        yield from container_problems(place, c, spec, names=names, volumes=volumes)
        yield from probes_and_hooks_of_init(place, c, spec)
        yield from restart_rules(place, c, of_init=True)
