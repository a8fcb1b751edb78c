"""The conformance suite: cases with rule IDs, a harness for any kubelet on any runtime, and
reports.

`kubelet-conformance list` shows the cases, `kubelet-conformance run` runs them. A case is written
once against a `Node` (conformance.harness.node) and never learns which kubelet or runtime is behind
it.
"""

from conformance.registry import Case, Feature, Level, conformance

__all__ = ["Case", "Feature", "Level", "conformance"]
