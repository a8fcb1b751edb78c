"""The labels of `--node-labels`, and which of them a kubelet may set (CFG-011). Pure.

Upstream: cmd/kubelet/app/options/options.go: ValidateKubeletFlags;
staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubeobjects.causes import invalid_value
from kubeobjects.names import label_value_problems, qualified_name_problems

KUBERNETES: Final = ("kubernetes.io", "k8s.io")
NAMESPACES: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
"""Prefixes of kubernetes.io that are free for kubelets, with all below them."""
ALLOWED: Final = (
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
"""Keys of kubernetes.io that a kubelet may set on its own Node."""


class NodeLabelError(ValueError):
    """`--node-labels` has a label that is none, or one that no kubelet may set; the text says
    which."""


def node_labels(texts: Sequence[str]) -> Mapping[str, str]:
    """The labels of all uses of the flag, `key=value,...` each; what has no `=` has the value "".
    Raises NodeLabelError."""
    labels: dict[str, str] = {}
    for pair in filter(None, (part for text in texts for part in text.split(","))):
        key, _, value = pair.partition("=")
        labels[key.strip()] = value.strip()
    unknown = sorted(key for key in labels if _is_foreign(key))
    if unknown:
        raise NodeLabelError(
            "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: "
            f"[{' '.join(unknown)}]\n"
            "--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix "
            f"({', '.join(NAMESPACES)}) or be in the specifically allowed set "
            f"({', '.join(ALLOWED)})"
        )
    wrong = [
        invalid_value("--node-labels", text, problem).text
        for key, value in labels.items()
        for text, problems in (
            (key, qualified_name_problems(key)),
            (value, label_value_problems(value)),
        )
        for problem in problems
    ]
    if wrong:
        raise NodeLabelError(f"invalid node labels: {'; '.join(wrong)}")
    return labels


def _is_foreign(key: str) -> bool:
    """Whether a key is of Kubernetes and no kubelet may set it."""
    namespace, slash, _ = key.partition("/")
    return (
        bool(slash)
        and _is_below(namespace, KUBERNETES)
        and key not in ALLOWED
        and not _is_below(namespace, NAMESPACES)
    )


def _is_below(namespace: str, domains: Sequence[str]) -> bool:
    return any(namespace == d or namespace.endswith(f".{d}") for d in domains)
