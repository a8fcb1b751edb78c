"""The three patch types: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch.

Pure functions: a document and a patch give a new document; neither argument is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fakekubeapi.bodies import (
    JSON_PATCH,
    MERGE_PATCH,
    PATCH_TYPES,
    copy_json,
    encode,
    require_shallow,
)
from fakekubeapi.errors import (
    StatusError,
    bad_request,
    unprocessable,
    unsupported_media_type,
)
from fakekubeapi.patches.strategic import strategic_merge
from kubeobjects.golang.json import same_json
from kubeobjects.schema.messages import Message

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024


def apply_patch(content_type: str, document: dict[str, Any], patch: Any, message: Message) -> Any:
    """`document` after `patch`. `content_type` chooses the kind of patch; `message` is the
    type of the document, whose list keys a strategic patch uses.

    Raises: StatusError 415 for an unknown `content_type`, 400 for a malformed patch, 422 for one
    that does not apply, 413 for a JSON patch with too many operations.
    """
    media_type = content_type.partition(";")[0].strip()
    if media_type == JSON_PATCH:
        return json_patch(document, patch)
    if media_type not in PATCH_TYPES:
        raise unsupported_media_type(PATCH_TYPES)
    if not isinstance(patch, dict):
        raise bad_request(f"a patch of type {media_type} is a JSON object, got {_name(patch)}")
    if media_type == MERGE_PATCH:
        return merge_patch(document, patch)
    merged = strategic_merge(document, patch, message)
    # It is made of typed objects, whose type no field can change.
    merged |= {field: document[field] for field in ("kind", "apiVersion") if field in document}
    return merged


def merge_patch(document: Any, patch: Any) -> Any:
    """`document` after a merge patch (RFC 7386): objects merge, null deletes, all else replaces.

    >>> merge_patch({"a": 1, "b": {"c": 2, "d": 3}}, {"a": None, "b": {"c": 9}})
    {'b': {'c': 9, 'd': 3}}
    """
    if not isinstance(patch, dict):
        return copy_json(patch)
    result = copy_json(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(document: Any, patch: Any) -> Any:
    """`document` after a JSON patch (RFC 6902).

    Raises: StatusError 422 for a failed `test`, a path that does not exist, or copies of more than
    `MAX_COPIED_BYTES` together; 413 for more than `MAX_OPERATIONS` operations; 400 for a patch that
    is not a list of objects or a result that is nested too deeply.

    >>> json_patch({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}])
    {'a': [1, 2, 3]}
    """
    if not isinstance(patch, list):
        raise bad_request(f"a JSON patch is a list of operations, got {_name(patch)}")
    if len(patch) > MAX_OPERATIONS:
        raise StatusError(
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(patch)}",
        )
    result, copied_bytes = copy_json(document), 0
    for number, operation in enumerate(patch):
        if isinstance(operation, dict) and operation.get("op") == "copy":
            copied_bytes += _size_of_copied(result, operation)
            if copied_bytes > MAX_COPIED_BYTES:
                raise StatusError(
                    422,
                    f"operation {number} of the JSON patch: its copies have more than "
                    f"{MAX_COPIED_BYTES} bytes together",
                )
        result = _one_operation(result, operation, number)
    require_shallow(result)
    return result


def _size_of_copied(document: Any, operation: dict[str, Any]) -> int:
    """How many bytes a copy adds to the document; 0 if it does not apply."""
    try:
        return len(encode(_get(document, _pointer(operation.get("from")))))
    except (KeyError, IndexError, ValueError):
        return 0


def _one_operation(document: Any, operation: Any, number: int) -> Any:
    """The document after one operation. Raises: StatusError 400 or 422 that names the operation."""
    if not isinstance(operation, dict):
        raise bad_request(f"operation {number} of the JSON patch is {_name(operation)}")
    name = operation.get("op")
    if not isinstance(name, str) or name not in _OPERATIONS:
        raise unprocessable()
    members = {"path", *_NEEDS.get(name, ())}
    missing = sorted(members - operation.keys())
    if missing:
        raise unprocessable()
    try:
        return _OPERATIONS[name](document, operation)
    except (KeyError, IndexError, ValueError):
        raise unprocessable() from None


def _pointer(path: Any) -> list[str]:
    """The parts of a JSON pointer (RFC 6901). Raises: ValueError."""
    if path == "":
        return []
    if not isinstance(path, str) or not path.startswith("/"):
        raise ValueError(f"not a JSON pointer: {path!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]


def _get(document: Any, parts: list[str]) -> Any:
    value = document
    for part in parts:
        value = value[_index(value, part)]
    return value


def _index(container: Any, part: str, *, adding: bool = False) -> Any:
    """The key or index that a part of a pointer means in its container; with `adding` one that is
    not there yet, too. Raises: KeyError, IndexError or ValueError."""
    if isinstance(container, dict):
        if part not in container and not adding:
            raise KeyError(f"no member {part!r}")
        return part
    if not isinstance(container, list):
        raise ValueError(f"{part!r} lies below a value that is neither object nor list")
    if part == "-" and adding:
        return len(container)
    if not part.isdecimal() or (part != "0" and part.startswith("0")):
        raise ValueError(f"{part!r} is no list index")
    if int(part) > len(container) - (0 if adding else 1):
        raise IndexError(f"index {part} is beyond the list of {len(container)}")
    return int(part)


def _add(document: Any, parts: list[str], value: Any) -> Any:
    if not parts:
        return value
    parent = _get(document, parts[:-1])
    index = _index(parent, parts[-1], adding=True)
    if isinstance(parent, list):
        parent.insert(index, value)
    else:
        parent[index] = value
    return document


def _remove(document: Any, parts: list[str]) -> Any:
    if not parts:
        raise ValueError("the whole document cannot be removed")
    parent = _get(document, parts[:-1])
    return parent.pop(_index(parent, parts[-1]))


def _op_add(document: Any, operation: dict[str, Any]) -> Any:
    return _add(document, _pointer(operation["path"]), copy_json(operation["value"]))


def _op_remove(document: Any, operation: dict[str, Any]) -> Any:
    _remove(document, _pointer(operation["path"]))
    return document


def _op_replace(document: Any, operation: dict[str, Any]) -> Any:
    parts = _pointer(operation["path"])
    if not parts:
        return copy_json(operation["value"])
    parent = _get(document, parts[:-1])
    # The API server's library adds a member that is not there, other than the RFC has it.
    index = _index(parent, parts[-1], adding=isinstance(parent, dict))
    parent[index] = copy_json(operation["value"])
    return document


def _op_move(document: Any, operation: dict[str, Any]) -> Any:
    source, target = _pointer(operation["from"]), _pointer(operation["path"])
    if len(target) > len(source) and target[: len(source)] == source:
        raise ValueError(f"{operation['from']!r} cannot move into itself")
    if source == target:
        _get(document, source)
        return document
    return _add(document, target, _remove(document, source))


def _op_copy(document: Any, operation: dict[str, Any]) -> Any:
    value = copy_json(_get(document, _pointer(operation["from"])))
    return _add(document, _pointer(operation["path"]), value)


def _op_test(document: Any, operation: dict[str, Any]) -> Any:
    parts = _pointer(operation["path"])
    parent = _get(document, parts[:-1])
    absent = bool(parts) and isinstance(parent, dict) and parts[-1] not in parent
    current = None if absent else _get(document, parts)  # a member that is absent is null, here too
    if not same_json(current, operation["value"]):
        raise ValueError(f"test failed: found {current!r}, wanted {operation['value']!r}")
    return document


def _name(value: Any) -> str:
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}
    return names.get(type(value)) or repr(value)


_OPERATIONS: Final[dict[str, Callable[[Any, dict[str, Any]], Any]]] = {
    "add": _op_add,
    "remove": _op_remove,
    "replace": _op_replace,
    "move": _op_move,
    "copy": _op_copy,
    "test": _op_test,
}
_NEEDS: Final = {
    "add": ("value",),
    "replace": ("value",),
    "test": ("value",),
    "move": ("from",),
    "copy": ("from",),
}
