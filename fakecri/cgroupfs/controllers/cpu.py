"""The cpu controller of v1 and v2: shares, weight, bandwidth (CG-140, CG-141).

Nothing is scheduled here: throttling counts stay as they are set by `set_throttling`.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import Final

from fakecri.cgroupfs.interface.tree import Cgroup, Controller, InterfaceFile, everywhere, table
from fakecri.cgroupfs.interface.values import U64_MAX, refuse, signed, stripped, unsigned

CPU: Final = "cpu"
_MIN_SHARES, _MAX_SHARES = 2, 1 << 18
_IDLE_SHARES: Final = 3
_MIN_US, _MAX_PERIOD_US = 1000, 1_000_000
_MAX_QUOTA_US: Final = 2**44 - 1
_MAX_US: Final = U64_MAX // 1000
_RATIO_SHIFT: Final = 20
NICE_WEIGHTS: Final = (
    *(88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916),
    *(9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277),
    *(1024, 820, 655, 526, 423, 335, 272, 215, 172, 137),
    *(110, 87, 70, 56, 45, 36, 29, 23, 18, 15),
)
"""The weights that the scheduler gives to nice -20 to 19."""


@dataclass(slots=True, eq=False)
class Cpu:
    """What cpu keeps of a group. Times are microseconds; `quota_us` None: no limit."""

    cgroup: Cgroup
    shares: int = 1024
    weight: int = 100
    quota_us: int | None = None
    period_us: int = 100_000
    burst_us: int = 0
    idle: int = 0
    throttling: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("nr_periods", "nr_throttled", "throttled_ns", "nr_bursts", "burst_ns"), 0
        )
    )

    @property
    def ratio(self) -> int | None:
        """How much of a CPU it may use, in 2^-20; None: no limit."""
        if self.quota_us is None:
            return None
        return (self.quota_us << _RATIO_SHIFT) // self.period_us


def of(cgroup: Cgroup) -> Cpu:
    state: Cpu = cgroup.states[CPU]
    return state


def _set_bandwidth(cpu: Cpu, quota_us: int | None, period_us: int, burst_us: int) -> None:
    """Set all three, or none if one is refused. v1 refuses a group more than its parent has; v2
    does not (CG-141)."""
    if cpu.cgroup.parent is None or not _MIN_US <= period_us <= _MAX_PERIOD_US:
        raise refuse(errno.EINVAL)
    if quota_us is not None and (
        not _MIN_US <= quota_us <= _MAX_QUOTA_US
        or burst_us > quota_us
        or burst_us + quota_us > _MAX_QUOTA_US
    ):
        raise refuse(errno.EINVAL)
    before = cpu.quota_us, cpu.period_us, cpu.burst_us
    cpu.quota_us, cpu.period_us, cpu.burst_us = quota_us, period_us, burst_us
    if cpu.cgroup.hierarchy.version == 1 and not _fits(cpu.cgroup.hierarchy.root, None):
        cpu.quota_us, cpu.period_us, cpu.burst_us = before
        raise refuse(errno.EINVAL)


def _fits(cgroup: Cgroup, above: int | None) -> bool:
    ratio = of(cgroup).ratio
    if ratio is None:
        ratio = above
    elif above is not None and ratio > above:
        return False
    return all(_fits(child, ratio) for child in cgroup.children.values())


def _write_shares(cgroup: Cgroup, text: str) -> None:
    value = unsigned(text)
    if of(cgroup).idle or cgroup.parent is None:
        raise refuse(errno.EINVAL)
    of(cgroup).shares = min(max(value, _MIN_SHARES), _MAX_SHARES)


def _write_quota(cgroup: Cgroup, text: str) -> None:
    cpu, value = of(cgroup), signed(text)
    _set_bandwidth(cpu, None if value < 0 else value, cpu.period_us, cpu.burst_us)


def _write_period(cgroup: Cgroup, text: str) -> None:
    cpu = of(cgroup)
    _set_bandwidth(cpu, cpu.quota_us, unsigned(text), cpu.burst_us)


def _write_burst(cgroup: Cgroup, text: str) -> None:
    cpu, value = of(cgroup), unsigned(text)
    if value > _MAX_US:
        raise refuse(errno.EINVAL)
    _set_bandwidth(cpu, cpu.quota_us, cpu.period_us, value)


def _write_idle(cgroup: Cgroup, text: str) -> None:
    cpu, value = of(cgroup), signed(text)
    if value not in (0, 1) or cgroup.parent is None:
        raise refuse(errno.EINVAL)
    if value != cpu.idle:
        cpu.idle = value
        cpu.shares = _IDLE_SHARES if value else 1024
        cpu.weight = 0 if value else 100


def _read_quota(cgroup: Cgroup) -> str:
    quota_us = of(cgroup).quota_us
    return f"{-1 if quota_us is None else quota_us}\n"


def _lines(values: dict[str, int]) -> str:
    return "".join(f"{name} {value}\n" for name, value in values.items())


def _read_stat_v1(cgroup: Cgroup) -> str:
    throttling = of(cgroup).throttling
    names = {"throttled_ns": "throttled_time", "burst_ns": "burst_time"}
    return _lines({names.get(name, name): value for name, value in throttling.items()})


V1: Final = Controller(
    CPU,
    table(
        everywhere("cpu.shares", lambda c: f"{of(c).shares}\n", _write_shares),
        everywhere("cpu.cfs_quota_us", _read_quota, _write_quota),
        everywhere("cpu.cfs_period_us", lambda c: f"{of(c).period_us}\n", _write_period),
        everywhere("cpu.cfs_burst_us", lambda c: f"{of(c).burst_us}\n", _write_burst),
        everywhere("cpu.idle", lambda c: f"{of(c).idle}\n", _write_idle),
        everywhere("cpu.stat", _read_stat_v1),
        everywhere(
            "cpu.stat.local", lambda c: f"throttled_time {of(c).throttling['throttled_ns']}\n"
        ),
    ),
    Cpu,
)


def _write_max(cgroup: Cgroup, text: str) -> None:
    """cpu.max: `<quota|max> [period]`; without a period the old one stays."""
    cpu, words = of(cgroup), stripped(text).split()
    if not words or not (words[0] == "max" or words[0].isdigit()):
        raise refuse(errno.EINVAL)
    period_us = int(words[1]) if len(words) > 1 and words[1].isdigit() else cpu.period_us
    quota_us = None if words[0] == "max" else int(words[0])
    _set_bandwidth(cpu, quota_us, period_us, cpu.burst_us)


def _read_max(cgroup: Cgroup) -> str:
    cpu = of(cgroup)
    return f"{'max' if cpu.quota_us is None else cpu.quota_us} {cpu.period_us}\n"


def _write_weight(cgroup: Cgroup, text: str) -> None:
    value = unsigned(text)
    if not 1 <= value <= 10_000:
        raise refuse(errno.ERANGE)
    if of(cgroup).idle:
        raise refuse(errno.EINVAL)
    of(cgroup).weight = value


def _read_nice(cgroup: Cgroup) -> str:
    weight = of(cgroup).weight * 1024 / 100
    nearest = min(range(len(NICE_WEIGHTS)), key=lambda n: abs(NICE_WEIGHTS[n] - weight))
    return f"{nearest - 20}\n"


def _write_nice(cgroup: Cgroup, text: str) -> None:
    nice = signed(text)
    if not -20 <= nice <= 19:
        raise refuse(errno.ERANGE)
    if of(cgroup).idle:
        raise refuse(errno.EINVAL)
    of(cgroup).weight = (NICE_WEIGHTS[nice + 20] * 100 + 512) // 1024


def read_stat_v2(cgroup: Cgroup) -> str:
    """cpu.stat. CPU times are shown without the controller, too (CG-120)."""
    user_us, system_us = cgroup.user_ns // 1000, cgroup.system_ns // 1000
    total_us = (cgroup.user_ns + cgroup.system_ns) // 1000
    times = {"usage_usec": total_us, "user_usec": user_us, "system_usec": system_us, "nice_usec": 0}
    if CPU in cgroup.states and cgroup.parent is not None:
        for name, value in of(cgroup).throttling.items():
            times[name.replace("_ns", "_usec")] = value // (1000 if "_ns" in name else 1)
    return _lines(times)


def read_stat_local_v2(cgroup: Cgroup) -> str:
    """cpu.stat.local; empty without the controller."""
    if CPU not in cgroup.states or cgroup.parent is None:
        return ""
    return f"throttled_usec {of(cgroup).throttling['throttled_ns'] // 1000}\n"


V2: Final = Controller(
    CPU,
    table(
        InterfaceFile("cpu.weight", lambda c: f"{of(c).weight}\n", _write_weight),
        InterfaceFile("cpu.weight.nice", _read_nice, _write_nice),
        InterfaceFile("cpu.max", _read_max, _write_max),
        InterfaceFile("cpu.max.burst", lambda c: f"{of(c).burst_us}\n", _write_burst),
        InterfaceFile("cpu.idle", lambda c: f"{of(c).idle}\n", _write_idle),
    ),
    Cpu,
    threaded=True,
)
