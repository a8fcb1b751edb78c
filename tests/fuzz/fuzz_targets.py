"""What is fuzzed: functions that read texts of others, and the errors that they may answer with.

A target takes any bytes. Whatever they are, it returns, or raises one of the errors that the reader
documents; anything else is a fault of the reader. `fuzz_seeds.py` has the seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec
from fuzz_servers import fakekubeapi_request, kubelet_request

from fakecri.recording.recorded import RecordError, exchanges
from fakecri.scripts.script import read_script
from fakecri.streaming.http_head import parse_head
from fakecri.streaming.spdy_frames import FrameError, FrameReader
from kubelet_conformance.recordings.abbreviated import written_out
from kubelet_conformance.recordings.history import recording_of
from kubelet_conformance.recordings.reading import read_pods
from kubelet_conformance.scenarios.reading import read_scenario
from kubeobjects.quantity import NANO, QuantityError, canonical, parse
from kubeobjects.strict.errors import ScriptError
from kubeobjects.strict.values import parse_yaml
from refkubelet.allocation import checkpoint as resources
from refkubelet.checkpoints.content import CheckpointError, StateFileError, json_value
from refkubelet.config.load import parse_config
from refkubelet.config.schema.errors import ConfigErrors
from refkubelet.container_manager.cpu import state as cpus
from refkubelet.container_manager.devices import checkpoint as devices
from refkubelet.container_manager.memory import checkpoint as memory
from refkubelet.kuberuntime.images.pull_record_files import record_of
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.manifest import ManifestError
from refkubelet.pods.manifest_list import read_manifests
from refkubelet.server.common.exchange import Request
from refkubelet.server.logs.request import log_options
from refkubelet.server.request_line import BadRequest, path_of, query_of

EXA: Final = 10**18 * NANO


@dataclass(frozen=True, slots=True)
class Target:
    """A reader. `errors`: what it documents for texts that are none."""

    read: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]

    def __call__(self, data: bytes) -> bool:
        """Whether the reader takes the bytes. Raises what it must not raise."""
        try:
            self.read(data)
        except self.errors:
            return False
        return True


def _manifest(data: bytes) -> object:
    return read_manifests(data, source=PodSource.FILE, origin="/m/pod.yaml", node_name="node")


def _quantity(data: bytes) -> object:
    """What is read is written as a text of the same amount, as long as there is a suffix for it."""
    text = data.decode(errors="replace")
    amount = parse(text)
    if abs(amount.nano) < 1000 * EXA:
        assert parse(canonical(text)).nano == amount.nano, text
    return amount


def _config(data: bytes) -> object:
    return parse_config(data, "/etc/kubelet.yaml")


def _scenario(data: bytes) -> object:
    return read_scenario(parse_yaml(data.decode(errors="replace"), "case.yaml"))


def _script(data: bytes) -> object:
    return read_script(parse_yaml(data.decode(errors="replace"), "script.yaml"))


def _log_query(data: bytes) -> object:
    target = data.decode(errors="replace")
    return log_options(Request(path=path_of(target), query=query_of(target)))


def _spdy_frames(data: bytes) -> object:
    """In two pieces: a frame may come in any."""
    reader = FrameReader()
    half = len(data) // 2
    return [*reader.feed(data[:half]), *reader.feed(data[half:])]


def _allocated(data: bytes) -> object:
    return resources.decode(data.decode(errors="replace"))


def _devices(data: bytes) -> object:
    return devices.read(data.decode(errors="replace"))


def _cpus(data: bytes) -> object:
    return cpus.from_file(msgspec.json.decode(data, type=cpus.CpuStateFile), "static")


def _memory(data: bytes) -> object:
    return memory.from_file(msgspec.json.decode(data, type=memory.MemoryStateFile), "Static")


def _pull_record(data: bytes) -> object:
    return record_of(json_value(data))


def _recorded_calls(data: bytes) -> object:
    lines = data.decode("utf-8", "replace").splitlines()
    return recording_of(list(exchanges(written_out(lines, "cri.jsonl"), "cri.jsonl")))


def _recorded_pods(data: bytes) -> object:
    return read_pods(data.decode("utf-8", "replace").splitlines(), "pods.jsonl")


_STATE: Final = (StateFileError, msgspec.DecodeError, UnicodeDecodeError)
TARGETS: Final = {
    "manifest": Target(_manifest, (ManifestError,)),
    "quantity": Target(_quantity, (QuantityError,)),
    "kubelet-configuration": Target(_config, (ConfigErrors,)),
    "scenario": Target(_scenario, (ScriptError,)),
    "script": Target(_script, (ScriptError,)),
    "log-query": Target(_log_query, (BadRequest,)),
    "kubelet-request": Target(kubelet_request, (BadRequest,)),
    "fakekubeapi-request": Target(fakekubeapi_request, (BadRequest,)),
    "http-head": Target(parse_head, ()),
    "spdy-frames": Target(_spdy_frames, (FrameError,)),
    "resource-state": Target(_allocated, (CheckpointError,)),
    "device-state": Target(_devices, (CheckpointError,)),
    "cpu-state": Target(_cpus, _STATE),
    "memory-state": Target(_memory, _STATE),
    "pull-record": Target(_pull_record, (ValueError,)),
    "recorded-calls": Target(_recorded_calls, (RecordError,)),
    "recorded-pods": Target(_recorded_pods, (RecordError,)),
}
