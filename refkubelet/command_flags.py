"""The kubelet's flags that set a field of its configuration, and those refused by name. Pure.

This is data alone, so that `--help` and mistakes in flags are answered at once; the fields of
flags are in `kubelet_flags.txt`. Rule: CFG-010. Upstream: cmd/kubelet/app/options/options.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kubeobjects.tables import table_lines

_TABLE: Final = [line.split() for line in table_lines(__file__, "kubelet_flags.txt")]
SWITCHES: Final = {flag: field for flag, field, *switch in _TABLE if switch}
"""Flag -> field: `--flag` and `--flag=false`."""
VALUES: Final = {flag: field for flag, field, *switch in _TABLE if not switch}
"""Flag -> field: `--flag VALUE` and `--flag=VALUE`."""
NOT_DEPRECATED: Final = frozenset(
    {"provider-id", "fail-cgroupv1", "container-runtime-endpoint", "image-service-endpoint"}
)
"""Told nothing about. The two endpoints are deprecated in the kubelet; here they are what one says
to try refkubelet on a runtime."""
REFUSED: Final[Mapping[str, str]] = {
    "cloud-provider": "the node is not left to a cloud controller; leave it out",
    "lock-file": "nothing is locked; start one kubelet only for each runtime",
    "exit-on-lock-contention": "nothing is locked; start one kubelet only for each runtime",
}
"""Flag without a field -> why it is refused: a node that ignores it would not be what was asked
for."""
IGNORED: Final[Mapping[str, str]] = {
    "runtime-cgroups": "the runtime's own cgroup is not looked at",
    "minimum-container-ttl-duration": "0 is used (GC-001)",
    "maximum-dead-containers-per-container": "1 is used (GC-001)",
    "maximum-dead-containers": "there is no limit (GC-001)",
    "experimental-mounter-path": "volumes are mounted without a program",
    "experimental-allocatable-ignore-eviction": "hard eviction thresholds always lower what is "
    "allocatable",
    "vmodule": "-v is for all modules",
    "log-flush-frequency": "the log is written at once",
}
"""Flag without a field -> what is done instead; accepted with a warning."""
DEPRECATED: Final = (
    "Flag --%s has been deprecated, This parameter should be set via the config file specified by "
    "the kubelet's --config flag."
)
"""The kubelet's line for a flag whose field belongs into the file."""


def with_hyphens(words: Iterable[str]) -> list[str]:
    """The words of a command line with hyphens in the names of flags, which may have underscores.

    >>> with_hyphens(["run", "--max_pods=1", "--node-labels", "a_b=c", "-v"])
    ['run', '--max-pods=1', '--node-labels', 'a_b=c', '-v']
    """
    return [_hyphened(word) if word.startswith("--") else word for word in words]


def _hyphened(word: str) -> str:
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value
