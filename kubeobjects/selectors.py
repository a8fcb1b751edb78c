"""Labels, and selectors of labels, of which API objects have many: what is wrong with them. Pure.

Upstream: apimachinery pkg/apis/meta/v1/validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubeobjects.causes import Cause, Word, forbidden_field, invalid_value, required
from kubeobjects.names import label_value_problems, qualified_name_problems

WITH_VALUES: Final = ("In", "NotIn")
WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")
UNKNOWN_OPERATOR: Final = "not a valid selector operator"


def label_causes(labels: Mapping[str, str] | None, path: str) -> Iterator[Cause]:
    """What is wrong with labels."""
    for key, value in (labels or {}).items():
        yield from label_key_causes(key, path)
        yield from label_value_causes(value or "", path)


def label_key_causes(key: str, path: str) -> Iterator[Cause]:
    """What is wrong with the key of a label."""
    for problem in qualified_name_problems(key):
        yield invalid_value(path, key, problem)


def label_value_causes(value: str, path: str) -> Iterator[Cause]:
    """What is wrong with the value of a label."""
    for problem in label_value_problems(value):
        yield invalid_value(path, value, problem)


def selector_causes(selector: Mapping[str, Any] | None, path: str) -> Iterator[Cause]:
    """What is wrong with a selector of labels, if there is one."""
    if selector is None:
        return
    yield from label_causes(selector.get("matchLabels"), f"{path}.matchLabels")
    for i, expression in enumerate(selector.get("matchExpressions") or ()):
        expression_path = f"{path}.matchExpressions[{i}]"
        operator = expression.get("operator") or ""
        if operator in (*WITH_VALUES, *WITHOUT_VALUES):
            yield from operand_causes(expression, expression_path)
        else:
            yield invalid_value(f"{expression_path}.operator", Word(operator), UNKNOWN_OPERATOR)
        yield from label_key_causes(expression.get("key") or "", f"{expression_path}.key")
        yield from value_causes(expression, expression_path)


def shown_selector(selector: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A selector with its fields in the API's order, as messages show one."""
    if selector is None:
        return None
    fields: dict[str, Any] = {}
    if selector.get("matchLabels"):
        fields["matchLabels"] = dict(sorted(selector["matchLabels"].items()))
    if selector.get("matchExpressions"):
        fields["matchExpressions"] = [
            {"key": expression.get("key") or "", "operator": expression.get("operator") or ""}
            | ({"values": expression["values"]} if expression.get("values") else {})
            for expression in selector["matchExpressions"]
        ]
    return fields


def operand_causes(expression: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Whether the expression, whose operator is one of those above, has values just if it needs
    some."""
    values, field = expression.get("values"), f"{path}.values"
    if expression["operator"] in WITHOUT_VALUES:
        if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden_field(field, text)
    elif not values:
        yield required(field, "must be specified when `operator` is 'In' or 'NotIn'")


def value_causes(expression: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with the values of an expression."""
    for i, value in enumerate(expression.get("values") or ()):
        yield from label_value_causes(value or "", f"{path}.values[{i}]")
