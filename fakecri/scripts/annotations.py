"""Behaviours in the annotations of a pod.

`fakecri/web: "exits: {code: 1, after_s: 2}"` on a pod is for its container `web`. A kubelet hands
the annotations of pods on to the runtime, so a manifest alone can say what the fake does. A mistake
in an annotation makes the start of the container fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fakecri.behaviors.behavior import Behavior

PREFIX: Final = "fakecri/"


def annotated(annotations: Mapping[str, str], container: str) -> tuple[Behavior, ...]:
    """The behaviours for one container; () without an annotation for it. Raises ScriptError, which
    names the annotation."""
    key = PREFIX + container
    if key not in annotations:
        return ()
    # YAML is read only where a pod has such an annotation.
    from fakecri.scripts.script_reading import read_behaviors
    from fakecri.scripts.yaml_reader import parse_yaml

    return read_behaviors(parse_yaml(annotations[key], f"annotation {key}"))
