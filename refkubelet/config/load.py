"""Puts a configuration together: file, drop-ins, flags; all mistakes are one error.

The order is the kubelet's: the file of `--config` with its defaults, the drop-ins of `--config-dir`
over it, flags over both, then the checks of values. Fields that are unknown have no effect, and a
warning names each; what must never happen: a file that is wrong otherwise has an effect.
Rules: CFG-001..005. Upstream: cmd/kubelet/app/server.go: NewKubeletCommand.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from kubeobjects.golang.duration import format_duration
from kubeobjects.strict.reader import type_of
from kubeobjects.structs import replace
from kubeobjects.yaml.document import Document
from refkubelet.config import gates
from refkubelet.config.decode import decoded, read_file, struct_of
from refkubelet.config.drop_ins import drop_in_files, with_absolute_paths
from refkubelet.config.flags import Given, with_flags
from refkubelet.config.merge import merged, without_nulls
from refkubelet.config.not_acted_on import NOT_ACTED_ON, complaint
from refkubelet.config.schema.errors import ConfigError, ConfigErrors
from refkubelet.config.schema.kubelet_config import (
    API_VERSION,
    DEFAULT_EVICTION_HARD,
    KIND,
    KubeletConfiguration,
    Logging,
)
from refkubelet.config.validation.resources import with_named_cpus
from refkubelet.config.validation.whole import validate
from refkubelet.host.places import POD_LOGS

log = logging.getLogger(__name__)

WITHOUT_FILE: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "readOnlyPort": 10255,
        "evictionHard": {},
        "authentication": {"webhook": {"enabled": False}, "anonymous": {"enabled": True}},
        "authorization": {"mode": "AlwaysAllow"},
    }
)
"""What a kubelet without `--config` has instead of a file (CFG-004)."""


class _Source(Struct, frozen=True):
    """A configuration before its values are checked. `name`: what errors begin with; `value`: the
    mapping it was made of, in which paths are absolute."""

    name: str
    value: Mapping[str, Any]
    config: KubeletConfiguration


def load_config(
    path: str | Path | None = None,
    *,
    drop_ins: str | Path | None = None,
    flags: Sequence[Given] = (),
    pod_logs_dir: Path = POD_LOGS,
) -> KubeletConfiguration:
    """The configuration of a file, the drop-ins of a directory over it and flags over both, with
    all defaults, validated.

    Without `path`: the defaults without a file (CFG-004). Relative paths in the file are resolved
    against its directory (CFG-002), those in drop-ins and flags against the working directory; hard
    eviction thresholds get their defaults (EVIC-006). `pod_logs_dir` is podLogsDir where neither
    file nor drop-in names one. Raises `ConfigErrors`, with a text for each
    mistake that begins with the file and, for a wrong field, its line.
    """
    source = _without_file() if path is None else _from_bytes(_read(path), str(path))
    if drop_ins is not None:
        source = _with_drop_ins(source, drop_ins)
    if not source.value.get("podLogsDir"):
        config = replace(source.config, pod_logs_dir=str(pod_logs_dir))
        source = _Source(source.name, source.value, config)
    return _checked(source, flags)


def parse_config(data: bytes, file: str) -> KubeletConfiguration:
    """The configuration in these bytes, like `load_config`. `file`: the name in errors; relative
    paths are resolved against its directory. Raises `ConfigErrors`."""
    return _checked(_from_bytes(data, file))


def defaults_without_file() -> KubeletConfiguration:
    """The configuration of a kubelet without `--config`: no authentication of its servers, and no
    eviction (CFG-004)."""
    return load_config()


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise ConfigErrors([f"cannot read the configuration file {path}: {reason}"]) from None


def _without_file() -> _Source:
    config = struct_of(Document(WITHOUT_FILE), "configuration", KubeletConfiguration)
    return _Source("configuration", WITHOUT_FILE, config)


def _from_bytes(data: bytes, file: str) -> _Source:
    value, config = _decoded(data, file, Path(file).absolute().parent)
    return _Source(file, value, _with_defaults(config, value))


def _decoded(
    data: bytes, file: str, directory: Path, *, is_patch: bool = False
) -> tuple[dict[str, Any], KubeletConfiguration]:
    """A file's mapping, and what it says, without further defaults. `directory`: what its relative
    paths start from; `is_patch`: null removes, at any depth. Warns of unknown fields (CFG-002,
    CFG-003). Raises ConfigErrors."""
    document = read_file(data, file, KIND)
    value = with_absolute_paths(type_of(KubeletConfiguration), document.value, directory)
    overlooked: list[str] = []
    said = Document(without_nulls(value) if is_patch else value, document.lines, document.more)
    try:
        return value, decoded(said, file, KubeletConfiguration, (API_VERSION,), overlooked)
    finally:
        for text in overlooked:
            log.warning("%s", text)


def _with_defaults(config: KubeletConfiguration, value: Mapping[str, Any]) -> KubeletConfiguration:
    """`config` with the defaults that depend on other fields. `value`: the file's mapping."""
    hard = config.eviction_hard
    if hard is None:
        hard = DEFAULT_EVICTION_HARD
    elif config.merge_default_eviction_settings:
        hard = MappingProxyType({**DEFAULT_EVICTION_HARD, **hard})
    return replace(_with_other_defaults(config, value), eviction_hard=hard)


