"""What a scenario says of answers is merged into them."""

import pytest
from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.scenarios.shape.answers import change_of, mistakes_in


def images() -> cri.ListImagesResponse:
    rows = [cri.Image(id="1", repo_tags=["a:1"]), cri.Image(id="2", repo_tags=["b:1", "b:2"])]
    return cri.ListImagesResponse(images=rows)


def test_a_mapping_goes_into_each_item_of_a_list() -> None:
    answer = images()
    change_of({"images": {"pinned": True}}, {})(answer)
    assert [image.pinned for image in answer.images] == [True, True]


def test_where_chooses_items() -> None:
    answer = images()
    change_of({"images": {"pinned": True}}, {"repo_tags": ["*:2"]})(answer)
    assert [image.pinned for image in answer.images] == [False, True]


def test_a_list_takes_the_place_of_the_one_there() -> None:
    answer = images()
    change_of({"images": [{"id": "3"}]}, {})(answer)
    assert [image.id for image in answer.images] == ["3"]


def test_messages_are_merged_and_null_takes_a_field_away() -> None:
    answer = cri.PodSandboxStatusResponse()
    answer.status.id = "x"
    answer.status.network.ip = "10.0.0.1"
    answer.info["a"] = "1"
    given = {"status": {"network": None, "state": "SANDBOX_NOTREADY"}, "info": {"b": "2"}}
    change_of(given, {})(answer)
    assert (answer.status.id, answer.status.HasField("network")) == ("x", False)
    assert answer.status.state == cri.SANDBOX_NOTREADY
    assert dict(answer.info) == {"b": "2"}  # a map is one value


def test_an_empty_message_is_one_that_is_there() -> None:
    answer = cri.PodSandboxStatusResponse()
    change_of({"status": {"network": {}}}, {})(answer)
    assert answer.status.HasField("network")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"image": {}}, "no field 'image' in ListImagesResponse; did you mean images?"),
        ({"images": {"pined": True}}, "no field 'pined' in Image; did you mean pinned?"),
        ({"images": {"pinned": "perhaps"}}, "pinned: "),
        ({"images": {"repo_tags": {"a": 1}}}, "repo_tags: "),
    ],
)
def test_what_an_answer_cannot_have_is_told(given: dict[str, object], said: str) -> None:
    (mistake,) = mistakes_in(cri.ListImagesResponse(), given)
    assert mistake.startswith(said)
