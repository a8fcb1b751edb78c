"""Search for bugs of kubelets that nobody has written down: worlds are drawn from seeds, played, and
held against the laws; one that breaks a law is made small, and becomes a scenario file.

`world_of` draws a world, `play` plays it, `shrink` makes it small, `campaign` does so for many
seeds; `kubelet-conformance search` is its command.
"""

from __future__ import annotations
