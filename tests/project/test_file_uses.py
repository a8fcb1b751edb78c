"""What a pod can write is opened, listed, walked through, changed and removed by one package,
`refkubelet.host.untrusted_files`. So every other call that touches files is on this list, which
says whose path it is: a new one belongs into that package, or here with its reason."""

from __future__ import annotations

from typing import Final

import pytest
from file_uses import file_uses, uses_below
from places import ROOT

PACKAGE: Final = "host/untrusted_files/"

WHOSE: Final[dict[str, str]] = {
    "no files: other methods of such a name": """
container_manager/cgroups/manager.py: ContainerManager.start
container_manager/cgroups/manager.py: ContainerManager._start_class
container_manager/cgroups/manager.py: ContainerManager.exists
container_manager/cgroups/manager.py: ContainerManager.ensure
pod_workers/steps.py: PodSteps._ensure_cgroup
container_manager/devices/plugin_watcher.py: PluginWatcher.run
events/correlator.py: EventCorrelator._is_one_of_many
events/correlator.py: EventCorrelator._counted
events/correlator.py: EventCorrelator._bucket
kuberuntime/images/keyring.py: _glob_matches
""",
    "the kernel's: cgroupfs, where containers may make directories, but no files": """
container_manager/cgroups/tree.py: CgroupTree.child_memory_usage_bytes
container_manager/cgroups/removal.py: subdirectories
container_manager/cgroups/removal.py: _pids_below
container_manager/cgroups/removal.py: _rmdir
container_manager/cgroups/tree.py: CgroupTree.problem
container_manager/cgroups/tree.py: CgroupTree.exists
container_manager/cgroups/tree.py: CgroupTree._make
container_manager/cgroups/tree.py: CgroupTree._enable_controllers
container_manager/cgroups/tree.py: CgroupTree._write
container_manager/cgroups/tree.py: CgroupTree.read
container_manager/cgroups/tree.py: CgroupTree._number
container_manager/cgroups/tree.py: _mounts
container_manager/cgroups/tree.py: _controllers_of
container_manager/cgroups/tree.py: _inherit_cpuset
container_manager/cgroups/tree.py: _try
container_manager/cgroups/tree.py: link_count
host/memory_events.py: watch_memory
host/memory_events.py: _register
server/pages/cgroup_metrics.py: _text
stats/cgroup_files.py: read_memory
stats/cgroup_files.py: read_swap
stats/cgroup_files.py: read_pressure
stats/cgroup_files.py: cpu_usage_ns
stats/cgroup_files.py: below
stats/cgroup_files.py: _processes
""",
    "the kernel's: /proc, /sys, /dev/kmsg": """
host/directories.py: mount_points_below
host/interfaces.py: read_interfaces
host/kernel_log.py: open_at_end
host/own_process.py: set_oom_score_adj
host/real_machine.py: apparmor_enabled
host/real_machine.py: RealMachine.boot_id
host/real_machine.py: RealMachine.boot_time_ns
host/real_machine.py: RealMachine.cgroup_version
host/real_machine.py: RealMachine.pids
host/real_machine.py: RealMachine.limits_swap
host/real_machine.py: RealMachine.kernel_flag
host/real_machine.py: RealMachine.swap_is_on
host/real_machine.py: RealMachine._meminfo_bytes
host/real_machine.py: RealMachine._working_set_bytes
host/real_machine.py: _number
host/real_machine.py: _table
host/topology.py: _numbered
host/topology.py: _online
host/topology.py: _cache
host/topology.py: _number
host/topology.py: _node
host/topology.py: _hugepages
volumes/mounting.py: mounts_for
""",
    "the administrator's: configuration, credentials, manifests, the node's own files": """
pods/manifest_files.py: ManifestFiles.read
api/kubeconfig.py: read_kubeconfig
api/kubeconfig.py: _check_token
config/credentials/files.py: _flag_problems
config/credentials/files.py: _files
config/credentials/files.py: _read
config/credentials/files.py: _missing_programs
config/drop_ins.py: _walk
config/load.py: _read
cri/transport.py: socket_path
daemon.py: run
kuberuntime/options_from_config.py: read_resolv_conf
kuberuntime/run_options.py: _node_hosts
node/facts.py: _first_of
node/facts.py: _os_image
node/logind.py: Logind.set_longest_delay
pods/file_source.py: FileSource._make_watch
pods/file_source.py: FileSource._read_all
pods/watch.py: DirectoryWatch._is_complete
server/tls/context.py: _state
""",
    "the kubelet's own: state, certificates, records and sockets in directories for root alone": """
kuberuntime/images/pull_record_files.py: PullRecordFiles._delete
kuberuntime/images/pull_record_files.py: _files
wiring/own_directories.py: _unusable
allocation/state.py: _read
certificates/bootstrap.py: unusable
certificates/bootstrap.py: kept_key
certificates/store.py: CertificateStore.pair
certificates/store.py: CertificateStore.load
certificates/store.py: CertificateStore.update
certificates/store.py: CertificateStore._complete
checkpoints/atomic_file.py: read_json
checkpoints/atomic_file.py: write_whole
checkpoints/state_file.py: StateFile.restore
checkpoints/state_file.py: StateFile._read
container_manager/devices/manager.py: DeviceManager._load
container_manager/devices/sockets.py: PluginSockets.open
container_manager/devices/sockets.py: PluginSockets.close
kuberuntime/images/pull_record_files.py: PullRecordFiles.has_intent
kuberuntime/images/pull_record_files.py: PullRecordFiles.read
kuberuntime/images/pull_record_files.py: PullRecordFiles._write
server/pod_resources/socket.py: PodResourcesServer.start
server/pod_resources/socket.py: PodResourcesServer.stop
server/tls/self_signed.py: pair_in
server/tls/self_signed.py: _readable
server/tls/self_signed.py: _write
wiring/api_access.py: first_certificate
""",
    "the kubelet's own: directories of pods above their volumes": """
kuberuntime/user_namespaces.py: UserNamespaces._restore
kuberuntime/user_namespaces.py: UserNamespaces.release
host/directories.py: make_directory
host/directories.py: is_mount_point
kuberuntime/user_namespaces.py: UserNamespaces._read
sync_loop/orphan_directories.py: OrphanDirectories.remove
sync_loop/orphan_directories.py: OrphanDirectories._renamed
volumes/csi/publishing.py: Publishing._call
volumes/csi/records.py: has_volumes
volumes/csi/records.py: remove_leftovers
volumes/csi/records.py: remove_mount
volumes/empty_dirs.py: EmptyDirs.set_up
volumes/empty_dirs.py: EmptyDirs.set_up_wrapped
volumes/empty_dirs.py: EmptyDirs._make
volumes/empty_dirs.py: EmptyDirs._mark
volumes/empty_dirs.py: EmptyDirs.tear_down
volumes/mounting.py: _make_target
volumes/persistent.py: PersistentVolumes.tear_down
volumes/removal.py: remove_empty_volumes
""",
    "the kubelet's own: content that it writes itself, and containers have read-only": """
volumes/atomic_writer.py: AtomicWriter._publish
volumes/atomic_writer.py: AtomicWriter._new_directory
volumes/atomic_writer.py: _write_file
volumes/atomic_writer.py: _link_names
volumes/atomic_writer.py: _remove_link
volumes/atomic_writer.py: _link_target
volumes/content.py: ContentVolumes.set_up
""",
    "the kubelet's own: names of logs, which the runtime and it change; none is opened": """
kuberuntime/gc.py: _dangles
kuberuntime/containers.py: ContainerStarter._link_log
kuberuntime/removal.py: _remove_link
kuberuntime/gc.py: ContainerGC._log_dirs
kuberuntime/gc.py: _entries
kuberuntime/logs/rotation.py: ContainerLogManager.rotate
kuberuntime/logs/rotation.py: compress
kuberuntime/logs/rotation.py: _rotated
kuberuntime/logs/rotation.py: _size_bytes
kuberuntime/removal.py: _remove_rotated
server/logs/reader.py: LogReader._replaced
""",
    "the kubelet's own: directories of plug-ins, of which only the path itself is looked at": """
container_manager/devices/sockets.py: remove_sockets
plugin_manager/manager.py: PluginManager.run
plugin_manager/manager.py: sockets_below
""",
    "the node's, named by pods and volumes: only looked at, beside the loop": """
host/real_machine.py: RealMachine.filesystem
volumes/host_paths.py: check_host_path
volumes/host_paths.py: _make
volumes/mounting.py: _is_same
volumes/persistent.py: _check_directory
volumes/persistent.py: _is_same
volumes/sub_paths.py: prepare
""",
}


