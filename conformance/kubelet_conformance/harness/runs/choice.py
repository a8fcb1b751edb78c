"""The options of a run: which kubelet on which runtime; checked once, before the first case.

There are two kinds of run. Virtual: refkubelet and a fake runtime in this process, each case on its
own virtual loop. Real: a kubelet process on a runtime socket, cases side by side on one real loop.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from shlex import quote
from typing import Final, Literal

from msgspec import Struct

from fakecri.cri.endpoint import EndpointError, require_listener, socket_path
from kubelet_conformance.features import Feature
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.containerd.docker_host import NodeError, docker_problem
from kubelet_conformance.harness.containerd.versions import release_of
from kubelet_conformance.harness.kubelets.own_options import OptionRefused, check_flag, read_config
from kubelet_conformance.harness.runs.offered import (
    CONTAINERD,
    FAKE,
    FAKE_SOCKET,
    IN_PROCESS,
    PROCESS,
    given_features,
    kubelet_features,
    machine_features,
    runtime_features,
)
from kubelet_conformance.known_bugs import Release
from kubelet_conformance.known_bugs import release_of as release_in
from kubelet_conformance.registry import Minor
from simclock.timewarp import why_not

REAL_TIME: Final = "real"
JUMPING_TIME: Final = "jump"
Traces = Literal["none", "failed", "all"]
"""Of which cases what happened is kept."""
LATENCY: Final = 1.0
"""The factor on how long calls take, unless --latency says another."""


class EnvironmentProblem(Exception):
    """The chosen kubelet or runtime cannot be used; the text says what to do. Exit code 2."""


class Choice(Struct, frozen=True):
    """The options of a run."""

    kubelet: str = IN_PROCESS
    """`refkubelet`, `refkubelet-process`, or the path of a kubelet binary."""
    runtime: str = FAKE
    """`fake`, `fake-socket`, `containerd`, or the endpoint of a runtime (`unix:///...`)."""
    seed: int = 1
    """Fixes every random choice of a virtual run."""
    latency: float = LATENCY
    """A factor on how long the calls of a virtual run take; 0: they take no time."""
    jobs: int = 8
    """The number of cases at a time in a real run, the most processes of a virtual one."""
    long: bool = False
    """Whether a real run takes the minutes that some cases last."""
    time: str = REAL_TIME
    """Of a kubelet program: `real`, or `jump`: it jumps over waiting."""
    speed: float | None = None
    """Of a kubelet program: how fast its time passes; None: as `time` says."""
    containerd_version: str = ""
    """`1.6`, `1.7` or `2.1`; "" is the default one."""
    kubernetes_version: str = ""
    """The version of the kubelet (`1.30.3`), where it does not tell the right one."""
    check_since: bool = False
    """Only the cases run that this kubelet is too old for, to see whether it is."""
    kubelet_flags: tuple[str, ...] = ()
    """Further flags of a kubelet process: `--v=4`."""
    kubelet_config: str = ""
    """A file with further fields of its KubeletConfiguration; "": none."""
    alone: bool = False
    """Whether each case has a kubelet to itself, where several could share one."""
    traces: Traces = "none"
    """Of which cases what happened is kept for the result file."""

    @property
    def virtual(self) -> bool:
        """Whether the run is in virtual time: that depends on the kubelet alone."""
        return self.kubelet == IN_PROCESS

    @property
    def warped(self) -> bool:
        """Whether the kubelet program and the suite are in a time of their own."""
        return self.time == JUMPING_TIME or self.speed is not None

    @property
    def shares(self) -> bool:
        """Whether cases that can share a kubelet do so: in jumping time, where waiting costs."""
        return self.time == JUMPING_TIME and self.speed is None and not self.alone

    @property
    def patience(self) -> float:
        """A factor on how long a kubelet may take to start and to end."""
        return self.speed or 1.0

    def pace(self, *, long: bool) -> limits.Pace:
        """The pace of a case with a kubelet program; `long`: of one that takes minutes."""
        if self.speed is None and self.time == JUMPING_TIME:
            return limits.JUMPING
        pace = limits.REAL_LONG if long else limits.REAL
        return pace if self.speed is None else limits.hurried(pace, self.speed)

    @property
    def features(self) -> frozenset[Feature]:
        """What this pair offers to cases on this machine."""
        patience = {Feature.VIRTUAL_TIME} if self.long or self.warped else set()
        if not self.warped:
            patience.add(Feature.PROGRAM_TIME)
        runtime = FAKE_SOCKET if self.warped else self.runtime
        return frozenset().union(
            kubelet_features(self.kubelet),
            machine_features(virtual=self.virtual),
            runtime_features(runtime, self.containerd_version),
            given_features(self.kubelet, runtime),
            patience,
        )

    @property
    def kubelet_release(self) -> Release | None:
        """The version that was chosen, or that a kubelet program tells; None where it tells none:
        then, as for refkubelet, no case is skipped for it, and no bug expected."""
        if self.kubernetes_version:
            return release_in(self.kubernetes_version)
        if self.kubelet in (IN_PROCESS, PROCESS):
            return None
        # Here, not above: runs without a kubelet program start earlier.
        from kubelet_conformance.harness.kubelets.program import told_release

        return told_release(self.kubelet)

    @property
    def kubelet_minor(self) -> Minor | None:
        """The same without the patch release."""
        return release[:2] if (release := self.kubelet_release) else None

    def why_no_machine(self, missing: Iterable[Feature]) -> str:
        """What this machine lacks to give a kubelet another one, if that is what is missing."""
        program = self.kubelet not in (IN_PROCESS, PROCESS)
        if program and self.runtime in (FAKE, FAKE_SOCKET) and Feature.NODE_RESOURCES in missing:
            from kubelet_conformance.harness.machines.given.machine import (
                why_no_machine,  # as above
            )

            return why_no_machine()
        return ""

    def check(self) -> None:
        """Raise EnvironmentProblem when the pair does not fit or something is not there."""
        program = os.path.isfile(self.kubelet) and os.access(self.kubelet, os.X_OK)
        if self.kubelet not in (IN_PROCESS, PROCESS) and not program:
            raise EnvironmentProblem(
                f"--kubelet {self.kubelet}: no such program; wanted {IN_PROCESS}, {PROCESS} or the "
                "path of a kubelet binary"
            )
        if self.kubernetes_version and self.kubelet_release is None:
            raise EnvironmentProblem(
                f"--kubernetes-version {self.kubernetes_version}: wanted a version such as 1.30.3"
            )
        self._check_own_options()
        self._check_time()
        self._check_pair()
        if not 0 <= self.latency < math.inf:
            raise EnvironmentProblem(f"--latency {self.latency}: wanted a factor from 0, such as 1")
        if self.jobs < 1:
            raise EnvironmentProblem(f"--jobs {self.jobs}: wanted 1 or more")
        if self.runtime.startswith("unix://"):
            self._check_endpoint()
        self._check_containerd()

    def _check_own_options(self) -> None:
        """Whether the kubelet can be given these flags and this configuration."""
        given = [f"--kubelet-flag={flag}" for flag in self.kubelet_flags]
        given += [f"--kubelet-config {self.kubelet_config}"] if self.kubelet_config else []
        if given and self.virtual:
            raise EnvironmentProblem(
                f"{given[0]}: only a kubelet with a process of its own takes it: choose --kubelet "
                f"{PROCESS}, or the path of a kubelet binary"
            )
        try:
            for flag in self.kubelet_flags:
                check_flag(flag)
            if self.kubelet_config:
                read_config(Path(self.kubelet_config))
        except OptionRefused as problem:
            raise EnvironmentProblem(str(problem)) from None

    def _check_time(self) -> None:
        """Whether kubelet and runtime can be in the chosen time on this machine."""
        if self.time not in (REAL_TIME, JUMPING_TIME):
            raise EnvironmentProblem(f"--time {self.time}: wanted {REAL_TIME} or {JUMPING_TIME}")
        if not self.warped:
            return
        option = "--time jump" if self.speed is None else f"--speed {self.speed:g}"
        if self.speed is not None and (self.time == JUMPING_TIME or not 1 < self.speed <= 1024):
            raise EnvironmentProblem(
                f"{option}: wanted more than 1, at most 1024, and no --time jump beside it"
            )
        if self.kubelet in (IN_PROCESS, PROCESS):
            raise EnvironmentProblem(
                f"{option} is for kubelets built by Go, given by their path; --kubelet "
                f"{IN_PROCESS} is in virtual time without it"
            )
        if self.runtime not in (FAKE, FAKE_SOCKET):
            raise EnvironmentProblem(
                f"{option} needs --runtime {FAKE}: {self.runtime} is in real time"
            )
        if problem := why_not(self.kubelet):
            with open(self.kubelet, "rb") as program:
                is_script = program.read(2) == b"#!"
            instead = (
                "; name the kubelet itself, and what the script gives it with --kubelet-flag and "
                f"--kubelet-config FILE, or run the script in real time: --runtime {FAKE_SOCKET} "
                f"without {option}"
            )
            raise EnvironmentProblem(f"{option}: {problem}{instead if is_script else ''}")

    def _check_pair(self) -> None:
        """Whether kubelet and runtime fit together: both virtual or both real."""
        runtimes = (FAKE, FAKE_SOCKET, CONTAINERD)
        if self.runtime not in runtimes and not self.runtime.startswith("unix://"):
            raise EnvironmentProblem(
                f"--runtime {self.runtime}: wanted {', '.join(runtimes)} or unix:///path.sock"
            )
        if self.virtual and self.runtime != FAKE:
            raise EnvironmentProblem(
                f"--kubelet {IN_PROCESS} runs in virtual time, which needs --runtime {FAKE}; for "
                f"--runtime {self.runtime} choose --kubelet {PROCESS}"
            )
        if not self.virtual and not self.warped and self.runtime == FAKE:
            raise EnvironmentProblem(
                f"--kubelet {self.kubelet} is a process of its own and needs a socket: choose "
                f"--runtime {FAKE_SOCKET}"
            )

    def _check_containerd(self) -> None:
        """Whether the version is known and Docker can start it."""
        if self.containerd_version and self.runtime != CONTAINERD:
            raise EnvironmentProblem(
                f"--containerd-version {self.containerd_version}: only --runtime {CONTAINERD} has "
                f"versions to choose from, not --runtime {self.runtime}"
            )
        if self.runtime == CONTAINERD:
            try:
                release_of(self.containerd_version or None)
            except NodeError as problem:
                raise EnvironmentProblem(str(problem)) from None
            if without := docker_problem():
                raise EnvironmentProblem(without)

    def _check_endpoint(self) -> None:
        try:
            require_listener(
                socket_path(self.runtime),
                hint=f"start the runtime, or try --runtime {CONTAINERD} or {FAKE_SOCKET}",
            )
        except EndpointError as problem:
            raise EnvironmentProblem(f"--runtime {self.runtime}: {problem}") from None

    def repeat(self, case_id: str, file: str = "") -> str:
        """The command line that runs that case alone the same way; `file`: of a case that is not of
        this package."""
        line = f"kubelet-conformance run {file + ' ' if file else ''}--id {case_id}"
        if self.kubelet != IN_PROCESS:
            line += f" --kubelet {self.kubelet}"
        if self.runtime != FAKE or self.warped:
            line += f" --runtime {self.runtime}"
        if self.kubernetes_version:
            line += f" --kubernetes-version {self.kubernetes_version}"
        if self.containerd_version:
            line += f" --containerd-version {self.containerd_version}"
        line += "".join(f" {quote(f'--kubelet-flag={flag}')}" for flag in self.kubelet_flags)
        if self.kubelet_config:
            line += f" --kubelet-config {quote(self.kubelet_config)}"
        if self.virtual:
            slower = "" if self.latency == LATENCY else f" --latency {self.latency:g}"
            return f"{line} --seed {self.seed}{slower}"
        if self.warped:
            return f"{line} --time jump" if self.speed is None else f"{line} --speed {self.speed:g}"
        return f"{line} --long" if self.long else line
