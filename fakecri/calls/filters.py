"""Which sandboxes and containers a list or statistics are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fakecri.core.lookups.lookup import matching_ids
from fakecri.core.messages import labels_fit
from fakecri.core.objects import Container, Sandbox
from fakecri.core.runtime import Core


def chosen_sandboxes(core: Core, wanted: Any) -> Iterator[Sandbox]:
    """Those that a filter of sandboxes or of their statistics fits, but for its state."""
    ids = matching_ids(core.sandboxes, wanted.id) if wanted.id else None
    labels = wanted.label_selector
    for sandbox in core.sandboxes.labelled(labels):
        if (ids is None or sandbox.id in ids) and (
            not labels or labels_fit(sandbox.config.labels, labels)
        ):
            yield sandbox


def chosen_containers(core: Core, wanted: Any) -> Iterator[Container]:
    """The same of a filter of containers."""
    ids = matching_ids(core.containers, wanted.id) if wanted.id else None
    pod = wanted.pod_sandbox_id
    sandboxes = matching_ids(core.sandboxes, pod) if pod else None
    labels = wanted.label_selector
    for container in core.containers.labelled(labels):
        if (
            (ids is None or container.id in ids)
            and (sandboxes is None or container.sandbox.id in sandboxes)
            and (not labels or labels_fit(container.config.labels, labels))
        ):
            yield container
