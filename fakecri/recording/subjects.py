"""Which pod, container and image a CRI call is about.

Most requests carry nothing but an id. `SubjectBook` remembers, from the calls that passed, which
names belong to an id; so the same rules and queries work in front of the fake and of a real
runtime. What must never happen here: a call is changed, or an id is guessed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from google.protobuf.message import Message

from fakecri.behaviors.matching import Subject
from fakecri.core.lookups.prefix_table import PrefixTable

_POD_UID: Final = "io.kubernetes.pod.uid"
_POD_NAME: Final = "io.kubernetes.pod.name"
_POD_NAMESPACE: Final = "io.kubernetes.pod.namespace"


NOTHING: Final = Subject()
ABOUT_ALL: Final = Subject()
"""The subject of a list request without a filter; equal to `NOTHING`, but never learnt later."""
NAMING_CALLS: Final = frozenset(("RunPodSandbox", "CreateContainer"))
"""The calls that make ids, so that each of their answers says something new."""
_REMOVALS: Final = frozenset(("RemoveContainer", "RemovePodSandbox"))
_LISTS: Final = frozenset(
    ("ListPodSandbox", "PodSandboxStatus", "ListContainers", "ContainerStatus")
)
_GONE_IDS_KEPT: Final = 1_000


class SubjectBook:
    """Remembers which pod, container and image an id belongs to.

    `from_lists`: also learns from List and Status answers, for a runtime that had objects before
    the recording began.
    """

    def __init__(self, *, from_lists: bool = False) -> None:
        self._from_lists = from_lists
        self._subjects: PrefixTable[Subject] = PrefixTable()
        self._pods: dict[str, Subject] = {}
        self._sandboxes_of_pod: Counter[str] = Counter()
        self._containers_of: dict[str, list[str]] = {}  # sandbox -> its containers
        self._home: dict[str, list[str]] = {}  # container -> the list it is in
        self._gone: deque[str] = deque()

    def subject_of(self, method: str, request: Message, named: str) -> Subject:
        """What `request` is about, as far as recorded calls tell. `named`: the id of the object
        that it names (`named_by`)."""
        read = _READERS.get(method)
        return self.by_id(named) if read is None else read(request, self)

    def by_id(self, identity: str) -> Subject:
        """What an id, or an unambiguous prefix of one, belongs to."""
        subject = self._subjects.get(identity)
        if subject is not None or not identity:
            return subject or NOTHING
        ids = self._subjects.at_most_two(identity)
        return self._subjects[ids[0]] if len(ids) == 1 else NOTHING

    def by_uid(self, uid: str) -> Subject:
        """The pod with that UID; only its UID where no more is known."""
        return self._pods.get(uid) or Subject(uid=uid) if uid else NOTHING

    def learn(self, method: str, about: Subject, named: str, response: Any) -> None:
        """Take in what an answered call says about ids. `about`: its subject; `named`: the id of
        the object that its request names."""
        if method == "RunPodSandbox":
            self._add(response.pod_sandbox_id, about)
        elif method == "CreateContainer":
            if not about.pod:  # it may have become known while the call went on
                about = _of_container_in(self.by_id(named), about)
            self._add(response.container_id, about)
            home = self._containers_of.setdefault(named, [])
            home.append(response.container_id)
            self._home[response.container_id] = home
        elif method in _REMOVALS:
            self._note_gone(named)
        elif self._from_lists and method in _LISTS:
            self._learn_from_lists(method, response)

    def _learn_from_lists(self, method: str, response: Any) -> None:
        if method == "ListPodSandbox":
            for item in response.items:
                if item.id not in self._subjects:
                    self._add(item.id, _of_pod(item.metadata))
        elif method == "ListContainers":
            for item in response.containers:
                if item.id not in self._subjects:
                    self._add(item.id, _of_container(item))
        elif response.status.id not in self._subjects:
            status = response.status
            of_pod = method == "PodSandboxStatus"
            self._add(status.id, _of_pod(status.metadata) if of_pod else _of_container(status))

    def _note_gone(self, identity: str) -> None:
        """Note that an object was removed. Calls about it may still come, so it is forgotten much
        later."""
        if identity in self._subjects:
            self._gone.append(identity)
        elif identity:
            self._gone += self._subjects.at_most_two(identity)[:1]
        if len(self._gone) > _GONE_IDS_KEPT:
            self._forget(self._gone.popleft())

    def _forget(self, identity: str) -> None:
        subject = self._subjects.get(identity)
        if subject is None:
            return
        del self._subjects[identity]
        if identity in self._home:
            self._home.pop(identity).remove(identity)
        for container in list(self._containers_of.pop(identity, ())):  # removed with the sandbox
            self._forget(container)
        if not subject.container and subject.uid:
            self._sandboxes_of_pod[subject.uid] -= 1
            if self._sandboxes_of_pod[subject.uid] <= 0:
                del self._sandboxes_of_pod[subject.uid], self._pods[subject.uid]

    def _add(self, identity: str, subject: Subject) -> None:
        if subject.uid and not subject.container:
            self._pods[subject.uid] = Subject(subject.pod, subject.namespace, subject.uid)
            self._sandboxes_of_pod[subject.uid] += identity not in self._subjects
        self._subjects[identity] = subject


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
    config = request.config
    metadata, image = config.metadata, config.image
    return Subject(
        pod=pod.pod,
        namespace=pod.namespace,
        uid=pod.uid,
        container=metadata.name,
        image=image.user_specified_image or image.image,
        attempt=metadata.attempt,
    )


def _of_container_in(pod: Subject, container: Subject) -> Subject:
    return pod._replace(
        container=container.container, image=container.image, attempt=container.attempt
    )


def _of_run(request: Any, _: SubjectBook) -> Subject:
    return _of_pod(request.config.metadata)


def _of_pull(request: Any, _: SubjectBook) -> Subject:
    pod = _of_pod(request.sandbox_config.metadata)
    return pod._replace(
        attempt=None, image=request.image.user_specified_image or request.image.image
    )


def _of_image(request: Any, _: SubjectBook) -> Subject:
    return Subject(image=request.image.image)


def _of_sandboxes(request: Any, book: SubjectBook) -> Subject:
    """The subject of a list of sandboxes: that of its id filter, or the pod of its label
    selector."""
    chosen = request.filter
    return book.by_id(chosen.id) if chosen.id else _selected(chosen, book)


def _of_containers(request: Any, book: SubjectBook) -> Subject:
    chosen = request.filter
    identity = chosen.pod_sandbox_id or chosen.id
    return book.by_id(identity) if identity else _selected(chosen, book)


def _selected(chosen: Any, book: SubjectBook) -> Subject:
    uid: str = chosen.label_selector.get(_POD_UID, "")
    return book.by_uid(uid) if uid else ABOUT_ALL


def _of_nothing(request: Any, _: SubjectBook) -> Subject:
    return ABOUT_ALL


def named_by(request: Message) -> str:
    """The id of the object that a request names as what it is about; "": none."""
    kind: Any = type(request)  # a class of messages is taken for no key of a cache
    field: str = _id_field(kind)
    return getattr(request, field) if field else ""


@cache
def _id_field(kind: Any) -> str:
    """The field of a request with that id; "": it has none. No request has both."""
    fields = kind.DESCRIPTOR.fields_by_name
    return next((name for name in ("container_id", "pod_sandbox_id") if name in fields), "")


_READERS: Final[dict[str, Callable[[Any, SubjectBook], Subject]]] = {
    "RunPodSandbox": _of_run,
    "CreateContainer": _of_create,
    "PullImage": _of_pull,
    "ImageStatus": _of_image,
    "RemoveImage": _of_image,
    "ListPodSandbox": _of_sandboxes,
    "ListPodSandboxStats": _of_sandboxes,
    "ListContainers": _of_containers,
    "ListContainerStats": _of_containers,
    "Status": _of_nothing,
    "ImageFsInfo": _of_nothing,
}
