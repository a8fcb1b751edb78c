"""The dimensions of fakecri and of functions that the kubelet calls on its own: calls on record,
rules, images, cgroups, logs; see `growth`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

from crash_loop import virtual_clock
from growth import Dimension, Meter
from kubecri.v1 import api_pb2 as pb
from workload import cycle, populated, start_pod

from fakecri import FakeCRI, exits
from fakecri.cgroupfs import CgroupFS
from refkubelet.allocation.checkpoint import decode, encode
from refkubelet.allocation.resources import resources_of
from refkubelet.container_manager.devices import checkpoint as devices
from refkubelet.events.correlator import EventCorrelator, InvolvedObject, RecordedEvent
from refkubelet.eviction.layout import Layout
from refkubelet.eviction.preemption_choice import Requirement, pods_to_preempt
from refkubelet.eviction.ranking import rank_pods
from refkubelet.kuberuntime.logs.rotation import compress
from refkubelet.kuberuntime.logs.termination_message import log_tail
from refkubelet.model.objects import Pod, decode_pod
from refkubelet.server.logs.lines import LogFilter
from refkubelet.server.logs.reader import LogReader, LogSource
from simclock import run_virtual

KIB: Final = 1024
STAMP: Final = b"2026-01-01T00:00:00.000000000Z stdout "


def in_virtual(body: Callable[[int, Meter], Awaitable[None]]) -> Callable[[int, Meter], None]:
    """The scenario `body` as a dimension wants it."""

    def run(size: int, meter: Meter) -> None:
        async def main() -> None:
            await body(size, meter)

        run_virtual(main, limit_s=100_000.0)

    return run


# -- the fake runtime


async def pods_of_a_runtime(size: int, meter: Meter) -> None:
    """Pods that are started, listed once, and end; all of them are there at once."""
    with meter:
        cri, ids = await populated(size, clock=virtual_clock())
        await cri.call("ListContainers", pb.ListContainersRequest())
        for sandbox, container in ids:
            await cri.call("StopContainer", pb.StopContainerRequest(container_id=container))
            await cri.call("RemovePodSandbox", pb.RemovePodSandboxRequest(pod_sandbox_id=sandbox))


async def questions(size: int, meter: Meter) -> None:
    """A test that asks after each pod what has been called of it, and how often."""
    cri = FakeCRI(virtual_clock())
    with meter:
        for number in range(size):
            await start_pod(cri, number)
            assert cri.count("StartContainer", pod=f"pod-{number}") == 1
            assert len(cri.calls("CreateContainer", pod=f"pod-{number}")) == 1


async def questions_since(size: int, meter: Meter) -> None:
    """A test that asks each second what has been called in it."""
    cri = FakeCRI(virtual_clock())
    with meter:
        for number in range(size):
            await asyncio.sleep(1.0)
            since_s = virtual_clock().monotonic_s()
            await cycle(cri, number)
            assert len(cri.calls(since_s=since_s)) == 7


async def behaviors(size: int, meter: Meter) -> None:
    """Each pod has a rule of its own."""
    cri = FakeCRI(virtual_clock())
    with meter:
        for number in range(size):
            cri.behaves(exits(0, after_s=5.0), pod=f"pod-{number}")
        for number in range(size):
            await start_pod(cri, number)
        await asyncio.sleep(10.0)


async def programmed_calls(size: int, meter: Meter) -> None:
    """Each pod has a failure of its own."""
    cri = FakeCRI(virtual_clock())
    with meter:
        for number in range(size):
            cri.on("StopContainer", pod=f"pod-{number}").fails(times=1)
        for number in range(size):
            await start_pod(cri, number)


async def ended_containers(size: int, meter: Meter) -> None:
    """Containers that end at times of their own."""
    cri = FakeCRI(virtual_clock())
    for number in range(size):
        cri.behaves(exits(0, after_s=1.0 + number / 100), container=f"never-{number}")
    cri.behaves(exits(0, after_s=1.0), container="main")
    with meter:
        for number in range(size):
            await start_pod(cri, number)
            await asyncio.sleep(0.01)
        await asyncio.sleep(2.0)


def pulled_images(size: int, meter: Meter) -> None:
    """Images that are pulled, asked for and removed."""

    async def main() -> None:
        cri = FakeCRI(virtual_clock())
        specs = [pb.ImageSpec(image=f"localhost/image-{number}:1") for number in range(size)]
        with meter:
            for spec in specs:
                await cri.call("PullImage", pb.PullImageRequest(image=spec))
                await cri.call("ImageStatus", pb.ImageStatusRequest(image=spec))
            await cri.call("ListImages", pb.ListImagesRequest())
            await cri.call("ImageFsInfo", pb.ImageFsInfoRequest())
            for spec in specs:
                await cri.call("RemoveImage", pb.RemoveImageRequest(image=spec))

    run_virtual(main, limit_s=100_000.0)


def cgroups(version: int, size: int, meter: Meter) -> None:
    """Groups that are made, written, listed, read and removed."""
    fs = CgroupFS(version)
    top = fs.path("/" if version == 2 else "/memory") / "kubepods"
    limit = "memory.max" if version == 2 else "memory.limit_in_bytes"
    with meter:
        top.mkdir()
        if version == 2:
            (fs.path("/") / "cgroup.subtree_control").write_text("+memory")
            (top / "cgroup.subtree_control").write_text("+memory")
        for number in range(size):
            group = top / f"pod{number}"
            group.mkdir()
            (group / limit).write_text("1048576")
            assert (group / limit).read_text() == "1048576\n"
        assert sum(path.is_dir() for path in top.iterdir()) == size
        assert len(list(top.glob(f"*/{limit}"))) == size
        for number in range(size):
            (top / f"pod{number}").rmdir()


def cgroup_processes(size: int, meter: Meter) -> None:
    """Processes that begin in a group, are listed, and end."""
    fs = CgroupFS(2)
    group = fs.path("/pods")
    with meter:
        group.mkdir()
        processes = [fs.spawn("/pods") for _ in range(size)]
        assert len((group / "cgroup.procs").read_text().split()) == size
        for process in processes:
            process.exit()
            process.reap()


# -- logs


def log_file(content: Callable[[int], Iterable[bytes]], size: int, path: Path) -> None:
    with path.open("wb") as file:
        file.writelines(content(size))


def lines(size: int) -> Iterable[bytes]:
    """A log of so many KiB, with lines of 128 bytes."""
    line = STAMP + b"F " + b"x" * (127 - len(STAMP) - 2) + b"\n"
    return (line * 8 for _ in range(size))


def one_line(size: int) -> Iterable[bytes]:
    """A line of so many KiB without an end."""
    yield STAMP + b"F "
    yield from (b"x" * KIB for _ in range(size))


def parts(size: int) -> Iterable[bytes]:
    """A line of so many KiB as runtimes write it, in parts of 16 KiB."""
    part = STAMP + b"P " + b"x" * (16 * KIB) + b"\n"
    return (part for _ in range(size // 16))


def empty_lines(size: int) -> Iterable[bytes]:
    """Nothing but line ends, after a first line."""
    yield STAMP + b"F begin\n"
    yield from (b"\n" * KIB for _ in range(size))


def read_log(
    content: Callable[[int], Iterable[bytes]],
    size: int,
    meter: Meter,
    tail: int | None = None,
    follow: bool = False,
    **shown: Any,
) -> None:
    """A log that is read to its end; of a log that is followed one comes there later."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "0.log"
        log_file(content, size, path)

        async def main() -> None:
            clock = virtual_clock()

            async def running() -> bool:
                return clock.monotonic_s() < 5.0

            source = LogSource(str(path), clock, running, (directory,))
            reader = LogReader(source, LogFilter(**shown), tail_lines=tail, follow=follow)
            with meter:
                async for _ in reader.chunks():
                    pass

        run_virtual(main, limit_s=100.0)