def allowed() -> dict[str, str]:
    return {line: why for why, lines in WHOSE.items() for line in lines.split("\n") if line}


def uses() -> dict[str, list[str]]:
    found = uses_below(ROOT / "refkubelet")
    return {where: calls for where, calls in found.items() if not where.startswith(PACKAGE)}


def test_only_one_package_touches_what_pods_can_write_NODE_230() -> None:
    known = allowed()
    new = [f"{where}: {', '.join(calls)}" for where, calls in uses().items() if where not in known]
    assert new == [], (
        "use refkubelet.host.untrusted_files, or say in WHOSE whose paths these functions touch"
    )


def test_the_list_names_nothing_that_is_gone() -> None:
    assert sorted(allowed().keys() - uses().keys()) == []


def test_each_function_is_named_once() -> None:
    lines = [line for lines in WHOSE.values() for line in lines.split("\n") if line]
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize(
    "code",
    [
        "os.walk(path)",
        "os.fwalk(path)",
        "os.scandir(path)",
        "os.listdir(path)",
        "open(path)",
        "os.open(path, 0)",
        "Path(path).iterdir()",
        "(a / b).rglob('*')",
        "path.glob('*')",
        "path.walk()",
        "f(path).read_text()",
        "shutil.rmtree(path)",
        "glob.glob(path)",
        "os.path.exists(path)",
        "path.replace(other)",
        "filter(os.path.isdir, names)",
        "from os import walk",
        "from shutil import rmtree as gone",
    ],
)
def test_what_touches_files_is_seen(code: str) -> None:
    assert list(file_uses(f"def f():\n    {code}\n")) != []


@pytest.mark.parametrize("code", ["text.replace('a', 'b')", "os.getpid()", "os.path.join(a, b)"])
def test_what_touches_none_is_not(code: str) -> None:
    assert list(file_uses(f"def f():\n    {code}\n")) == []


def test_functions_in_classes_have_their_names() -> None:
    code = "class A:\n    def f(self):\n        open(self.path)\n"
    assert list(file_uses(code)) == [("A.f", "open")]
