"""What is wrong with annotations that mean something in a pod. Pure.

Some tell in the old way what fields tell now; where both do, they have to agree.
Upstream: ValidatePodSpecificAnnotations, validateSeccompAnnotationsAndFields,
validateAppArmorAnnotationsAndFieldsMatchOnCreate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kubeobjects.causes import Cause, forbidden_field, invalid_value
from kubeobjects.golang.strconv import quoted
from kubeobjects.pods.common.checks import Object, containers_of, descending_path
from kubeobjects.pods.scheduling import toleration_causes

MIRROR: Final = "kubernetes.io/config.mirror"
TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_PATH: Final = "metadata.annotations"
_INTEGER: Final = re.compile(r"0|[1-9][0-9]*|-[0-9]+")
LOCAL: Final = "localhost/"
_SECCOMP_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "RuntimeDefault": ("runtime/default", "docker/default"),
    "Unconfined": ("unconfined",),
}
_APPARMOR_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "RuntimeDefault": ("runtime/default",),
    "Unconfined": ("unconfined",),
}


def special_annotation_causes(pod: Object) -> Iterator[Cause]:
    """What is wrong with the annotations that mean something, whatever the fields tell."""
    annotations = pod["metadata"].get("annotations") or {}
    if MIRROR in annotations and not pod["spec"].get("nodeName"):
        text = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid_value(f"{_PATH}[{MIRROR}]", annotations[MIRROR], text)
    yield from _toleration_text_causes(annotations.get(TOLERATIONS) or "")
    cost = annotations.get(DELETION_COST)
    if cost is not None and not _is_int32(cost):
        yield invalid_value(f"{_PATH}[{DELETION_COST}]", cost, "must be a 32bit integer")
    if SECCOMP_OF_POD in annotations:
        yield from _seccomp_causes(SECCOMP_OF_POD, annotations[SECCOMP_OF_POD])
    for key, profile in annotations.items():
        if key.startswith(SECCOMP):
            yield from _seccomp_causes(key, profile)
    names = {container.get("name") for _, container in containers_of(pod["spec"])}
    for key, profile in annotations.items():
        if key.startswith(APPARMOR):
            yield from _apparmor_causes(key, profile, names)


def _is_int32(text: str) -> bool:
    if not _INTEGER.fullmatch(text) or len(text.lstrip("-0")) > 10:
        return False
    return -(1 << 31) <= int(text) < 1 << 31


def _toleration_text_causes(text: str) -> Iterator[Cause]:
    """Tolerations as JSON, in an annotation that nobody reads any more."""
    if not text:
        return
    try:
        tolerations = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield invalid_value(_PATH, TOLERATIONS, str(error))
        return
    if isinstance(tolerations, list) and all(map(_is_toleration, tolerations)):
        yield from toleration_causes(tolerations, f"{_PATH}.{TOLERATIONS}")
    elif tolerations is not None:
        yield invalid_value(_PATH, TOLERATIONS, "tolerations are a list of objects")


def _is_toleration(told: Any) -> bool:
    """Whether the types of its fields are right."""
    if not isinstance(told, dict):
        return False
    seconds = told.get("tolerationSeconds")
    texts = (told.get(field) or "" for field in ("key", "operator", "value", "effect"))
    return all(isinstance(text, str) for text in texts) and isinstance(seconds or 0, int)


def _seccomp_causes(key: str, profile: str) -> Iterator[Cause]:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return
    if profile.startswith(LOCAL):
        yield from descending_path(profile.removeprefix(LOCAL), f"{_PATH}.{key}")
    else:
        yield invalid_value(f"{_PATH}.{key}", profile, "must be a valid seccomp profile")


def _apparmor_causes(key: str, profile: str, containers: Iterable[Any]) -> Iterator[Cause]:
    name = key.removeprefix(APPARMOR)
    if name not in containers:
        yield invalid_value(f"{_PATH}[{key}]", name, "container not found")
    is_valid = profile in ("", "runtime/default", "unconfined") or profile.startswith(LOCAL)
    if not is_valid:
        text = f"invalid AppArmor profile name: {quoted(profile)}"
        yield invalid_value(f"{_PATH}[{key}]", profile, text)


# -- annotations beside fields ---------------------------------------------------------------------


def matching_profile_causes(pod: Object, containers: list[tuple[str, Object]]) -> Iterator[Cause]:
    """Profiles of which annotation and field differ. AppArmor's of the pod is one of each container
    without its own; seccomp's is looked at with the annotation of the pod."""
    annotations = pod["metadata"].get("annotations") or {}
    spec = pod["spec"]
    context = spec.get("securityContext") or {}
    note = annotations.get(SECCOMP_OF_POD)
    yield from _mismatch("seccomp", note, context.get("seccompProfile"), "spec", _SECCOMP_WORDS)
    for path, container in containers:
        note = annotations.get(SECCOMP + (container.get("name") or ""))
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        yield from _mismatch("seccomp", note, profile, path, _SECCOMP_WORDS)
    if (spec.get("os") or {}).get("name") == "windows":
        return
    for path, container in containers:
        note = annotations.get(APPARMOR + (container.get("name") or ""))
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        profile = context.get("appArmorProfile") if own is None else own
        yield from _mismatch("apparmor", note, profile, path, _APPARMOR_WORDS)


def _mismatch(
    what: str,
    told: str | None,
    profile: Object | None,
    path: str,
    words: Mapping[str, tuple[str, ...]],
) -> Iterator[Cause]:
    if told is None or profile is None:
        return
    field = "seccompProfile" if what == "seccomp" else "appArmorProfile"
    field_of, kind = f"{path}.securityContext.{field}", profile.get("type") or ""
    local = kind == "Localhost"
    if told not in words.get(kind, (told,)) or (local and not told.startswith(LOCAL)):
        yield forbidden_field(f"{field_of}.type", f"{what} type in annotation and field must match")
    elif local and told.removeprefix(LOCAL) != profile.get("localhostProfile"):
        text = f"{what} profile in annotation and field must match"
        yield forbidden_field(f"{field_of}.localhostProfile", text)
