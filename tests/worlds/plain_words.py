"""Plain data as script files hold it."""

from __future__ import annotations

from typing import Any

import yaml

from fakecri.scripts.word_shapes import Behaviors
from fakecri.words.behaviors import Behavior
from kubeobjects.strict.reader import read
from kubeobjects.strict.values import Value, parse_yaml


def behavior_of(data: dict[str, Any]) -> Behavior:
    """The only behaviour in `{"exits": {"code": 1}}`. Raises ScriptError."""
    (found,) = read(parse_yaml(yaml.safe_dump(data), "data"), Behaviors).behaviors
    return found


def plain(value: Value) -> Any:
    """The data as an editor sees it, which reads YAML 1.2: `on` is a text."""
    if value.is_mapping():
        return {key.text(): plain(item) for key, item in value.pairs()}
    return [plain(item) for item in value.items()] if value.is_list() else value.scalar()
