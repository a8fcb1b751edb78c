"""A kubelet on a machine that is another kubelet's: it touches nothing but what is its own, and
logs no traceback. What it touches is told by the interpreter's audit events, so that this holds for
any machine, whoever runs the test."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from process_world import POD, end, running, write_config
from runtime_calls import left_by_a_kubelet

from fakecri import FakeCRI
from fakecri.machine.node import FakeNode
from fakecri.server import serve

OF_THE_HOST = (
    "/etc/cni",
    "/etc/kubernetes",
    "/etc/systemd",
    "/opt",
    "/run",
    "/sys/fs/cgroup/kubepods",
    "/usr/libexec/kubernetes",
    "/var/lib",
    "/var/log",
    "/var/run",
)
"""What kubelets, runtimes and CNI plug-ins of a machine have: not even read here."""
MACHINE_ID = "/var/lib/dbus/machine-id"
"""Read where /etc/machine-id is not there, as on a minimal Debian: the Node shows it."""

AUDITED = """
import json, os, sys
sys.dont_write_bytecode = True  # or the first run after a change writes beside the sources
CHANGES = {"os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink", "os.chmod",
           "os.chown", "os.truncate", "os.utime", "os.setxattr", "os.mkfifo", "os.mknod"}
READS = {"os.listdir", "os.scandir", "os.walk", "os.fwalk"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
out = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def hear(event, args):
    if event == "open":
        changes, paths = bool(args[2] & WRITES), args[:1]
    elif event in CHANGES:
        changes, paths = True, args[:2]
    elif event in READS:
        changes, paths = False, args[:1]
    else:
        return
    for path in paths:
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if isinstance(path, str) and path.startswith("/"):
            os.write(out, (json.dumps([event, changes, os.path.normpath(path)]) + "\\n").encode())
sys.addaudithook(hear)
from refkubelet.cli import main
sys.exit(main())
"""


@asynccontextmanager
async def audited_kubelet(directory: Path, config: Path, endpoint: str) -> AsyncIterator[None]:
    """`refkubelet run` with audit events in `touched`, its log in `log`, both in `directory`."""
    with (directory / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", AUDITED, str(directory / "touched")),
            *("run", "-vv", "--config", str(config), "--hostname-override", "n1"),
            *("--container-runtime-endpoint", endpoint, "--root-dir", str(directory / "root")),
            stderr=log,
        )
    try:
        yield
    finally:
        await end(process)


def touched(directory: Path) -> Iterable[tuple[str, bool, str]]:
    """(event, whether something is changed, path), each once."""
    lines = (directory / "touched").read_text().splitlines()
    return [
        (event, changes, path) for event, changes, path in map(json.loads, dict.fromkeys(lines))
    ]


def is_below(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(200):
        while not condition():  # noqa: ASYNC110 (another process makes it true)
            await asyncio.sleep(0.05)


async def test_only_what_is_its_own_is_touched_GC_011_LIFE_136_NODE_200(tmp_path: Path) -> None:
    config = write_config(tmp_path, healthz_port=0)
    lines = config.read_text().splitlines()
    config.write_text("\n".join(line for line in lines if "podLogsDir" not in line))
    file = tmp_path / "manifests" / "web.yaml"
    file.write_text(POD.format(name="web"))
    cri = FakeCRI(node=FakeNode(image_root="/"), write_logs=True)
    await left_by_a_kubelet(cri, "other", "main")
    async with (
        serve(cri, f"unix://{tmp_path}/cri.sock") as server,
        audited_kubelet(tmp_path, config, server.endpoint),
    ):
        await until(lambda: "web-n1" in running(cri))
        links = list((tmp_path / "root" / "logs" / "containers").iterdir())
        assert [link.exists() for link in links] == [True]
        file.unlink()
        await until(lambda: not cri.sandboxes())
    allowed = (str(tmp_path), "/dev/null", "/proc/self/oom_score_adj")
    changed = [path for _, changes, path in touched(tmp_path) if changes]
    assert [path for path in changed if not is_below(path, allowed)] == []
    seen = [path for _, _, path in touched(tmp_path)]
    own = [path for path in seen if not is_below(path, [str(tmp_path), MACHINE_ID])]
    assert [path for path in own if is_below(path, OF_THE_HOST)] == []
    assert any(path.startswith(f"{tmp_path}/root/logs/pods") for path in seen)  # it does look
    assert "Traceback" not in (tmp_path / "log").read_text()
