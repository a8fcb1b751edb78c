"""The one reader of YAML and JSON: of manifests and configurations, bodies of requests, scripts.

A text becomes nodes with places (`nodes`), within limits; nodes become JSON values (`values`), by
words that a table gives (`words`): those of Kubernetes, or the strict ones of scripts. `document`
is the entry point for files of the kubelet: values with their lines, YAML or JSON (`json_text`).
An API server reads YAML seldom: what it needs is imported at first use.

What must never happen here: an exception other than `YamlError` for any text, or work or memory
that grows faster than the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from kubeobjects.yaml.document import decoded as decoded
    from kubeobjects.yaml.nodes import Limits as Limits
    from kubeobjects.yaml.nodes import compose as compose
    from kubeobjects.yaml.values import value_of as value_of
else:
    __getattr__, __dir__ = face(
        __name__, {"document": "decoded", "nodes": "Limits compose", "values": "value_of"}
    )
