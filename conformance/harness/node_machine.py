"""The machine under a node: files, memory, disks, processes, the kernel, and its shutdown.

What must never happen here: a file or a disk of this machine is changed outside of the case's own
directories.
"""

from __future__ import annotations

from pathlib import Path

from conformance.harness import machine
from conformance.harness.looked import looked_at
from conformance.harness.observed_node import ObservedNode


class NodeMachine(ObservedNode):
    """An observed node whose machine can be changed."""

    # --- files ----------------------------------------------------------------------------

    def write_log(self, pod: str, container: str, file: str, text: str) -> None:
        """Put a file beside the logs of a container."""
        meta = (self.pod(pod) or {})["metadata"]
        directory = f"{meta['namespace']}_{meta['name']}_{meta['uid']}"
        path = self._parts.paths.logs / directory / container / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def write_volume_file(self, pod: str, volume: str, file: str, text: str) -> None:
        """Put a file into an emptyDir volume of the pod."""
        self._volume_file(pod, volume, file).write_text(text)

    @looked_at
    def has_volume_file(self, pod: str, volume: str, file: str) -> bool:
        """Whether there is such a file in an emptyDir volume of the pod."""
        return self._volume_file(pod, volume, file).exists()

    def replace_volume_file(self, pod: str, volume: str, file: str, target: str) -> None:
        """Put a link to `target` in the place of a file or an empty directory of the pod's emptyDir
        volume, as a container may at any time."""
        place = self._volume_file(pod, volume, file)
        place.rename(place.with_name(f"{file}.old"))
        place.symlink_to(target)

    def volume_path(self, pod: str, volume: str, file: str = "") -> Path:
        """Where that is on the node."""
        return self._volume_file(pod, volume, file)

    def host_path(self, name: str) -> Path:
        """A place of the node for hostPath volumes; nothing is there yet."""
        return self._parts.paths.base / name

    def _volume_file(self, pod: str, volume: str, file: str) -> Path:
        uid = str((self.pod(pod) or {})["metadata"]["uid"])
        volumes = self._parts.paths.root / "pods" / uid / "volumes" / "kubernetes.io~empty-dir"
        return volumes / volume / file

    def write_root_file(self, file: str, text: str) -> None:
        """Put a text into the kubelet's root directory."""
        (self._parts.paths.root / file).write_text(text)

    def read_root_file(self, file: str) -> str:
        """A text from the kubelet's root directory."""
        return (self._parts.paths.root / file).read_text()

    # --- memory, disks, processes ---------------------------------------------------------

    def leave_memory(self, free_bytes: int) -> None:
        """Set what else runs on the node so that `free_bytes` of memory are available now, beside
        what its containers use (Feature.NODE_RESOURCES)."""
        machine.leave_memory(self._parts.runtime.machine, free_bytes)

    def leave_disk(self, free_bytes: int, *, disk: str = machine.NODE) -> None:
        """The same for a disk: `node` has the kubelet's root directory, `images` the images,
        `containers` the writable layers; unless they are separated, all are one. With
        Feature.OWN_DISK alone there is the kubelet's only."""
        if self._parts.disk is not None:
            self._parts.disk.leave(free_bytes)
        else:
            machine.leave_disk(self._parts.runtime.machine, disk, free_bytes)

    def leave_inodes(self, free: int, *, disk: str = machine.NODE) -> None:
        """The same for the inodes of a disk."""
        if self._parts.disk is not None:
            self._parts.disk.leave_inodes(free)
        else:
            machine.leave_inodes(self._parts.runtime.machine, disk, free)

    def leave_pids(self, free: int) -> None:
        """The same for processes."""
        machine.leave_pids(self._parts.runtime.machine, free)

    def lose_image_disk(self) -> None:
        """The runtime names a directory for its images that is on no disk."""
        self._parts.runtime.machine.image_root = "nowhere"

    def freeze_image_times(self, *, frozen: bool = True) -> None:
        """The runtime measures its disks no more: ImageFsInfo keeps its time stamp."""
        node = self._parts.runtime.machine
        node.image_fs_time_ns = node.now_ns() if frozen else None

    # --- the kernel, and whoever shuts the machine down -----------------------------------

    def kernel_says(self, *lines: str) -> None:
        """Write lines into the log of the node's kernel (Feature.NODE_RESOURCES)."""
        for line in lines:
            self._parts.runtime.kernel_says(line)

    def run_out_of_memory(self) -> str:
        """Have the kernel kill whom it likes to kill most, as when the whole machine is short of
        memory (Feature.NODE_RESOURCES). The victim as the kubelet's event names it."""
        victim = self._parts.runtime.machine.oom()
        return f"{victim.name}, pid: {victim.pid}"

    def shut_down(self) -> None:
        """Have the machine tell that it is about to go down (Feature.SHUTDOWN)."""
        self._parts.the_logind().shut_down()

    def call_off_shutdown(self) -> None:
        """Have it tell that it does not go down after all."""
        self._parts.the_logind().call_off()

    @property
    @looked_at
    def holds_up_shutdown(self) -> bool:
        """The kubelet keeps the machine from going down."""
        return self._parts.the_logind().delayed
