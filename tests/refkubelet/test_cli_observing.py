"""`refkubelet run` with `logging` and `tracing` in its configuration."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from process_world import POD, free_port, kubelet, until_runs, write_config

from fakecri import FakeCRI
from fakecri.machine.node import FakeNode
from fakecri.server import serve

NO_OTEL = (
    "import sys; sys.modules['opentelemetry'] = None; "
    "from refkubelet.cli import main; sys.exit(main())"
)
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def configured(directory: Path, more: str) -> Path:
    file = write_config(directory, healthz_port=0)
    file.write_text(file.read_text() + more)
    (directory / "manifests" / "pod.yaml").write_text(POD.format(name="web"))
    return file


async def logged(directory: Path, logging: str, *flags: str) -> list[str]:
    """What a kubelet logs until its pod runs."""
    config = configured(directory, f"logging: {logging}\n")
    cri = FakeCRI(node=FakeNode(image_root="/"))
    async with (
        serve(cri, f"unix://{directory}/cri.sock") as server,
        kubelet(config, server.endpoint, *flags) as process,
    ):
        await until_runs(cri, "web-n1")
        process.stop()
        code, text = await process.end()
    assert code == 0
    return text.splitlines()


async def test_the_file_says_how_the_log_is_written_CFG_012(tmp_path: Path) -> None:
    found = [json.loads(line) for line in await logged(tmp_path, "{format: json, verbosity: 1}")]
    assert {line.get("v") for line in found} == {1}
    assert any("start main (LIFE-114)" in line["msg"] for line in found)


async def test_flags_win_over_the_file_CFG_001(tmp_path: Path) -> None:
    lines = await logged(tmp_path, "{verbosity: 1}", "--logging-format", "json", "-vv")
    assert 2 in {json.loads(line).get("v") for line in lines}


def test_tracing_without_its_extra_is_one_error_that_names_it_CFG_013(tmp_path: Path) -> None:
    config = configured(tmp_path, "tracing: {samplingRatePerMillion: 5}\n")
    done = subprocess.run(
        [sys.executable, "-c", NO_OTEL, "run", "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "refkubelet: tracing: the library opentelemetry is not installed",
        "  install it:  pip install 'refkubelet[otel]'  (a checkout: '.[otel]')",
    ]


class Collector(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Takes what an OTLP exporter sends."""

    def __init__(self) -> None:
        self.got = b""

    def service(self, details: Any) -> Any:
        if details.method != EXPORT:
            return None

        async def export(request: bytes, context: Any) -> bytes:
            self.got += request
            return b""

        return grpc.unary_unary_rpc_method_handler(export)


async def test_spans_reach_a_collector_CFG_013(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc")
    port = free_port()
    collector, server = Collector(), grpc.aio.server()
    server.add_generic_rpc_handlers((collector,))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    tracing = f"tracing: {{endpoint: '127.0.0.1:{port}', samplingRatePerMillion: 1000000}}\n"
    config = configured(tmp_path, tracing)
    cri = FakeCRI(node=FakeNode(image_root="/"))
    try:
        async with (
            serve(cri, f"unix://{tmp_path}/cri.sock") as runtime,
            kubelet(config, runtime.endpoint) as process,
        ):
            await until_runs(cri, "web-n1")
            process.stop()
            code, text = await process.end()
    finally:
        await server.stop(0)
    assert (code, text) == (0, "")
    for word in (b"syncPod", b"runtime.v1.RuntimeService/RunPodSandbox", b"service.name"):
        assert word in collector.got
