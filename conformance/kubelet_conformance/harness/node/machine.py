"""`node.machine`: the machine under the node: files, memory, disks, processes, the kernel's log,
and its shutdown.

Only the case's own directories and disks are ever changed. Memory, disks and processes are a fake
machine's, which a kubelet process is given (Feature.NODE_RESOURCES), but for a disk of the case's
own (Feature.OWN_DISK).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Literal

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import ExpectationFailed, Seen
from kubelet_conformance.harness.kubelets.base import LOG_LINKS
from kubelet_conformance.harness.machines import fake_machine
from kubelet_conformance.harness.node.kubelet import NodeKubelet
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.node.watch import Watch
from kubelet_conformance.harness.observing.looked import looked_at


class NodeMachine:
    """The machine of the node. Pods are named as in their manifests.

    What needs a feature that the case does not name raises RuntimeError; what needs a pod raises
    ExpectationFailed while the kubelet's `/pods` does not list it.
    """

    facet: Final = "machine."

    def __init__(self, parts: Parts, watch: Watch, kubelet: NodeKubelet) -> None:
        self._parts = parts
        self._watch = watch
        self._kubelet = kubelet

    # --- files ----------------------------------------------------------------------------

    def directory(self, name: Literal["root", "logs", "links", "manifests"]) -> Path:
        """The kubelet's root directory, the one of the pods' logs, of the links to logs that a
        kubelet makes that can be told where, or of the static pods."""
        paths = self._parts.paths
        directories = {"root": paths.root, "logs": paths.logs, "links": paths.log_links}
        return directories.get(name, paths.manifests)

    def write_root_file(self, file: str, text: str) -> None:
        """Write a file of the kubelet's root directory; `file` is its path there."""
        self._parts.not_shared("files of the kubelet's root directory")
        (self._parts.paths.root / file).write_text(text)

    def read_root_file(self, file: str) -> str:
        """The text of a file of the kubelet's root directory. Raises FileNotFoundError."""
        self._parts.not_shared("files of the kubelet's root directory")
        return (self._parts.paths.root / file).read_text()

    def write_log(self, pod: str, container: str, file: str, text: str) -> None:
        """Write a file beside the logs of a container."""
        path = self._log_path(pod, container, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def log_text(self, pod: str, container: str, file: str) -> str:
        """The text of a file beside the logs of a container. Raises FileNotFoundError."""
        return self._log_path(pod, container, file).read_text()

    def remove_log(self, pod: str, container: str, file: str) -> None:
        """Remove a file beside the logs of a container."""
        self._log_path(pod, container, file).unlink()

    def remove_logs(self, pod: str, container: str) -> None:
        """Remove the directory with the logs of a container."""
        shutil.rmtree(self._log_path(pod, container, ""))

    def _log_path(self, pod: str, container: str, file: str) -> Path:
        meta = self._watch.listed_pod(pod)["metadata"]
        directory = f"{meta['namespace']}_{meta['name']}_{meta['uid']}"
        return self._parts.paths.logs / directory / container / file

    @looked_at
    def log_files(self, pod: str, container: str) -> list[str]:
        """The names of the container's log files, the log itself first."""
        logs = self._parts.paths.logs.glob(f"*_{self._watch.runtime_name(pod)}_*/{container}/*")
        return Seen(sorted(path.name for path in logs), self._watch, f"log file {pod} {container}")

    @looked_at
    def log_directories(self, pod: str) -> int:
        """How many log directories the pod has."""
        return len(list(self._parts.paths.logs.glob(f"*_{self._watch.runtime_name(pod)}_*")))

    @looked_at
    def log_links(self, pod: str) -> dict[str, str]:
        """The links to logs of the pod's containers by their names, each with the file it leads to
        below the pod's log directory: `main/0.log`. Links that lead nowhere are among them."""
        name = self._watch.runtime_name(pod)
        targets = {}
        paths = self._parts.paths
        for directory in (paths.log_links, paths.links_below_root, LOG_LINKS):
            for link in directory.glob(f"{name}_*.log") if directory.is_dir() else ():
                target = os.readlink(link)
                if target.startswith(f"{self._parts.paths.logs}/"):
                    targets[link.name] = "/".join(target.split("/")[-2:])
        return targets

    def link_beside(self, pod: str, name: str) -> Path:
        """Make a link of that name, which leads nowhere, beside the links to logs of the pod's
        containers."""
        paths = self._parts.paths
        first = f"{self._watch.runtime_name(pod)}_*.log"
        places = (paths.log_links, paths.links_below_root, LOG_LINKS)
        directory = next(place for place in places if any(place.glob(first)))
        link = directory / name
        link.symlink_to(paths.logs / "nothing.log")
        return link

    def volume_path(self, pod: str, volume: str, file: str = "") -> Path:
        """The path of a file in an emptyDir volume of the pod; without `file`, of the volume."""
        uid = str(self._watch.listed_pod(pod)["metadata"]["uid"])
        volumes = self._parts.paths.root / "pods" / uid / "volumes" / "kubernetes.io~empty-dir"
        return volumes / volume / file

    def write_volume_file(self, pod: str, volume: str, file: str, text: str) -> None:
        """Write a file of an emptyDir volume of the pod."""
        self.volume_path(pod, volume, file).write_text(text)

    @looked_at
    def has_volume_file(self, pod: str, volume: str, file: str) -> bool:
        """Whether there is such a file in an emptyDir volume of the pod."""
        return self.volume_path(pod, volume, file).exists()

    def replace_volume_file(self, pod: str, volume: str, file: str, target: str) -> None:
        """Put a symbolic link to `target` in the place of a file or an empty directory of the pod's
        emptyDir volume, as a container may at any time."""
        place = self.volume_path(pod, volume, file)
        place.rename(place.with_name(f"{file}.old"))
        place.symlink_to(target)

    def pod_directory(self, pod: str) -> Path:
        """The pod's directory below the kubelet's root directory."""
        uid = str(self._watch.listed_pod(pod)["metadata"]["uid"])
        return self._parts.paths.root / "pods" / uid

    def made_volume(self, pod: str, volume: str) -> Path:
        """The path of a volume of any kind that the kubelet makes. Raises ExpectationFailed while
        there is none."""
        above = self.pod_directory(pod) / "volumes"
        paths = [path for path in above.glob(f"*/{volume}") if path.is_dir()]
        if not paths:
            raise ExpectationFailed(f"pod {pod} has no volume {volume} below {above}")
        return paths[0]

    @looked_at
    def volume_files(self, pod: str, volume: str) -> dict[str, str]:
        """What a container reads in the volume: the text of each file by its path, but for names
        that begin with two dots; {} while there is no volume."""
        try:
            top = self.made_volume(pod, volume)
        except ExpectationFailed:
            return {}
        names = (name for name in sorted(os.listdir(top)) if not name.startswith(".."))
        files = (file for name in names for file in _files(top / name))
        return {str(file.relative_to(top)): file.read_text() for file in files}

    def addresses(self) -> tuple[str, str]:
        """An IPv4 and an IPv6 address that the node can have (Feature.TWO_FAMILIES)."""
        return self._parts.addresses

    def host_path(self, name: str) -> Path:
        """A path for a hostPath volume; nothing is there yet."""
        return self._parts.paths.base / name

    # --- memory, disks, processes ---------------------------------------------------------

    def leave_memory(self, free_bytes: int) -> None:
        """Leave so many bytes of memory available now, beside what the containers use: other
        processes of the node take the rest."""
        fake_machine.leave_memory(self._parts.runtime.machine, free_bytes)

    def leave_pids(self, free: int) -> None:
        """Leave so many process IDs free now."""
        fake_machine.leave_pids(self._parts.runtime.machine, free)

    def leave_disk(self, free_bytes: int, *, disk: str = fake_machine.NODE) -> None:
        """Leave so many bytes of a disk free now.

        `disk`: `node` has the kubelet's root directory, `images` the images, `containers` the
        writable layers; all three are one disk unless `separate_disks` was called. With
        Feature.OWN_DISK there is only `node`.
        """
        if self._parts.machine.disk is not None:
            self._parts.machine.disk.leave(free_bytes)
        else:
            machine, places = self._parts.runtime.machine, self._parts.machine.places
            fake_machine.leave_disk(machine, disk, free_bytes, places)

    def leave_inodes(self, free: int, *, disk: str = fake_machine.NODE) -> None:
        """Leave so many inodes of a disk free now; `disk` as for `leave_disk`."""
        if self._parts.machine.disk is not None:
            self._parts.machine.disk.leave_inodes(free)
        else:
            machine, places = self._parts.runtime.machine, self._parts.machine.places
            fake_machine.leave_inodes(machine, disk, free, places)

    @property
    def numbers_set(self) -> bool:
        """Whether `run_short` leaves exactly as much as it says."""
        return self._parts.machine.numbers_set

    async def run_short(self, signal: str, left: int) -> None:
        """Make the node run short of what the signal (`memory.available`) measures, until the end
        of the case (Feature.SHORTAGE).

        On a fake machine so many bytes, inodes or process IDs are left now. Elsewhere the kubelet
        is restarted with a threshold that no node can meet: the case's soft one for that signal is
        raised; if it has none it gets one without grace period, which acts as a hard one does
        (EVIC-004) and takes nothing away from what pods may request. The shortage then lasts,
        whatever is evicted.
        """
        if not self._parts.machine.numbers_set:
            await self._fall_below(signal)
            return
        resource = "inodes" if signal.endswith("inodesFree") else signal.partition(".")[0]
        match resource:
            case "memory":
                self.leave_memory(left)
            case "pid":
                self.leave_pids(left)
            case "inodes":
                self.leave_inodes(left)
            case _:
                self.leave_disk(left)

    async def _fall_below(self, signal: str) -> None:
        """Restart the kubelet with a threshold for the signal that is met at once. It cannot look
        at the node before it has admitted its pods, which it would refuse under pressure."""
        pods = set(self._watch.snapshots.pods)
        with ExitStack() as held_up:
            for method in ("ListPodSandboxStats", "ListContainerStats"):
                rule = self._parts.runtime.on(method, None, None)
                held_up.enter_context(rule.fails("UNAVAILABLE", "not now"))
            await self._kubelet.restart(**_out_of_reach(self._parts.config, signal))
            await self._watch.run_until(
                lambda: pods <= set(self._watch.snapshots.pods),
                within_s=limits.START_S,
                what="the restarted kubelet knows its pods",
            )
            await self._watch.run_for(limits.NOTICE_S)

    async def separate_disks(self, *, split: bool = False, restart: bool = True) -> None:
        """Give images and writable layers a disk of their own (EVIC-045), with `split` the images
        alone (EVIC-046), and restart the kubelet, which looks at the disks only once (EVIC-040);
        without `restart` the case does that itself."""
        machine, places = self._parts.runtime.machine, self._parts.machine.places
        fake_machine.separate_disks(machine, split=split, places=places)
        if restart:
            await self._kubelet.restart()

    async def image_disk_without_size(self) -> None:
        """Give images and writable layers a disk that says it has no bytes at all, as one that is
        not measured yet, and restart the kubelet."""
        machine = self._parts.runtime.machine
        fake_machine.separate_disks(machine, split=False, places=self._parts.machine.places)
        machine.filesystems[machine.image_root].capacity_bytes = 0
        await self._kubelet.restart()

    def lose_image_disk(self) -> None:
        """Make the runtime report a directory of its images that is on no disk."""
        self._parts.runtime.machine.image_root = "nowhere"

    def freeze_image_times(self, *, frozen: bool = True) -> None:
        """Keep the time stamp in ImageFsInfo as it is, as if the runtime no longer measured its
        disks, until this is called with `frozen=False` (EVIC-054)."""
        node = self._parts.runtime.machine
        node.image_fs_time_ns = node.now_ns() if frozen else None

    # --- the kernel -----------------------------------------------------------------------

    def kernel_says(self, *lines: str) -> None:
        """Write lines into the kernel's log (Feature.NODE_RESOURCES)."""
        for line in lines:
            self._parts.runtime.kernel_says(line)

    def run_out_of_memory(self) -> str:
        """Make the kernel kill the process with the highest OOM score, as when the whole machine
        is short of memory (Feature.NODE_RESOURCES); returns the victim as the kubelet's event
        names it: `main, pid: 1234`."""
        victim = self._parts.runtime.machine.oom()
        return f"{victim.name}, pid: {victim.pid}"

    # --- shutdown -------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Announce that the machine is about to go down (Feature.SHUTDOWN)."""
        self._parts.machine.the_logind().shut_down()

    def call_off_shutdown(self) -> None:
        """Announce that the machine does not go down after all (Feature.SHUTDOWN)."""
        self._parts.machine.the_logind().call_off()

    def limit_shutdown_delay(self, delay_s: float) -> None:
        """Let nothing delay a shutdown for longer, whatever the kubelet asks for
        (Feature.SHUTDOWN and NODE_RESOURCES: a kubelet process on this machine would write into
        /etc)."""
        logind = self._parts.machine.the_logind()
        logind.delay_s, logind.stubborn = delay_s, True

    @property
    @looked_at
    def holds_up_shutdown(self) -> bool:
        """Whether the kubelet keeps the machine from going down now (Feature.SHUTDOWN)."""
        return self._parts.machine.the_logind().delayed


def _files(path: Path) -> list[Path]:
    """The file, or all files below the directory; links are followed."""
    if not path.is_dir():
        return [path] if path.is_file() else []
    return [file for entry in sorted(path.iterdir()) for file in _files(entry)]


def _out_of_reach(config: Mapping[str, Any], signal: str) -> dict[str, Any]:
    """The fields of a configuration in which a soft threshold for the signal is met on any node; it
    keeps its grace period."""
    grace = {signal: "0s", **config.get("evictionSoftGracePeriod", {})}
    soft = {**config.get("evictionSoft", {}), signal: "99.9%"}
    return {"evictionSoft": soft, "evictionSoftGracePeriod": grace}