def followed_log(size: int, meter: Meter) -> None:
    """A log that grows while it is followed."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "0.log"
        path.write_bytes(b"".join(lines(1)))

        async def main() -> None:
            clock = virtual_clock()
            is_over = False

            async def running() -> bool:
                return not is_over

            async def read() -> int:
                source = LogSource(str(path), clock, running, (directory,))
                reader = LogReader(source, LogFilter(), tail_lines=None, follow=True)
                return sum([len(chunk) async for chunk in reader.chunks()])

            reading = asyncio.create_task(read())
            line = b"".join(lines(1))
            with meter:
                for _ in range(size):
                    with path.open("ab") as file:
                        file.write(line)
                    await asyncio.sleep(0.25)
                is_over = True
                await reading

        run_virtual(main, limit_s=100_000.0)


def compressed_log(size: int, meter: Meter) -> None:
    """A log of so many KiB that is compressed after its rotation."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "0.log.1"
        log_file(lines, size, path)

        async def main() -> None:
            with meter:
                await compress(str(path))

        run_virtual(main)


def log_tails(size: int, meter: Meter) -> None:
    """The end of a log as a termination message."""
    data = b"".join(lines(size))
    with meter:
        log_tail(data)


def written_log(size: int, meter: Meter) -> None:
    """What containers print, in lines, into the log that the fake writes."""
    from fakecri import prints

    with tempfile.TemporaryDirectory() as directory:

        async def main() -> None:
            cri = FakeCRI(virtual_clock(), write_logs=True)
            cri.behaves(prints("\n".join("x" * 100 for _ in range(size))), container="main")
            from workload import create_request, sandbox_config

            pod = sandbox_config(1)
            pod.log_directory = directory
            made: Any = await cri.call("RunPodSandbox", pb.RunPodSandboxRequest(config=pod))
            request = create_request(made.pod_sandbox_id, pod)
            request.config.log_path = "0.log"
            created: Any = await cri.call("CreateContainer", request)
            with meter:
                start = pb.StartContainerRequest(container_id=created.container_id)
                await cri.call("StartContainer", start)
                await asyncio.sleep(5.0)
            written = (Path(directory) / "0.log").read_bytes().count(b"\n")
            assert written >= size, written

        run_virtual(main)


