"""The difference of two pod statuses as a strategic-merge patch (STAT-022). Pure.

Lists with a merge key are compared item by item, all other lists are sent whole. Upstream:
pkg/util/pod/pod.go: PatchPodStatus.
"""

from __future__ import annotations

from typing import Any, Final

from refkubelet.model.objects import PodStatus, to_dict

MERGE_KEYS: Final = {
    "conditions": "type",
    "hostIPs": "ip",
    "podIPs": "ip",
    "resourceClaimStatuses": "name",
}


def status_patch(uid: str, live: PodStatus | None, merged: PodStatus) -> dict[str, Any] | None:
    """The patch that turns `live` into `merged`, with the UID as precondition; None: they are equal
    and nothing is sent."""
    before = to_dict(live) if live is not None else {}
    difference = diff_objects(before, to_dict(merged), MERGE_KEYS)
    return {"metadata": {"uid": uid}, "status": difference} if difference else None


def diff_objects(
    before: dict[str, Any], after: dict[str, Any], merge_keys: dict[str, str]
) -> dict[str, Any]:
    """The changed fields; a removed field is null, and so is a list that has become empty: one that
    is empty is not written at all. `merge_keys`: list field -> key of its items.

    >>> diff_objects({"a": 1, "b": 2, "l": [3]}, {"a": 1, "c": 3, "l": []}, {})
    {'b': None, 'l': None, 'c': 3}
    """
    patch: dict[str, Any] = {}
    for name in [*before, *(n for n in after if n not in before)]:
        old, new = (None if at == [] else at for at in (before.get(name), after.get(name)))
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            patch[name] = diff_objects(old, new, {})
        elif old and new and name in merge_keys:
            patch |= _diff_merge_list(name, merge_keys[name], old, new)
        else:
            patch[name] = new
    return patch


def _diff_merge_list(
    name: str, key: str, before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> dict[str, Any]:
    """The patch of a list whose items are merged by `key`: the new order, changed items, and
    deletions."""
    old = {item[key]: item for item in before}
    keys = [item[key] for item in after]
    changes = []
    for item in after:
        change = diff_objects(old.get(item[key], {}), item, {})
        if change:
            changes.append({**change, key: item[key]})
    changes += [{"$patch": "delete", key: k} for k in old if k not in keys]
    order = [{key: k} for k in keys]
    patch: dict[str, Any] = {f"$setElementOrder/{name}": order}
    if changes:
        patch[name] = changes
    return patch
