"""A run is a function of its seed: same bytes under different hash seeds, in other processes."""

import subprocess
import sys

import pytest

SCENARIO = """
import asyncio, os, sys
from simclock import Ids, Rng, run_virtual

async def main():
    loop = asyncio.get_running_loop()
    rng, log = Rng(7), []
    ids, dice = Ids(rng), rng.stream("work")
    queue, lock = asyncio.Queue(), asyncio.Lock()
    reader, writer = os.pipe()

    async def worker(name):
        for _ in range(5):
            await asyncio.sleep(dice.choice([0, 0.1, 0.1, 2.5]))
            async with lock:
                log.append(f"{loop.time():.9f} {name} {ids.hex(6)}")
            queue.put_nowait(name)
            os.write(writer, b"x")

    async def collector():
        for _ in range(40):
            log.append(f"{loop.time():.9f} got {await queue.get()}")

    loop.add_reader(reader, lambda: log.append(f"{loop.time():.9f} {os.read(reader, 1)}"))
    async with asyncio.TaskGroup() as group:
        group.create_task(collector())
        for name in {f"w{i}" for i in range(8)} if sys.argv[2] == "careless" else [
            f"w{i}" for i in range(8)
        ]:
            group.create_task(worker(name))
    loop.remove_reader(reader)
    print(loop.clock.now().isoformat(), loop.jumps, *log, sep="\\n")

seed = None if sys.argv[1] == "none" else int(sys.argv[1])
run_virtual(main, seed=seed)
"""


def trace(seed: str, hash_seed: str, order: str = "careful") -> bytes:
    command = [sys.executable, "-W", "error", "-X", "dev", "-c", SCENARIO, seed, order]
    done = subprocess.run(
        command, capture_output=True, check=True, env={"PYTHONHASHSEED": hash_seed}
    )
    assert done.stderr == b""
    return done.stdout


@pytest.mark.parametrize("seed", ["none", "1"])
def test_two_hash_seeds_give_byte_equal_traces(seed: str) -> None:
    first = trace(seed, "1")
    assert first.count(b"\n") > 100
    assert first == trace(seed, "2")


def test_the_comparison_notices_a_run_that_hangs_on_hashes() -> None:
    """The same scenario, careless: it walks a set. So the test above can fail."""
    assert len({trace("1", hash_seed, "careless") for hash_seed in "1234"}) > 1


def test_two_seeds_give_two_traces() -> None:
    assert trace("1", "1") != trace("2", "1")
