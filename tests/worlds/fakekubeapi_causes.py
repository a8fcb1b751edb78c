"""What the fake API server says is wrong with an object, for tests."""

from typing import Any

from fakekubeapi_helpers import MERGE_PATCH, patch, refused

from fakekubeapi import FakeApi, Response

STORAGE = "/apis/storage.k8s.io/v1"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of "
CSI = {"driver": "d.io", "volumeHandle": "h"}
Causes = list[tuple[str, str]]


def named(spec: Any, name: str = "a") -> dict[str, Any]:
    """An object of that spec."""
    return {"metadata": {"name": name}, "spec": spec}


def causes(answer: Response) -> Causes:
    """The field and message of each cause of a refusal."""
    refused(answer, 422, "Invalid")
    return [(one["field"], one["message"]) for one in answer.body["details"]["causes"]]


def check(answer: Response, wanted: Causes) -> None:
    """Check the causes of a refusal; of messages that are long, the beginning is enough."""
    found = causes(answer)
    shown = [
        (field, message[: len(begin)])
        for (field, message), (_, begin) in zip(found, wanted, strict=False)
    ]
    assert (shown, len(found)) == (wanted, len(wanted)), found


async def change(api: FakeApi, path: str, body: dict[str, Any]) -> Response:
    """The answer to a merge patch."""
    return await patch(api, path, body, MERGE_PATCH)
