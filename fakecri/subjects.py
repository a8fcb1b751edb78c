"""Which pod, container and image a CRI call is about.

Most requests carry nothing but an id. `SubjectBook` remembers, from the calls that passed, which
names belong to an id; so the same rules and queries work in front of the fake and of a real
runtime. What must never happen here: a call is changed, or an id is guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from google.protobuf.message import Message

from fakecri.matching import Subject

_POD_UID: Final = "io.kubernetes.pod.uid"
_POD_NAME: Final = "io.kubernetes.pod.name"
_POD_NAMESPACE: Final = "io.kubernetes.pod.namespace"


NOTHING: Final = Subject()


class SubjectBook:
    """Remembers whose id is whose. `from_lists`: also learns from List and Status answers, for a
    runtime that had objects before we looked."""

    def __init__(self, *, from_lists: bool = False) -> None:
        self._from_lists = from_lists
        self._subjects: dict[str, Subject] = {}
        self._pods: dict[str, Subject] = {}

    def subject_of(self, method: str, request: Message) -> Subject:
        """What `request` is about, as far as the passed calls tell."""
        read = _READERS.get(method)
        if read is not None:
            return read(request, self)
        for field in ("container_id", "pod_sandbox_id"):
            identity = getattr(request, field, "")
            if identity:
                return self.by_id(identity)
        return self._by_filter(request)

    def by_id(self, identity: str) -> Subject:
        """The subject of an id or an unambiguous prefix of one."""
        known = self._subjects.get(identity)
        if known is not None or not identity:
            return known or NOTHING
        found = [s for key, s in self._subjects.items() if key.startswith(identity)]
        return found[0] if len(found) == 1 else NOTHING

    def learn(self, method: str, request: Any, response: Any) -> None:
        """Take in what an answered call says about ids."""
        if method == "RunPodSandbox":
            self._add(response.pod_sandbox_id, _of_pod(request.config.metadata))
        elif method == "CreateContainer":
            self._add(response.container_id, _of_create(request, self))
        elif self._from_lists:
            self._learn_from_lists(method, response)

    def _learn_from_lists(self, method: str, response: Any) -> None:
        if method == "ListPodSandbox":
            for item in response.items:
                self._add(item.id, _of_pod(item.metadata))
        elif method == "PodSandboxStatus":
            self._add(response.status.id, _of_pod(response.status.metadata))
        elif method == "ListContainers":
            for item in response.containers:
                if item.id not in self._subjects:
                    self._add(item.id, _of_container(item))
        elif method == "ContainerStatus" and response.status.id not in self._subjects:
            self._add(response.status.id, _of_container(response.status))

    def _add(self, identity: str, subject: Subject) -> None:
        self._subjects[identity] = subject
        if subject.uid and not subject.container:
            self._pods[subject.uid] = replace(subject, attempt=None)

    def _by_filter(self, request: Any) -> Subject:
        """Lists: the pod of a label selector or of an id filter."""
        if not _has_filter(request):
            return NOTHING
        chosen = request.filter
        for field in ("pod_sandbox_id", "id"):
            if getattr(chosen, field, ""):
                return self.by_id(getattr(chosen, field))
        uid = dict(getattr(chosen, "label_selector", {})).get(_POD_UID, "")
        return self._pods.get(uid, Subject(uid=uid)) if uid else NOTHING


def _has_filter(request: Message) -> bool:
    return "filter" in request.DESCRIPTOR.fields_by_name and request.HasField("filter")


def _of_pod(metadata: Any) -> Subject:
    return Subject(
        pod=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        attempt=metadata.attempt,
    )


def _of_container(item: Any) -> Subject:
    labels = item.labels
    return Subject(
        pod=labels.get(_POD_NAME, ""),
        namespace=labels.get(_POD_NAMESPACE, ""),
        uid=labels.get(_POD_UID, ""),
        container=item.metadata.name,
        attempt=item.metadata.attempt,
        image=item.image.image,
    )


def _of_create(request: Any, book: SubjectBook) -> Subject:
    pod = _of_pod(request.sandbox_config.metadata)
    if not pod.pod:
        pod = book.by_id(request.pod_sandbox_id)
    return replace(
        pod,
        container=request.config.metadata.name,
        attempt=request.config.metadata.attempt,
        image=request.config.image.user_specified_image or request.config.image.image,
    )


def _of_run(request: Any, _: SubjectBook) -> Subject:
    return _of_pod(request.config.metadata)


def _of_pull(request: Any, _: SubjectBook) -> Subject:
    pod = _of_pod(request.sandbox_config.metadata)
    return replace(
        pod, attempt=None, image=request.image.user_specified_image or request.image.image
    )


def _of_image(request: Any, _: SubjectBook) -> Subject:
    return Subject(image=request.image.image)


_READERS: Final[dict[str, Callable[[Any, SubjectBook], Subject]]] = {
    "RunPodSandbox": _of_run,
    "CreateContainer": _of_create,
    "PullImage": _of_pull,
    "ImageStatus": _of_image,
    "RemoveImage": _of_image,
}