# -- functions of the kubelet


def many_pods(size: int) -> list[Pod]:
    """Pods as the kubelet has them, with requests."""
    return [
        decode_pod(
            {
                "metadata": {"name": f"p{n}", "namespace": "default", "uid": f"uid-{n}"},
                "spec": {
                    "priority": n % 3,
                    "containers": [
                        {
                            "name": "main",
                            "image": "i",
                            "resources": {"requests": {"cpu": "10m", "memory": f"{n % 7 + 1}Mi"}},
                        }
                    ],
                },
            }
        )
        for n in range(size)
    ]


def ranking(size: int, meter: Meter) -> None:
    """The order of eviction."""
    pods = many_pods(size)
    with meter:
        ranked = rank_pods("memory.available", pods, {}, Layout.ONE)
    assert len(ranked) == size


def preemption(size: int, meter: Meter) -> None:
    """A critical pod needs the room of half of all others."""
    pods = many_pods(size)
    critical = decode_pod(
        {
            "metadata": {"name": "c", "namespace": "kube-system", "uid": "c"},
            "spec": {
                "priority": 2_000_001_000,
                "priorityClassName": "system-node-critical",
                "containers": [{"name": "main", "image": "i"}],
            },
        }
    )
    with meter:
        chosen = pods_to_preempt(critical, pods, (Requirement("cpu", 10 * (size // 2)),))
    assert len(chosen) == size // 2


def allocations(size: int, meter: Meter) -> None:
    """The checkpoint of the resources of pods: written, and read."""
    entries = {
        f"uid-{n}": resources_of(pod, pod_level=True, init_containers=True)
        for n, pod in enumerate(many_pods(size))
    }
    with meter:
        assert len(decode(encode(entries))) == size


def events(size: int, meter: Meter, message: Callable[[int], str]) -> None:
    """Events of as many pods as there are tens of them."""
    correlator = EventCorrelator()
    with meter:
        for number in range(size):
            about = InvolvedObject("Pod", f"pod-{number // 10}", "default", f"uid-{number // 10}")
            event = RecordedEvent(
                name="",
                involved=about,
                type="Normal",
                reason="Pulled",
                message=message(number),
                first_ns=number,
                last_ns=number,
            )
            correlator.correlate(event, float(number))


def device_checkpoint(size: int, meter: Meter) -> None:
    """The checkpoint of devices: written, and read."""
    registered = {"example.com/gpu": [f"gpu-{n}" for n in range(size)]}
    with meter:
        text = devices.write((), registered)
        devices.read(text)


DIMENSIONS: Final = {
    "runtime-pods": Dimension("pods of the fake runtime", 20, in_virtual(pods_of_a_runtime)),
    "questions": Dimension("questions about calls of a pod", 20, in_virtual(questions)),
    "questions-since": Dimension("questions about the last calls", 20, in_virtual(questions_since)),
    "behaviors": Dimension("rules of pods", 20, in_virtual(behaviors)),
    "programmed-calls": Dimension("failures of pods", 20, in_virtual(programmed_calls)),
    "ended-containers": Dimension("containers that end", 20, in_virtual(ended_containers)),
    "pulled-images": Dimension("images of the fake runtime", 20, pulled_images),
    "cgroups-v1": Dimension("cgroups of version 1", 50, partial(cgroups, 1)),
    "cgroups-v2": Dimension("cgroups of version 2", 50, partial(cgroups, 2)),
    "cgroup-processes": Dimension("processes in a cgroup", 50, cgroup_processes),
    "log": Dimension("KiB of a log", 256, partial(read_log, lines), memory_grows=False),
    "log-one-line": Dimension(
        "KiB of a log without line ends", 512, partial(read_log, one_line), memory_grows=False
    ),
    "log-parts": Dimension(
        "KiB of a log with one line in parts", 512, partial(read_log, parts), memory_grows=False
    ),
    "log-empty-lines": Dimension(
        "KiB of a log of line ends", 64, partial(read_log, empty_lines), memory_grows=False
    ),
    "log-tail": Dimension(
        "KiB of a log, the last lines",
        512,
        partial(read_log, lines, tail=100_000),
        memory_grows=False,
    ),
    "log-tail-one-line": Dimension(
        "KiB of a log without line ends, the last lines",
        1024,
        partial(read_log, one_line, tail=100),
        memory_grows=False,
    ),
    "log-since": Dimension(
        "KiB of a log, the newer lines",
        256,
        partial(read_log, lines, since_ns=10**19, timestamps=True),
        memory_grows=False,
    ),
    "log-follow": Dimension(
        "KiB of a log that is followed",
        256,
        partial(read_log, lines, follow=True),
        memory_grows=False,
    ),
    "log-growing": Dimension("KiB that come while a log is followed", 20, followed_log),
    "log-compressed": Dimension(
        "KiB of a log that is compressed", 256, compressed_log, memory_grows=False
    ),
    "log-message": Dimension("KiB of a log in a termination message", 256, log_tails),
    "log-written": Dimension("lines that a container prints", 100, written_log),
    "ranking": Dimension("pods in the order of eviction", 20, ranking),
    "preemption": Dimension("pods of which half are preempted", 5, preemption),
    "allocations": Dimension("pods in the checkpoint of allocations", 20, allocations),
    "events-alike": Dimension(
        "events that are counted up", 200, partial(events, message=lambda n: "same")
    ),
    "events-different": Dimension(
        "events that are combined", 200, partial(events, message=lambda n: f"message {n}")
    ),
    "device-checkpoint": Dimension("devices in a checkpoint", 200, device_checkpoint),
}
