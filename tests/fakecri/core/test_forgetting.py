"""What the recorder keeps of a fake that runs for days: the last calls, all counts, living ids."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb

from fakecri import FakeCRI
from fakecri.recording import subjects
from fakecri.recording.subjects import NOTHING, SubjectBook, named_by


def take(book: SubjectBook, method: str, request: Message, response: Message) -> None:
    named = named_by(request)
    book.learn(method, book.subject_of(method, request, named), named, response)


def run(book: SubjectBook, identity: str, uid: str = "u1", attempt: int = 0) -> None:
    meta = pb.PodSandboxMetadata(name="pod", uid=uid, attempt=attempt)
    request = pb.RunPodSandboxRequest(config=pb.PodSandboxConfig(metadata=meta))
    take(book, "RunPodSandbox", request, pb.RunPodSandboxResponse(pod_sandbox_id=identity))


def create(book: SubjectBook, identity: str, sandbox: str) -> None:
    config = pb.ContainerConfig(metadata=pb.ContainerMetadata(name="web"))
    request = pb.CreateContainerRequest(pod_sandbox_id=sandbox, config=config)
    take(book, "CreateContainer", request, pb.CreateContainerResponse(container_id=identity))


def remove(book: SubjectBook, identity: str) -> None:
    request = pb.RemovePodSandboxRequest(pod_sandbox_id=identity)
    take(book, "RemovePodSandbox", request, pb.RemovePodSandboxResponse())


@pytest.fixture
def book(monkeypatch: pytest.MonkeyPatch) -> SubjectBook:
    monkeypatch.setattr(subjects, "_GONE_IDS_KEPT", 1)
    return SubjectBook()


def test_a_removed_id_is_known_until_others_were_removed_after_it(book: SubjectBook) -> None:
    run(book, "aa")
    run(book, "bb", uid="u2")
    remove(book, "aa")
    assert book.by_id("aa").pod == "pod"
    remove(book, "bb")
    assert book.by_id("aa") == NOTHING
    assert book.by_uid("u1").pod == ""
    assert book.by_id("bb").pod == "pod"


def test_the_containers_of_a_forgotten_sandbox_are_forgotten(book: SubjectBook) -> None:
    run(book, "aa")
    create(book, "cc", "aa")
    remove(book, "aa")
    run(book, "bb", uid="u2")
    remove(book, "bb")
    assert book.by_id("cc") == NOTHING


def test_a_pod_is_known_while_one_of_its_sandboxes_is(book: SubjectBook) -> None:
    run(book, "aa")
    run(book, "bb", attempt=1)
    remove(book, "aa")
    remove(book, "aa")
    assert book.by_id("aa") == NOTHING
    assert book.by_uid("u1").pod == "pod"


async def test_all_calls_are_counted_when_few_are_kept() -> None:
    cri = FakeCRI(call_limit=3)
    request: Message = pb.VersionRequest()
    for _ in range(5):
        await cri.call("Version", request)
    with pytest.raises(Exception, match="Prefix"):
        await cri.call("StartContainer", pb.StartContainerRequest())
    assert cri.count() == 3
    assert cri.recorder.totals == {"Version": 5, "StartContainer": 1}
