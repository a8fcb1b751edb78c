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
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

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

# Where each public name lives; imported when first used, so that `import fakecri` costs nothing.
_HOMES = {
    "Behavior": "words.behaviors",
    "CriError": "errors",
    "CriTarget": "cri.services",
    "ExecContext": "words.behaviors",
    "FakeCRI": "fake",
    "FakeNode": "machine.node",
    "Filesystem": "machine.values",
    "HugePages": "machine.topology",
    "MachineTopology": "machine.topology",
    "Options": "options",
    "RegistryImage": "core.image_store.images",
    "Reply": "words.behaviors",
    "ServedFake": "serving.background",
    "any_image": "core.image_store.images",
    "cri_latency": "latency",
    "exits": "words.behaviors",
    "ignores": "words.behaviors",
    "oom_at": "words.behaviors",
    "oom_kills_child": "words.behaviors",
    "prints": "words.behaviors",
    "ramp": "words.curves",
    "ready_after": "words.behaviors",
    "registry_of": "core.image_store.images",
    "replies": "words.behaviors",
    "runs": "words.behaviors",
    "serve": "serving.background",
    "serves": "words.behaviors",
    "start_fails": "words.behaviors",
    "start_hangs": "words.behaviors",
    "stops": "words.behaviors",
    "uniform_topology": "machine.topology",
    "uses": "words.behaviors",
    "writes_termination_message": "words.behaviors",
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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        hint = ""
        if not name.startswith("_") and find_spec(f"fakecri.{name}") is None:
            from kubeobjects.strict.errors import (
                did_you_mean,  # needs grpc, which is a tenth of a second
            )

            hint = did_you_mean(name, __all__)
        raise AttributeError(f"module 'fakecri' has no attribute {name!r}{hint}")
    return getattr(import_module(f"fakecri.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
