"""Reads a KubeletConfiguration file, YAML or JSON, strictly; all its mistakes are one error."""

from __future__ import annotations

import logging
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from refkubelet.config import gates
from refkubelet.config.decode import Decoder, describe
from refkubelet.config.fields import info_of
from refkubelet.config.kubelet_config import (
    API_VERSION,
    DEFAULT_EVICTION_HARD,
    FIRST_FIELD_NOT_ACTED_ON,
    KIND,
    AnonymousAuthentication,
    Authentication,
    Authorization,
    KubeletConfiguration,
    WebhookAuthentication,
)
from refkubelet.config.resource_validation import with_named_cpus
from refkubelet.config.validation import validate
from refkubelet.model.yaml.document import YamlError, read_yaml

log = logging.getLogger(__name__)

_TYPE_META = frozenset({"apiVersion", "kind"})


class ConfigError(Exception):
    """A mistake of the user. The text is complete: place, field, what was wanted, what was
    found."""


class ConfigErrors(ConfigError):
    """All mistakes of one file: `problems`, one text each; the error's text has a line for each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load_config(path: str | Path) -> KubeletConfiguration:
    """The configuration in a file, with all defaults, validated.

    Relative paths in it are resolved against its directory (CFG-002); hard eviction thresholds get
    their defaults (EVIC-006). Raises `ConfigErrors`, with a text for each mistake that begins with
    the file and, for a wrong field, its line.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise ConfigErrors([f"cannot read the configuration file {path}: {reason}"]) from None
    return parse_config(data, str(path))


def parse_config(data: bytes, file: str) -> KubeletConfiguration:
    """The configuration in these bytes, like `load_config`. `file`: the name in errors; relative
    paths are resolved against its directory. Raises `ConfigErrors`."""
    try:
        document = read_yaml(data)
    except YamlError as e:
        place = f"{file}:{e.line}" if e.line else file
        raise ConfigErrors([f"{place}: not readable as YAML or JSON: {e.problem}"]) from None
    decoder = Decoder(file, document)
    value = document.value
    if value is None:
        raise ConfigErrors([f"{file}: the file is empty; wanted a {KIND} (apiVersion, kind, ...)"])
    if not isinstance(value, dict):
        raise ConfigErrors([f"{file}: wanted a {KIND}, found {describe(value)}"])
    if document.more:
        decoder.problems.append(f"{file}: holds more than one document; wanted one {KIND}")
    _check_type(decoder, value)
    config = decoder.struct(KubeletConfiguration, value, (), ignore=_TYPE_META)
    if not decoder.problems:
        config = _complete(config, value)
        decoder.problems.extend(f"{file}: {problem}" for problem in validate(config))
    if decoder.problems:
        raise ConfigErrors(decoder.problems)
    _tell_what_is_not_acted_on(file, value)
    return with_named_cpus(config)


def _check_type(decoder: Decoder, value: dict[str, Any]) -> None:
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if value.get(key) != wanted:
            decoder.problem((key,), f"wanted {wanted}, found {describe(value.get(key))}")


def _complete(config: KubeletConfiguration, value: dict[str, Any]) -> KubeletConfiguration:
    """`config` with the defaults that depend on other fields. `value`: the file's mapping."""
    hard = config.eviction_hard
    if hard is None:
        hard = DEFAULT_EVICTION_HARD
    elif config.merge_default_eviction_settings:
        hard = MappingProxyType({**DEFAULT_EVICTION_HARD, **hard})
    report_s = config.node_status_report_frequency_s
    if value.get("nodeStatusUpdateFrequency") and not value.get("nodeStatusReportFrequency"):
        report_s = config.node_status_update_frequency_s
    image_endpoint = config.image_service_endpoint or config.container_runtime_endpoint
    serialize = config.serialize_image_pulls
    if value.get("serializeImagePulls") is None:  # BACK-208
        serialize = (config.max_parallel_image_pulls or 0) < 2
    return replace(
        config,
        serialize_image_pulls=serialize,
        eviction_hard=hard,
        node_status_report_frequency_s=report_s,
        image_service_endpoint=image_endpoint,
    )


def defaults_without_file() -> KubeletConfiguration:
    """The configuration of a kubelet without `--config`: no authentication of its servers, and no
    eviction (CFG-004)."""
    config = KubeletConfiguration(
        read_only_port=10255,
        eviction_hard=MappingProxyType({}),
        authentication=Authentication(
            webhook=WebhookAuthentication(enabled=False),
            anonymous=AnonymousAuthentication(enabled=True),
        ),
        authorization=Authorization(mode="AlwaysAllow"),
    )
    return _complete(config, {})


def fields_not_acted_on() -> tuple[str, ...]:
    """The names of the fields that are accepted and ignored."""
    names = [info_of(f).wire for f in fields(KubeletConfiguration)]
    return tuple(names[names.index(FIRST_FIELD_NOT_ACTED_ON) :])


def _tell_what_is_not_acted_on(file: str, value: dict[str, Any]) -> None:
    ignored = [name for name in fields_not_acted_on() if value.get(name) is not None]
    if ignored:
        log.warning("%s: accepted, but refkubelet does not act on: %s", file, ", ".join(ignored))
    if unknown := gates.others(value.get("featureGates") or {}):
        log.warning(
            "%s: featureGates: accepted, but without effect in refkubelet: %s",
            file,
            ", ".join(unknown),
        )


__all__ = [
    "ConfigError",
    "ConfigErrors",
    "defaults_without_file",
    "fields_not_acted_on",
    "load_config",
    "parse_config",
]
