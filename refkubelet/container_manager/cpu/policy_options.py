"""The options of the CPU manager's policies. Pure.

Rules: CG-081. Upstream: pkg/kubelet/cm/cpumanager/policy_options.go, policy_none.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kubeobjects.golang.strconv import parse_bool, quoted

ALPHA_GATE: Final = "CPUManagerPolicyAlphaOptions"  # off by default
BETA_GATE: Final = "CPUManagerPolicyBetaOptions"  # on by default
ALPHA: Final = ("align-by-socket", "distribute-cpus-across-cores")
BETA: Final = ("distribute-cpus-across-numa",)
EXCLUSIVE: Final = (
    ("full-pcpus-only", "distribute-cpus-across-cores"),
    ("distribute-cpus-across-numa", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
)


class StaticOptions(Struct, frozen=True):
    """Options of policy static; the names are upstream's with underscores for hyphens.

    `full_pcpus_only`: only whole cores; other requests are refused. `distribute_cpus_across_numa`:
    evenly, if one NUMA node is not enough. `align_by_socket`: hints within one socket are
    preferred. `distribute_cpus_across_cores`: threads of different cores. `strict_cpu_reservation`:
    reserved CPUs run no containers. `prefer_align_cpus_by_uncorecache`: as few last-level caches as
    possible.
    """

    full_pcpus_only: bool = False
    distribute_cpus_across_numa: bool = False
    align_by_socket: bool = False
    distribute_cpus_across_cores: bool = False
    strict_cpu_reservation: bool = False
    prefer_align_cpus_by_uncorecache: bool = False


NAMES: Final = tuple(name.replace("_", "-") for name in StaticOptions.__struct_fields__)


def static_options(texts: Mapping[str, str], gates: Mapping[str, bool]) -> StaticOptions:
    """The options of a configuration. Raises ValueError with upstream's text."""
    chosen = {name: _option(name, text, gates) for name, text in sorted(texts.items())}
    for option, other in EXCLUSIVE:
        if chosen.get(option) and chosen.get(other):
            text = f"static policy options {option} and {other} can not be used at the same time"
            raise ValueError(text)
    return StaticOptions(**{name.replace("-", "_"): on for name, on in chosen.items()})


def _option(name: str, text: str, gates: Mapping[str, bool]) -> bool:
    """The value of one option. Raises ValueError: unknown, its gate is off, or not a bool."""
    if name not in NAMES:
        raise ValueError(f"unknown CPU Manager Policy option: {quoted(name)}")
    for stage, names, gate, default in (
        ("Alpha", ALPHA, ALPHA_GATE, False),
        ("Beta", BETA, BETA_GATE, True),
    ):
        if name in names and not gates.get(gate, default):
            raise ValueError(
                f"CPU Manager Policy {stage}-level Options not enabled, "
                f"but option {quoted(name)} provided"
            )
    try:
        return parse_bool(text)
    except ValueError as error:
        raise ValueError(f"bad value for option {quoted(name)}: {error}") from None


def check_no_options(texts: Mapping[str, str]) -> None:
    """Refuse options of policy none. Raises ValueError with upstream's text."""
    if texts:
        options = " ".join(f"{name}:{text}" for name, text in sorted(texts.items()))
        raise ValueError(f"None policy: received unsupported options=map[{options}]")
