"""Checks `logging` and `tracing` of a KubeletConfiguration, in upstream's words. Pure.

Upstream: staging/src/k8s.io/component-base: logs/api/v1/options.go: Validate,
tracing/api/v1/config.go: ValidateTracingConfiguration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubeobjects.golang.duration import format_duration
from kubeobjects.golang.strconv import quoted
from refkubelet.config.schema.kubelet_config import KubeletConfiguration, Logging, OutputRouting
from refkubelet.config.validation.errors import MAX_INT32, forbidden, invalid, required

TEXT: Final = "text"
FORMATS: Final = (TEXT, "json")
ALPHA: Final = "LoggingAlphaOptions"
MOST_PER_MILLION: Final = 1_000_000
SCHEMES: Final = ("dns", "unix", "unix-abstract")
_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NOT_IN_HOSTS: Final = re.compile(r"[ \\^`{|}]")
_PORT: Final = re.compile(r"(?:[^:\[\]]*|\[[^\]]*\]):(?!\d*\Z)")


def logging_problems(config: KubeletConfiguration) -> Iterator[str]:
    """What is wrong with `logging`."""
    log = config.logging
    if log.flush_frequency_s <= 0:
        frequency = format_duration(log.flush_frequency_s)
        yield invalid("logging.flushFrequency", frequency, "Must be greater than zero")
    if log.format not in FORMATS:
        yield invalid("logging.format", log.format, "Unsupported log format")
    if log.verbosity > MAX_INT32:
        yield invalid("logging.verbosity", log.verbosity, f"Must be <= {MAX_INT32}")
    yield from _vmodule(log)
    if not config.feature_gates.get(ALPHA, False):
        for name, routing in ((TEXT, log.options.text), ("json", log.options.json)):
            yield from _routing(f"logging.options.{name}", routing)


def _vmodule(log: Logging) -> Iterator[str]:
    if log.vmodule and log.format != TEXT:
        yield forbidden("logging.vmodule", "Only supported for text log format")
    for index, item in enumerate(log.vmodule):
        field = f"logging.vmodule[{index}]"
        if not item.file_pattern:
            yield required(field, "File pattern must not be empty")
        if "=" in item.file_pattern or "," in item.file_pattern:
            why = "File pattern must not contain equal sign or comma"
            yield invalid(field, item.file_pattern, why)
        if item.verbosity > MAX_INT32:
            yield invalid(field, item.verbosity, f"Must be <= {MAX_INT32}")


def _routing(field: str, routing: OutputRouting) -> Iterator[str]:
    why = f"Feature {ALPHA} is disabled"
    if routing.split_stream:
        yield forbidden(f"{field}.splitStream", why)
    if routing.info_buffer_size_bytes:
        yield forbidden(f"{field}.infoBufferSize", why)


def tracing_problems(config: KubeletConfiguration) -> Iterator[str]:
    """What is wrong with `tracing`; nothing where there is none."""
    if config.tracing is None:
        return
    rate, endpoint = config.tracing.sampling_rate_per_million, config.tracing.endpoint
    field = "tracing.samplingRatePerMillion"
    if rate is not None and rate < 0:
        yield invalid(field, rate, "sampling rate must be positive")
    if rate is not None and rate > MOST_PER_MILLION:
        why = "sampling rate per million must be less than or equal to one million"
        yield invalid(field, rate, why)
    if endpoint is not None:
        yield from _endpoint(endpoint if "//" in endpoint else f"dns://{endpoint}")


def _endpoint(url: str) -> Iterator[str]:
    """As gRPC names hosts and sockets."""
    if problem := _url_problem(url):
        yield invalid("tracing.endpoint", url, f"parse {quoted(url)}: {problem}")
        return
    match = _SCHEME.match(url)
    scheme = match[1].lower() if match else ""
    if scheme not in SCHEMES:
        why = (
            f"unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  "
            "See https://github.com/grpc/grpc/blob/master/doc/naming.md"
        )
        yield invalid("tracing.endpoint", url, why)


def _url_problem(url: str) -> str:
    """Why Go's net/url cannot read it, in its words; "": it can."""
    if _CONTROL.search(url):
        return "net/url: invalid control character in URL"
    if url.startswith(":"):
        return "missing protocol scheme"
    host = re.split(r"[/?#]", url.partition("//")[2])[0].rpartition("@")[2]
    if wrong := _NOT_IN_HOSTS.search(host):
        return f"invalid character {quoted(wrong[0])} in host name"
    if wrong := _PORT.match(host):
        return f"invalid port {quoted(host[wrong.end() - 1 :])} after host"
    return ""
