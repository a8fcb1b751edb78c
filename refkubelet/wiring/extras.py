"""What a configuration needs of the libraries that only an extra of this distribution brings.

They are imported late, where they are used: a kubelet that is not asked for them goes without.
`check_extras` looks for them before anything runs. What must never happen: a library that a
configuration needs turns out to be missing when a pod, a shutdown or a request wants it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

from msgspec import Struct

from refkubelet.config import ConfigErrors, KubeletConfiguration
from refkubelet.node.shutdown import shutdown_groups
from simclock.distribution import not_installed


class Need(Struct, frozen=True):
    """`module` of `extra`, and whether a configuration needs it. `field`: what of the configuration
    asks for it; empty: every kubelet needs it."""

    field: str
    asked: Callable[[KubeletConfiguration], bool]
    module: str
    extra: str


def _always(_: KubeletConfiguration) -> bool:
    return True


def _shuts_down(config: KubeletConfiguration) -> bool:
    return bool(shutdown_groups(config))


def _traces(config: KubeletConfiguration) -> bool:
    return config.tracing is not None


NEEDS: Final = (
    Need("", _always, "cryptography", "kubelet"),
    Need("", _always, "prometheus_client", "kubelet"),
    Need("shutdownGracePeriod", _shuts_down, "dbus_fast", "kubelet"),
    Need("tracing", _traces, "opentelemetry.sdk", "otel"),
    Need("tracing", _traces, "opentelemetry.exporter.otlp.proto.grpc", "otel"),
)
"""All modules that are imported late and do not come with the fakes."""


def check_extras(config: KubeletConfiguration) -> None:
    """Raises `ConfigErrors` with a text for each field that needs an extra of which a library is
    not installed: which library, the field, and the extra to install."""
    problems: dict[tuple[str, str], str] = {}
    for need in NEEDS:
        if need.asked(config) and (error := _missing(need.module)) is not None:
            text = not_installed(error, need.extra)
            asks = f"{need.field}: " if need.field else ""
            problems.setdefault((need.field, need.extra), asks + text)
    if problems:
        raise ConfigErrors([*problems.values()])


def _missing(module: str) -> ModuleNotFoundError | None:
    """None: it is there. `name` of the error is the outermost module that is not."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError as error:
        return error
    return ModuleNotFoundError(name=module) if spec is None else None
