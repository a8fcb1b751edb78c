"""What the configuration forbids a machine to have: cgroup v1, swap, systemd, odd settings. Pure.

Rules: CG-013, CG-014, CG-037, EVIC-122. Upstream: cmd/kubelet/app/server.go: run;
pkg/kubelet/cm/container_manager_linux.go: NewContainerManager, setupKernelTunables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, Protocol

from refkubelet.config import ConfigError, KubeletConfiguration

WANTED: Final[Mapping[str, int]] = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
"""Below /proc/sys."""


class Host(Protocol):
    """What is asked of the machine before the kubelet starts (`RealMachine`)."""

    def cgroup_version(self) -> Literal[1, 2]: ...

    def swap_is_on(self) -> bool: ...

    def kernel_flag(self, name: str) -> int:
        """A setting below /proc/sys. Raises OSError, ValueError."""


def check_host(config: KubeletConfiguration, machine: Host) -> None:
    """What the configuration forbids the machine to be. Raises `ConfigError`."""
    v1 = machine.cgroup_version() == 1
    if config.fail_cgroup_v1 and v1:
        raise ConfigError(
            "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is "
            "unsupported and will be removed in a future release\n"
            "  set failCgroupV1: false in the configuration to run here (it is true by default)"
        )
    if v1 and config.single_process_oom_kill is False:
        raise ConfigError(
            "invalid configuration: singleProcessOOMKill must not be explicitly set to false when "
            "using cgroup v1"
        )
    if config.fail_swap_on and machine.swap_is_on():
        raise ConfigError(
            "running with swap on is not supported, please disable swap or set --fail-swap-on flag "
            "to false\n  set failSwapOn: false in the configuration to run here (it is true by "
            "default)"
        )
    if config.protect_kernel_defaults:
        problems = wrong_kernel_flags(machine.kernel_flag)
        if problems:
            raise ConfigError(
                f"protectKernelDefaults is true: [{', '.join(problems)}]\n  set them in /proc/sys, "
                "or protectKernelDefaults: false, with which they are left as they are"
            )


def check_driver(config: KubeletConfiguration, *, systemd_is_here: bool) -> None:
    """Where systemd rules, cgroups it was not told of lose their limits. Raises `ConfigError`."""
    if config.cgroups_per_qos and config.cgroup_driver == "systemd" and systemd_is_here:
        raise ConfigError(
            "the cgroup driver is systemd, and refkubelet makes its cgroups without systemd, which "
            "would undo them\n"
            "  set cgroupsPerQOS: false and enforceNodeAllocatable: [] in the configuration, or "
            "let the runtime use cgroupfs"
        )


def wrong_kernel_flags(value_of: Callable[[str], int]) -> list[str]:
    """What is not as wanted, each a sentence. `value_of` reads a setting; that it raises OSError or
    ValueError is a problem, too."""
    problems = []
    for flag, value in WANTED.items():
        try:
            actual = value_of(flag)
        except (OSError, ValueError) as error:
            problems.append(f"cannot read kernel flag {flag}: {error}")
            continue
        if actual != value:
            problems.append(
                f"invalid kernel flag: {flag}, expected value: {value}, actual value: {actual}"
            )
    return problems
