"""A programmable fake CRI runtime: real semantics, no containers, any clock.

    cri = FakeCRI()
    cri.behaves(exits(1, after_s=2), container="web")      # what containers do
    cri.on("StartContainer", pod="db").fails("UNKNOWN", "no space left", times=2)
    ...                                                    # let a kubelet or agent use it
    cri.assert_called("StartContainer", pod="db", times=3)

`words` has the words for containers, `on.On` those for calls, `server.serve` puts it on a
unix socket, and pytest gets the fixture `fakecri`. It never imports a kubelet.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakecri.background import ServedFake, serve
    from fakecri.core.images import RegistryImage, any_image, registry_of
    from fakecri.errors import CriError
    from fakecri.fake import FakeCRI
    from fakecri.node import FakeNode, Filesystem
    from fakecri.options import Options
    from fakecri.rules.behavior import Behavior, ExecContext, Reply
    from fakecri.rules.curves import ramp
    from fakecri.rules.words import (
        exits,
        ignores,
        oom_at,
        oom_kills_child,
        prints,
        ready_after,
        replies,
        runs,
        serves,
        start_fails,
        start_hangs,
        stops,
        uses,
        writes_termination_message,
    )
    from fakecri.target import CriTarget
    from fakecri.topology import HugePages, MachineTopology, uniform_topology

# Where each public name lives; imported when first used, so that `import fakecri` costs nothing.
_HOMES = {
    "Behavior": "rules.behavior",
    "CriError": "errors",
    "CriTarget": "target",
    "ExecContext": "rules.behavior",
    "FakeCRI": "fake",
    "FakeNode": "node",
    "Filesystem": "node",
    "HugePages": "topology",
    "MachineTopology": "topology",
    "Options": "options",
    "RegistryImage": "core.images",
    "Reply": "rules.behavior",
    "ServedFake": "background",
    "any_image": "core.images",
    "exits": "rules.words",
    "ignores": "rules.words",
    "oom_at": "rules.words",
    "oom_kills_child": "rules.words",
    "prints": "rules.words",
    "ramp": "rules.curves",
    "ready_after": "rules.words",
    "registry_of": "core.images",
    "replies": "rules.words",
    "runs": "rules.words",
    "serve": "background",
    "serves": "rules.words",
    "start_fails": "rules.words",
    "start_hangs": "rules.words",
    "stops": "rules.words",
    "uniform_topology": "topology",
    "uses": "rules.words",
    "writes_termination_message": "rules.words",
}

__all__ = [
    "Behavior",
    "CriError",
    "CriTarget",
    "ExecContext",
    "FakeCRI",
    "FakeNode",
    "Filesystem",
    "HugePages",
    "MachineTopology",
    "Options",
    "RegistryImage",
    "Reply",
    "ServedFake",
    "any_image",
    "exits",
    "ignores",
    "oom_at",
    "oom_kills_child",
    "prints",
    "ramp",
    "ready_after",
    "registry_of",
    "replies",
    "runs",
    "serve",
    "serves",
    "start_fails",
    "start_hangs",
    "stops",
    "uniform_topology",
    "uses",
    "writes_termination_message",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fakecri' has no attribute {name!r}")
    return getattr(import_module(f"fakecri.{_HOMES[name]}"), name)
