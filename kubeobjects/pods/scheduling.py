"""What is wrong with what a pod tells the scheduler: affinity, spread, tolerations, gates. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from kubeobjects.causes import (
    Cause,
    Word,
    duplicate,
    forbidden_field,
    invalid_texts,
    invalid_value,
    required,
    unsupported_value,
)
from kubeobjects.names import (
    label_problems,
    label_value_problems,
    qualified_name_problems,
    subdomain_problems,
)
from kubeobjects.pods.common.checks import Object, optional_word
from kubeobjects.selectors import (
    UNKNOWN_OPERATOR,
    WITH_VALUES,
    WITHOUT_VALUES,
    label_key_causes,
    operand_causes,
    selector_causes,
    value_causes,
)

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSIONS: Final = ("Honor", "Ignore")
_POSITIVE: Final = "must be greater than zero"
_EXISTS_RULE: Final = (
    'operator must be Exists when `key` is empty, which means "match all values and all keys"'
)


# -- affinity to nodes -----------------------------------------------------------------------------


def affinity_causes(affinity: Object) -> Iterator[Cause]:
    """What is wrong with the affinity of a pod."""
    path = "spec.affinity"
    yield from _node_affinity_causes(affinity.get("nodeAffinity") or {}, f"{path}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for i, term in enumerate(terms.get(_REQUIRED) or ()):
            yield from _term_causes(term, f"{path}.{kind}.{_REQUIRED}[{i}]")
        for i, weighted in enumerate(terms.get(_PREFERRED) or ()):
            term_path = f"{path}.{kind}.{_PREFERRED}[{i}]"
            yield from _weight_causes(weighted, term_path)
            yield from _term_causes(
                weighted.get("podAffinityTerm") or {}, f"{term_path}.podAffinityTerm"
            )


def _weight_causes(weighted: Object, path: str) -> Iterator[Cause]:
    weight = weighted.get("weight") or 0
    if not 0 < weight <= 100:
        yield invalid_value(f"{path}.weight", weight, "must be in the range 1-100")


def _node_affinity_causes(affinity: Object, path: str) -> Iterator[Cause]:
    needed = affinity.get(_REQUIRED)
    if needed is not None:
        field = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        if not needed.get("nodeSelectorTerms"):
            yield required(field, "must have at least one node selector term")
        for i, term in enumerate(needed.get("nodeSelectorTerms") or ()):
            yield from _node_term_causes(term, f"{field}[{i}]", values_too=True)
    for i, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        term_path = f"{path}.{_PREFERRED}[{i}]"
        yield from _weight_causes(weighted, term_path)
        preference = weighted.get("preference") or {}
        yield from _node_term_causes(preference, f"{term_path}.preference", values_too=False)


def _node_term_causes(term: Object, path: str, *, values_too: bool) -> Iterator[Cause]:
    """Expressions about labels, then about fields of nodes. Values of labels have to be ones only
    where the pod cannot do without (`values_too`)."""
    for i, expression in enumerate(term.get("matchExpressions") or ()):
        expression_path = f"{path}.matchExpressions[{i}]"
        yield from _node_operator_causes(expression, expression_path)
        yield from label_key_causes(expression.get("key") or "", f"{expression_path}.key")
        if values_too:
            yield from value_causes(expression, expression_path)
    for i, expression in enumerate(term.get("matchFields") or ()):
        yield from _node_field_causes(expression, f"{path}.matchFields[{i}]")


def _node_operator_causes(expression: Object, path: str) -> Iterator[Cause]:
    operator = expression.get("operator") or ""
    if operator in (*WITH_VALUES, *WITHOUT_VALUES):
        yield from operand_causes(expression, path)
    elif operator not in ("Gt", "Lt"):
        yield invalid_value(f"{path}.operator", Word(operator), UNKNOWN_OPERATOR)
    elif len(expression.get("values") or ()) != 1:
        text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        yield required(f"{path}.values", text)


def _node_field_causes(expression: Object, path: str) -> Iterator[Cause]:
    """An expression about the name of the node, the only field that it may be about."""
    operator, key = expression.get("operator") or "", expression.get("key") or ""
    values = expression.get("values") or ()
    if operator not in WITH_VALUES:
        yield invalid_value(f"{path}.operator", Word(operator), UNKNOWN_OPERATOR)
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", text)
    if key != "metadata.name":
        yield invalid_value(f"{path}.key", key, "not a valid field selector key")
        return
    for i, value in enumerate(values):
        yield from invalid_texts(f"{path}.values[{i}]", value, subdomain_problems(value))


# -- affinity to pods, spread ----------------------------------------------------------------------


def _term_causes(term: Object, path: str) -> Iterator[Cause]:
    """Other pods, and the part of the cluster in which they are near."""
    for field in ("labelSelector", "namespaceSelector"):
        yield from selector_causes(term.get(field), f"{path}.{field}")
    for name in term.get("namespaces") or ():
        yield from invalid_texts(f"{path}.namespace", name, label_problems(name))
    yield from _key_causes(term, path)
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from label_key_causes(key, f"{path}.topologyKey")


def _key_causes(term: Object, path: str) -> Iterator[Cause]:
    """The labels in which the other pods have to agree with this one, or differ from it. An API
    server adds them to the selector; what was in it before may not be about them."""
    selector = term.get("labelSelector")
    keys = {field: term.get(field) or () for field in ("matchLabelKeys", "mismatchLabelKeys")}
    for field, listed in keys.items():
        if listed and selector is None:
            text = "must not be specified when labelSelector is not set"
            yield forbidden_field(f"{path}.{field}", text)
        else:
            for i, key in enumerate(listed):
                yield from label_key_causes(key, f"{path}.{field}[{i}]")
    places = {key: i for i, key in enumerate(keys["matchLabelKeys"])}
    selected = set((selector or {}).get("matchLabels") or {})
    for expression in (selector or {}).get("matchExpressions") or ():
        key = expression.get("key") or ""
        if key in places and key in selected:
            text = "exists in both matchLabelKeys and labelSelector"
            yield invalid_value(f"{path}[{places[key]}]", key, text)
        selected.add(key)
    mismatch_keys = set(keys["mismatchLabelKeys"])
    for i, key in enumerate(keys["matchLabelKeys"]):
        if key in mismatch_keys:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid_value(f"{path}.matchLabelKeys[{i}]", key, text)


def spread_causes(constraints: Sequence[Object]) -> Iterator[Cause]:
    """What is wrong with how pods are to be spread. Of two constraints of one kind, the first is
    one too many."""
    kinds = [(c.get("topologyKey") or "", c.get("whenUnsatisfiable") or "") for c in constraints]
    later = Counter(kinds)
    for i, (constraint, kind) in enumerate(zip(constraints, kinds, strict=True)):
        path = f"spec.topologySpreadConstraints[{i}]"
        key, action = kind
        skew: int = constraint.get("maxSkew") or 0
        if skew <= 0:
            yield invalid_value(f"{path}.maxSkew", skew, _POSITIVE)
        if not key:
            yield required(f"{path}.topologyKey", "can not be empty")
        if action not in _UNSATISFIABLE:
            yield unsupported_value(f"{path}.whenUnsatisfiable", action, _UNSATISFIABLE)
        later[kind] -= 1
        if later[kind]:
            yield duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        yield from _domain_causes(constraint.get("minDomains"), action, f"{path}.minDomains")
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            yield from optional_word(constraint.get(field), f"{path}.{field}", _INCLUSIONS)
        yield from _key_causes({**constraint, "mismatchLabelKeys": None}, path)
        yield from selector_causes(constraint.get("labelSelector"), f"{path}.labelSelector")


def _domain_causes(least: int | None, action: str, path: str) -> Iterator[Cause]:
    if least is None:
        return
    if least <= 0:
        yield invalid_value(path, least, _POSITIVE)
    if action != "DoNotSchedule":
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid_value(path, least, text)


# -- tolerations, gates ----------------------------------------------------------------------------


def toleration_causes(tolerations: Iterable[Object], path: str) -> Iterator[Cause]:
    """What is wrong with tolerations at `path`."""
    for i, toleration in enumerate(tolerations):
        yield from _toleration_causes(toleration, f"{path}[{i}]")


def _toleration_causes(toleration: Object, path: str) -> Iterator[Cause]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    effect = toleration.get("effect") or ""
    if key:
        yield from invalid_texts(f"{path}.key", key, qualified_name_problems(key))
    elif operator != "Exists":
        yield invalid_value(f"{path}.operator", Word(operator), _EXISTS_RULE)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid_value(f"{path}.effect", Word(effect), text)
    yield from _operator_causes(operator, toleration.get("value") or "", path)
    if effect and effect not in _EFFECTS:
        yield unsupported_value(f"{path}.effect", effect, _EFFECTS)


def _operator_causes(operator: str, value: str, path: str) -> Iterator[Cause]:
    """Operators that compare numbers are behind a gate that is off."""
    field = f"{path}.operator"
    if operator in ("", "Equal"):
        problems = label_value_problems(value)
        if problems:
            yield invalid_value(field, value, ";".join(problems))
    elif operator == "Exists":
        if value:
            yield invalid_value(field, value, "value must be empty when `operator` is 'Exists'")
    else:
        operators: tuple[Any, ...] = ("Equal", "Exists")
        operators += ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
        yield unsupported_value(field, operator, operators)


def gate_causes(gates: Iterable[Object]) -> Iterator[Cause]:
    """What is wrong with the gates that keep the pod from being scheduled."""
    names: set[str] = set()
    for i, gate in enumerate(gates):
        path, name = f"spec.schedulingGates[{i}]", gate.get("name") or ""
        yield from invalid_texts(path, name, qualified_name_problems(name))
        if name in names:
            yield duplicate(path, name)
        names.add(name)
