"""Trust anchors as PEM blocks, and the labels that a selector selects (NODE-213.1)."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import pytest
from lightkube.models.meta_v1 import LabelSelector, LabelSelectorRequirement

from refkubelet.object_manager.anchors import anchors_of, selector_problem, selects

BEGIN, END = "-----BEGIN CERTIFICATE-----\n", "-----END CERTIFICATE-----\n"


def block(data: bytes) -> str:
    return f"{BEGIN}{base64.b64encode(data).decode()}\n{END}"


def unshuffled(*bundles: str) -> str:
    return anchors_of(bundles, lambda blocks: None).decode()


def test_each_certificate_is_there_once_in_lines_of_64_NODE_213() -> None:
    long = bytes(range(100))
    text = base64.b64encode(long).decode()
    assert len(text) == 136
    wrapped = f"{BEGIN}{text[:64]}\n{text[64:128]}\n{text[128:]}\n{END}"
    assert unshuffled(block(b"b") + "note\n" + block(long), block(b"a"), block(b"b")) == (
        wrapped + block(b"a") + block(b"b")
    )
    assert unshuffled(wrapped) == wrapped
    assert unshuffled(block(b"x" * 48)) == block(b"x" * 48)  # one whole line
    assert unshuffled() == unshuffled("", "no block") == ""


def test_what_is_no_block_is_left_out_NODE_213() -> None:
    cut = block(b"cut").replace(END, "")
    of_two_kinds = block(b"kinds").replace("END CERTIFICATE", "END KEY")
    odd = f"{BEGIN}A\n{END}"  # no base64
    assert unshuffled(odd + block(b"good") + of_two_kinds) == block(b"good")
    assert unshuffled(cut) == ""
    assert unshuffled(block(b"good").replace("\n", "\r\n")) == block(b"good")


def test_the_order_is_the_shuffles_NODE_213() -> None:
    assert (
        anchors_of([block(b"a"), block(b"b")], list.reverse) == (block(b"b") + block(b"a")).encode()
    )


def requirement(operator: str, *values: str) -> LabelSelector:
    one = LabelSelectorRequirement(key="a", operator=operator, values=list(values) or None)
    return LabelSelector(matchExpressions=[one])


@pytest.mark.parametrize(
    ("selector", "labels", "wanted"),
    [
        (requirement("In", "1"), {"a": "1"}, True),
        (requirement("In", "1"), {"b": "1"}, False),
        (requirement("In"), {"a": "1"}, False),
        (requirement("NotIn", "1"), {}, True),
        (requirement("NotIn"), {"a": "1"}, True),
        (requirement("NotIn", "1"), {"a": "1"}, False),
        (requirement("Exists"), {"b": ""}, False),
        (requirement("Exists"), {"a": ""}, True),
        (requirement("DoesNotExist"), {"b": ""}, True),
        (requirement("DoesNotExist"), {"a": ""}, False),
        (LabelSelector(matchLabels={"a": "1", "b": "2"}), {"a": "1"}, False),
        (LabelSelector(matchLabels={"a": "1", "b": "2"}), {"a": "1", "b": "2", "c": "3"}, True),
        (LabelSelector(matchLabels={"a": "1"}), {}, False),
    ],
)
def test_selectors_and_labels_NODE_213(
    selector: LabelSelector, labels: Mapping[str, str], wanted: bool
) -> None:
    assert selects(selector, labels) is wanted


def test_labels_and_expressions_must_both_match_NODE_213() -> None:
    exists = LabelSelectorRequirement(key="b", operator="Exists")
    both = LabelSelector(matchLabels={"a": "1"}, matchExpressions=[exists])
    assert selects(both, {"a": "1", "b": ""})
    assert not selects(both, {"a": "1"})
    assert not selects(both, {"a": "2", "b": ""})


def test_operators_are_four_NODE_213() -> None:
    assert selector_problem(None) is None
    assert selector_problem(LabelSelector()) is None
    for name in ("In", "NotIn", "Exists", "DoesNotExist"):
        assert selector_problem(requirement(name)) is None
    good = LabelSelectorRequirement(key="a", operator="In", values=["1"])
    bad = LabelSelectorRequirement(key="a", operator="in", values=["1"])
    assert selector_problem(LabelSelector(matchExpressions=[good, bad])) == (
        '"in" is not a valid label selector operator'
    )