def _with_other_defaults(
    config: KubeletConfiguration, value: Mapping[str, Any]
) -> KubeletConfiguration:
    report_s = config.node_status_report_frequency_s
    if value.get("nodeStatusUpdateFrequency") and not value.get("nodeStatusReportFrequency"):
        report_s = config.node_status_update_frequency_s
    serialize = config.serialize_image_pulls
    if value.get("serializeImagePulls") is None:  # BACK-208
        serialize = (config.max_parallel_image_pulls or 0) < 2
    return replace(config, serialize_image_pulls=serialize, node_status_report_frequency_s=report_s)


def _with_drop_ins(source: _Source, directory: str | Path) -> _Source:
    """The drop-ins over the file, each over what is there already (CFG-003). Raises ConfigErrors
    with the mistakes of all of them."""
    files, skipped = drop_in_files(directory)
    for file in skipped:
        log.info("%s: not read, since its name does not end in .conf", file)
    value, problems = _to_merge_into(source), list[str]()
    for file in files:
        try:
            patch, _ = _decoded(_read(file), file, Path.cwd(), is_patch=True)
        except ConfigErrors as error:
            problems.extend(error.problems)
        else:
            value = merged(value, patch)
    if problems:
        raise ConfigErrors(problems)
    told: list[str] = []  # by each file, of its own
    config = struct_of(Document(value), source.name, KubeletConfiguration, told)
    hard = config.eviction_hard or MappingProxyType({})  # nothing is added to what is merged
    config = replace(_with_other_defaults(config, value), eviction_hard=hard)
    return _Source(" + ".join((source.name, *files)), value, config)


def _to_merge_into(source: _Source) -> dict[str, Any]:
    """The file's mapping with those defaults, which the kubelet has at hand when it merges, that
    depend on other fields: a drop-in does not change them by the way."""
    config = source.config
    return {
        **source.value,
        "evictionHard": dict(config.eviction_hard or {}),
        "nodeStatusUpdateFrequency": format_duration(config.node_status_update_frequency_s),
        "nodeStatusReportFrequency": format_duration(config.node_status_report_frequency_s),
        "serializeImagePulls": config.serialize_image_pulls,
    }


def _checked(source: _Source, flags: Sequence[Given] = ()) -> KubeletConfiguration:
    """The source with the flags over it, its values checked. Raises ConfigErrors."""
    config, problems = with_flags(source.config, flags)
    image_endpoint = config.image_service_endpoint or config.container_runtime_endpoint
    config = replace(config, image_service_endpoint=image_endpoint)
    problems.extend(f"{source.name}: {problem}" for problem in validate(config))
    if problems:
        raise ConfigErrors(problems)
    _tell_what_is_not_acted_on(source.name, config)
    _tell_of_logging(source.name, config.logging)
    return with_named_cpus(config)


def _tell_what_is_not_acted_on(name: str, config: KubeletConfiguration) -> None:
    """Name the fields without effect that are not as they are by default, and such gates."""
    default = KubeletConfiguration()
    ignored = [
        field.encode_name
        for field in type_of(KubeletConfiguration).fields
        if field.encode_name in NOT_ACTED_ON
        and getattr(config, field.name) != getattr(default, field.name)
    ]
    if ignored:
        told = complaint(ignored)
        log.warning("%s: accepted, but refkubelet does not act on: %s", name, told)
    if unknown := gates.others(config.feature_gates):
        log.warning(
            "%s: featureGates: accepted, but without effect in refkubelet: %s",
            name,
            ", ".join(unknown),
        )


def _tell_of_logging(file: str, given: Logging) -> None:
    """Records go to stderr one by one and all files alike."""
    ignored = [
        name for name in ("vmodule", "options") if getattr(given, name) != getattr(Logging(), name)
    ]
    if ignored:
        log.warning(
            "%s: logging: accepted, but without effect in refkubelet: %s", file, ", ".join(ignored)
        )


__all__ = [
    "ConfigError",
    "ConfigErrors",
    "defaults_without_file",
    "load_config",
    "parse_config",
]
