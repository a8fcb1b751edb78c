"""Behaviours that a pod brings along: what its annotations say of its containers.

`fakecri/web: "exits: {code: 1, after_s: 2}"` on a pod is for its container `web`. A kubelet hands
the annotations of pods on to the runtime, so a manifest alone can say what the fake does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fakecri.words.behaviors import Behavior

PREFIX: Final = "fakecri/"


def annotated(annotations: Mapping[str, str], container: str) -> tuple[Behavior, ...]:
    """The behaviours for one container. Raises ScriptError, which names the annotation."""
    key = PREFIX + container
    if key not in annotations:
        return ()
    # YAML is read only where a pod has such an annotation.
    from fakecri.scripts.word_shapes import Behaviors
    from kubeobjects.strict.reader import read
    from kubeobjects.strict.values import parse_yaml

    return read(parse_yaml(annotations[key], f"annotation {key}"), Behaviors).behaviors
