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

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from fakecri.core.image_store.images import RegistryImage, any_image, registry_of
    from fakecri.cri.services import CriTarget
    from fakecri.errors import CriError
    from fakecri.fake import FakeCRI
    from fakecri.latency import cri_latency
    from fakecri.machine.node import FakeNode
    from fakecri.machine.topology import HugePages, MachineTopology, uniform_topology
    from fakecri.machine.values import Filesystem
    from fakecri.options import Options
    from fakecri.serving.background import ServedFake, serve
    from fakecri.words.behaviors import (
        Behavior,
        ExecContext,
        Reply,
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
    from fakecri.words.curves import ramp
else:
    _imported, __dir__ = face(
        __name__,
        {
            "core.image_store.images": "RegistryImage any_image registry_of",
            "cri.services": "CriTarget",
            "errors": "CriError",
            "fake": "FakeCRI",
            "latency": "cri_latency",
            "machine.node": "FakeNode",
            "machine.topology": "HugePages MachineTopology uniform_topology",
            "machine.values": "Filesystem",
            "options": "Options",
            "serving.background": "ServedFake serve",
            "words.behaviors": (
                "Behavior ExecContext Reply exits ignores oom_at oom_kills_child prints "
                "ready_after replies runs serves start_fails start_hangs stops uses "
                "writes_termination_message"
            ),
            "words.curves": "ramp",
        },
    )

    def __getattr__(name: str) -> Any:
        unknown = name not in __all__ and not name.startswith("_")
        if unknown and find_spec(f"fakecri.{name}") is None:
            from kubeobjects.strict.errors import did_you_mean

            hint = did_you_mean(name, __all__)
            raise AttributeError(f"module 'fakecri' has no attribute {name!r}{hint}")
        return _imported(name)


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
    "cri_latency",
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
