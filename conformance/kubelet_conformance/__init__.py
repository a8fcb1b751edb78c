"""The conformance suite: cases with rule IDs, a harness for any kubelet on any runtime, and
reports.

`kubelet-conformance list` shows the cases, `kubelet-conformance run` runs them. A case is written
once against a `Node` (kubelet_conformance.harness.node) and never learns which kubelet or runtime
is behind it.
"""

from kubelet_conformance.registry import Case, Feature, Level, conformance

__all__ = ["Case", "Feature", "Level", "conformance"]
