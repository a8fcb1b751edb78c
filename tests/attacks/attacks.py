"""`python tests/attacks/attacks.py --seconds 600`: containers race against a kubelet process in
every place that a pod can write, and what comes of it is told (NODE-230).

Volumes of a driver that are published again and again, emptyDirs that are measured, given to groups
and removed while they change, subPaths, files of variables, termination messages, rotated logs, and
logs that are read through the server. Ends with 1 when /healthz was slow (99 of 100 answers within
`--p99-ms`), a callback of the kubelet's loop took 100 ms of CPU, a FIFO was opened, or anything
outside the volumes was touched.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

sys.path[:0] = [str(Path(__file__).parents[1] / "worlds"), str(Path(__file__).parents[2])]

from attack_world import DISKS, World, attacked_world  # noqa: E402 (it works on tests/worlds)

from fakecri import exits  # noqa: E402
from kubelet_conformance.harness.machines.racing import (  # noqa: E402
    opened,
    put_deep,
    put_odd_files,
    put_pairs,
    racing,
    state_of,
)
from refkubelet.host.untrusted_files import removed_now  # noqa: E402
from refkubelet.volumes.mounting import RealMounts  # noqa: E402
from simclock import RealClock  # noqa: E402

DEEP: Final = 2000
CALLBACK_S: Final = 0.1
EMPTY_DIR: Final[dict[str, Any]] = {"emptyDir": {}}
DISK: Final[dict[str, Any]] = {"csi": {"driver": DISKS}}
SUB_PATHS: Final = ("to-fifo-0", "to-link-0/below", "to-link-1/new/below")


async def attacks(world: World, seconds: float, files: int) -> None:
    """Attack for so long, round after round; each round has pods of its own."""
    clock = RealClock()
    lasting = await world.run_pod("disk", DISK)
    await asyncio.sleep(1)
    world.forget_start()
    ends_s, number = clock.monotonic_s() + seconds, 0
    before = state_of(world.outside)
    pairs = _pairs(lasting, world.outside)
    while clock.monotonic_s() < ends_s:
        number += 1
        await _round(world, number, pairs, files)
        if state_of(world.outside) != before:
            world.wrong.append(f"round {number}: something outside was touched")
            break
    await world.delete("disk")
    print(f"{number} rounds", flush=True)


def _pairs(volume: Path, outside: Path) -> dict[str, str]:
    """Pairs of names in the volume, as whole paths."""
    pairs = put_pairs(volume, outside)
    return {str(volume / one): str(volume / other) for one, other in pairs.items()}


async def _round(world: World, number: int, pairs: dict[str, str], files: int) -> None:
    names = [f"{kind}-{number}" for kind in ("wide", "parts", "last", "log")]
    wide, parts, last, log = names
    with ExitStack() as held:
        volume = await world.run_pod(wide, EMPTY_DIR)
        disk = await world.run_pod(f"disk-{number}", DISK)
        for place in (volume, disk):
            await asyncio.to_thread(_fill, place, world.outside, files)  # noqa: TID251
            pairs = {**pairs, **_pairs(place, world.outside)}
        held.enter_context(racing(Path("/"), pairs, world.note))
        await asyncio.gather(
            _sub_paths(world, parts, held),
            _last_words(world, last, held),
            _logs(world, log),
            *(world.read(f"{world.read_only}/stats/summary") for _ in range(3)),
            asyncio.sleep(5),
        )
        for name in (*names, f"disk-{number}"):
            await world.delete(name)  # and the race goes on while its volumes are removed
        await asyncio.sleep(2)
    for name in (*names, f"disk-{number}"):
        await _wait_gone(world, name)


def _fill(volume: Path, outside: Path, files: int) -> None:
    put_odd_files(volume, outside)
    put_deep(volume, DEEP)
    (volume / "many").mkdir()
    for number in range(files):
        os.close(os.open(volume / "many" / str(number), os.O_CREAT | os.O_WRONLY))


async def _sub_paths(world: World, name: str, held: ExitStack) -> None:
    """A pod whose subPaths and file of variables change; it is made anew all the time."""
    mounts = [
        {"name": "v", "mountPath": f"/part-{i}", "subPath": part}
        for i, part in enumerate(SUB_PATHS)
    ]
    ref = {"volumeName": "v", "path": "to-fifo-1/file", "key": "a", "optional": True}
    env = [{"name": "A", "valueFrom": {"fileKeyRef": ref}}]
    world.cri.behaves(exits(1, after_s=0.2), pod=name)
    volume = await world.run_pod(name, EMPTY_DIR, runs=False, mounts=mounts, env=env)
    for part in ("to-fifo-0", "to-link-0", "to-link-1"):
        for below in sorted((volume / part).rglob("*"), reverse=True) if volume.is_dir() else ():
            below.rmdir()
        if (volume / part).is_dir():
            (volume / part).rmdir()
    held.enter_context(racing(Path("/"), _pairs(volume, world.outside), world.note))
    await asyncio.sleep(3)


async def _last_words(world: World, name: str, held: ExitStack) -> None:
    """A pod that ends again and again; its termination message is now a file, a FIFO, a link."""
    world.cri.behaves(exits(1, after_s=0.2), pod=name)
    volume = await world.run_pod(name, EMPTY_DIR, terminationMessagePath="/v/words")
    (volume / "words").write_text("of the container")
    os.mkfifo(volume / "fifo")
    (volume / "link").symlink_to(world.outside / "file")
    pairs = {"words": "fifo", "link": "words"}
    whole = {str(volume / one): str(volume / other) for one, other in pairs.items()}
    held.enter_context(racing(Path("/"), whole, world.note))
    await asyncio.sleep(3)


async def _logs(world: World, name: str) -> None:
    """A log without line ends that is rotated and read, beside names that look like its own."""
    await world.run_pod(name, EMPTY_DIR)
    (directory,) = (world.directory / "logs").glob(f"*_{name}_*/main")
    log = directory / "0.log"
    for number in range(500):
        os.mkfifo(log.with_name(f"{log.name}.{number:08}-000000"))
    log.with_name(f"{log.name}.99999998-000000").symlink_to(world.outside / "file")
    with log.open("ab") as file:
        file.write(b"2026-01-01T00:00:00Z stdout F " + b"x" * 8_000_000)
    url = f"{world.main}/containerLogs/default/{name}/main"
    await asyncio.gather(*(world.read(f"{url}?{query}") for query in ("", "tailLines=3")))
    await asyncio.sleep(3)


async def _wait_gone(world: World, name: str) -> None:
    try:
        async with asyncio.timeout(120):
            while not await world.gone(name):  # noqa: ASYNC110 (another process does it)
                await asyncio.sleep(0.1)
    except TimeoutError:
        world.wrong.append(f"pod {name} cannot be stopped")


def report(world: World, p99_s: float) -> list[str]:
    """What was wrong; what was measured is printed."""
    wrong = list(dict.fromkeys(world.wrong))
    answers = sorted(world.answers_s)
    p99 = answers[int(0.99 * (len(answers) - 1))] if answers else 0.0
    half = answers[len(answers) // 2] if answers else 0.0
    print(f"/healthz: {len(answers)} answers, half within {half * 1000:.1f} ms,", end=" ")
    print(f"99 of 100 within {p99 * 1000:.1f} ms, all within {max(answers, default=0):.3f} s")
    if not answers or p99 > p99_s:
        wrong.append(f"/healthz: 99 of 100 answers within {p99 * 1000:.0f} ms")
    callbacks = world.callbacks()
    for took_s, what in callbacks[:5]:
        print(f"callback: {took_s:.3f} s of CPU: {what[:200]}")
    wrong += [f"a callback of {t:.3f} s: {what[:200]}" for t, what in callbacks if t > CALLBACK_S]
    if found := opened(world.note):
        wrong.append(f"FIFOs were opened: {found}")
    if "Traceback" in world.log():
        text = world.log().split("Traceback")[1][:2000]
        wrong.append(f"a traceback in the kubelet's log: {text}")
    return wrong


async def run(directory: Path, seconds: float, *, files: int, p99_s: float) -> list[str]:
    """Attack a new kubelet for so long; returns what was wrong."""
    async with attacked_world(directory) as world:
        await attacks(world, seconds, files)
        return report(world, p99_s)


def main() -> int:
    """The exit code: 0 when nothing was wrong, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--files", type=int, default=20_000, help="in each wide volume")
    parser.add_argument("--p99-ms", type=float, default=100.0)
    wanted = parser.parse_args()
    made = tempfile.mkdtemp(prefix="attacks-")
    work = run(Path(made), wanted.seconds, files=wanted.files, p99_s=wanted.p99_ms / 1000)
    try:
        wrong = asyncio.run(work)
    finally:
        if os.geteuid() == 0:
            RealMounts().unmount_below(made)
        removed_now(made)
    print(*(wrong or ["nothing was wrong"]), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
