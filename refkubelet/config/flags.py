"""Flags that set fields of the configuration, over what its files say (CFG-001, CFG-010). Pure.

A flag's text is read by the kind of its field, as the kubelet reads it: lists and mappings grow
with each use of the flag and replace what the files have, but for featureGates, where the files'
gates stay that no flag names. An explicit zero is no default here. Upstream:
cmd/kubelet/app/options/options.go: AddKubeletConfigFlags, server.go: kubeletConfigFlagPrecedence;
staging/src/k8s.io/component-base/cli/flag; pkg/util/flag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec import Struct, inspect
from msgspec.structs import replace

from kubeobjects.golang.strconv import parse_bool
from kubeobjects.strict.reader import bare, extra_of, not_null, noun, type_of
from refkubelet.config.schema.kubelet_config import KubeletConfiguration, MemoryReservation, Taint

S = TypeVar("S", bound=Struct)
FEATURE_GATES: Final = "featureGates"
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Given(Struct, frozen=True):
    """A flag as it was given: its name without dashes, its field, as `authorization.mode`, and its
    text."""

    flag: str
    field: str
    text: str


def with_flags(
    config: KubeletConfiguration, given: Sequence[Given]
) -> tuple[KubeletConfiguration, list[str]]:
    """`config` with the flags over it, and what is wrong with their texts, `--<flag> <text>: ...`.

    Flags that are wrong leave their fields as they are.
    """
    problems: list[str] = []
    texts: dict[str, list[str]] = {}
    for one in given:
        try:
            _parsed(_field(one.field), [one.text])
        except ValueError as error:
            problems.append(f"--{one.flag} {one.text}: {error}")
        else:
            texts.setdefault(one.field, []).append(one.text)
    for field, said in texts.items():
        value = _parsed(_field(field), said)
        if field == FEATURE_GATES:
            value = MappingProxyType({**config.feature_gates, **value})
        config = _set(config, field.split("."), value)
    return config, problems


def _field(path: str) -> inspect.Field:
    shape = type_of(KubeletConfiguration)
    *parts, last = path.split(".")
    for name in parts:
        part = _field_of(shape, name).type
        assert isinstance(part, inspect.StructType)
        shape = part
    return _field_of(shape, last)


def _field_of(shape: inspect.StructType, name: str) -> inspect.Field:
    return next(field for field in shape.fields if field.encode_name == name)


def _set(value: S, path: list[str], new: Any) -> S:
    name = _field_of(type_of(type(value)), path[0]).name
    if path[1:]:
        new = _set(getattr(value, name), path[1:], new)
    return replace(value, **{name: new})


def _parsed(field: inspect.Field, texts: list[str]) -> Any:
    """The value of all uses of a flag. Raises ValueError, with what was wanted."""
    if own := _BY_FIELD.get(field.encode_name):
        return own(texts)
    kind = not_null(field.type)
    match bare(kind):
        case inspect.BoolType():
            return _last(parse_bool, noun(kind), texts)
        case inspect.IntType() as integer:
            return _last(partial(_integer, integer), noun(kind), texts)
        case inspect.VarTupleType():
            return _items(texts)
        case inspect.DictType(value_type=inspect.BoolType()):
            return _bool_map(texts)
        case inspect.DictType():
            return _string_map(texts)
    return _last(extra_of(kind).get("parse", str), noun(kind), texts)


def _last(parse: Callable[[str], Any], wanted: str, texts: list[str]) -> Any:
    try:
        return [parse(text) for text in texts][-1]
    except ValueError:
        raise ValueError(f"wanted {wanted}") from None


def _integer(kind: inspect.IntType, text: str) -> int:
    number = int(text, 0)  # as Go's base 0: 0x10 is 16
    if not (kind.ge or 0) <= number <= (kind.le or 0):
        raise ValueError(text)
    return number


def _items(texts: list[str]) -> tuple[str, ...]:
    return tuple(item for text in texts if text for item in text.split(","))


def _pairs(texts: list[str], separator: str = "=") -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in filter(None, (part for text in texts for part in text.split(","))):
        key, value = _pair(pair, separator)
        found[key] = value
    return found


def _pair(text: str, separator: str) -> tuple[str, str]:
    key, found, value = text.partition(separator)
    if not found:
        raise ValueError(f"malformed pair {text!r}, wanted string{separator}string")
    return key.strip(), value.strip()


def _string_map(texts: list[str]) -> Mapping[str, str]:
    return MappingProxyType(_pairs(texts))


def _thresholds(texts: list[str]) -> Mapping[str, str]:
    return MappingProxyType(_pairs(texts, "<"))


def _options(texts: list[str]) -> Mapping[str, str]:
    """One pair a flag: commas belong to its value."""
    return MappingProxyType(dict(_pair(text, "=") for text in texts))


def _bool_map(texts: list[str]) -> Mapping[str, bool]:
    found: dict[str, bool] = {}
    for key, text in _pairs(texts).items():
        try:
            found[key] = parse_bool(text)
        except ValueError:
            raise ValueError(f"{key}={text}: wanted true or false") from None
    return MappingProxyType(found)


def _headers(texts: list[str]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for pair in filter(None, (part for text in texts for part in text.split(","))):
        name, value = _pair(pair, ":")
        found[name] = (*found.get(name, ()), value)
    return MappingProxyType(found)


def _taints(texts: list[str]) -> tuple[Taint, ...]:
    """Those of the last use: `key=value:effect`, `key:effect`; "" is none."""
    found = []
    for text in filter(None, texts[-1].split(",")):
        key, colon, effect = text.rpartition(":")
        if not colon or not key or effect not in EFFECTS:
            raise ValueError(
                f"taint {text!r}: wanted key=value:effect, effect one of {', '.join(EFFECTS)}"
            )
        name, _, value = key.partition("=")
        found.append(Taint(key=name, value=value, effect=effect))
    return tuple(found)


def _reserved_memory(texts: list[str]) -> tuple[MemoryReservation, ...]:
    """`0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=2Gi`."""
    found = []
    for text in filter(None, (part for one in texts for part in one.split(";"))):
        node, colon, limits = text.partition(":")
        if not colon or not node.isascii() or not node.isdigit():
            raise ValueError(
                f"{text!r}: wanted numaNodeID:type=quantity[,type=quantity...], such as "
                "0:memory=1Gi"
            )
        found.append(
            MemoryReservation(numa_node=int(node), limits=MappingProxyType(_pairs([limits])))
        )
    return tuple(found)


_BY_FIELD: Final[Mapping[str, Callable[[list[str]], Any]]] = {
    "evictionHard": _thresholds,
    "evictionSoft": _thresholds,
    "cpuManagerPolicyOptions": _options,
    "staticPodURLHeader": _headers,
    "registerWithTaints": _taints,
    "reservedMemory": _reserved_memory,
}
"""Fields whose flags are not read by their types."""
