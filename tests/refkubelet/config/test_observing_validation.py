"""`logging` and `tracing` of a KubeletConfiguration: taken, or refused in upstream's words."""

from __future__ import annotations

import pytest

from kubeobjects.structs import replace
from refkubelet.config import ConfigError, KubeletConfiguration, parse_config
from refkubelet.config.encode import as_v1beta1
from refkubelet.config.validation.observing import logging_problems

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def config(text: str) -> KubeletConfiguration:
    return parse_config((HEAD + text).encode(), "k.yaml")


def complaints(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config(text)
    return [line.removeprefix("k.yaml: ") for line in str(caught.value).splitlines()]


def test_what_is_given_is_taken_CFG_012() -> None:
    log = config("logging: {format: json, verbosity: 4, flushFrequency: 7000000000}").logging
    assert (log.format, log.verbosity, log.flush_frequency_s) == ("json", 4, 7.0)
    given = config("logging: {vmodule: [{filePattern: 'pod*', verbosity: 5}]}").logging
    assert [(item.file_pattern, item.verbosity) for item in given.vmodule] == [("pod*", 5)]


@pytest.mark.parametrize(
    "text", ["", "logging: {}", "logging: {format: '', flushFrequency: 0, verbosity: 0}"]
)
def test_defaults_are_text_every_five_seconds_and_quiet_CFG_012(text: str) -> None:
    log = config(text).logging
    assert (log.format, log.flush_frequency_s, log.verbosity) == ("text", 5.0, 0)
    assert as_v1beta1(config(text))["logging"] == {
        "format": "text",
        "flushFrequency": "5s",
        "verbosity": 0,
        "options": {"text": {"infoBufferSize": "0"}, "json": {"infoBufferSize": "0"}},
    }


LOG_OF = "Feature LoggingAlphaOptions is disabled"
WRONG_LOGGING = {
    "format: xml": 'logging.format: Invalid value: "xml": Unsupported log format',
    "flushFrequency: -1s": (
        'logging.flushFrequency: Invalid value: "-1s": Must be greater than zero'
    ),
    "verbosity: 2147483648": (
        "logging.verbosity: Invalid value: 2147483648: Must be <= 2147483647"
    ),
    "format: json, vmodule: [{filePattern: a, verbosity: 1}]": (
        "logging.vmodule: Forbidden: Only supported for text log format"
    ),
    "vmodule: [{verbosity: 1}]": (
        "logging.vmodule[0]: Required value: File pattern must not be empty"
    ),
    "vmodule: [{filePattern: 'a=b'}]": (
        'logging.vmodule[0]: Invalid value: "a=b": '
        "File pattern must not contain equal sign or comma"
    ),
    "vmodule: [{filePattern: 'a,b'}]": (
        'logging.vmodule[0]: Invalid value: "a,b": '
        "File pattern must not contain equal sign or comma"
    ),
    "vmodule: [{filePattern: a, verbosity: 2147483648}]": (
        "logging.vmodule[0]: Invalid value: 2147483648: Must be <= 2147483647"
    ),
    "options: {json: {splitStream: true}}": (
        f"logging.options.json.splitStream: Forbidden: {LOG_OF}"
    ),
    "options: {text: {infoBufferSize: 1Ki}}": (
        f"logging.options.text.infoBufferSize: Forbidden: {LOG_OF}"
    ),
}


@pytest.mark.parametrize(("given", "text"), WRONG_LOGGING.items())
def test_wrong_logging_is_refused_in_upstreams_words_CFG_012(given: str, text: str) -> None:
    assert complaints(f"logging: {{{given}}}") == [text]


def test_a_gate_lets_options_of_formats_be_CFG_012(caplog: pytest.LogCaptureFixture) -> None:
    config(
        "logging: {options: {json: {splitStream: true}}}\nfeatureGates: {LoggingAlphaOptions: true}"
    )
    assert "logging: accepted, but without effect in refkubelet: options" in caplog.text


@pytest.mark.parametrize("verbosity", ["-1", "4294967296", "high", "1.5"])
def test_a_verbosity_that_is_no_number_of_32_bits(verbosity: str) -> None:
    (text,) = complaints(f"logging: {{verbosity: {verbosity}}}")
    assert "logging.verbosity: wanted an integer from 0 to 4294967295, got" in text


@pytest.mark.parametrize(
    "endpoint",
    [
        *("collector:4317", "dns:///c:4317", "unix:///run/otel.sock", "unix-abstract://a", ""),
        *("dns://c:1/a b:x", "dns://a:p@c:1", "dns://c:1?x//y:z", "c:1/x#b c"),
    ],
)
def test_endpoints_are_named_as_grpc_names_them_CFG_013(endpoint: str) -> None:
    tracing = config(f"tracing: {{endpoint: '{endpoint}', samplingRatePerMillion: 100}}").tracing
    assert tracing is not None
    assert (tracing.endpoint, tracing.sampling_rate_per_million) == (endpoint, 100)


@pytest.mark.parametrize("rate", [0, 1, 1_000_000])
def test_rates_are_of_a_million_CFG_013(rate: int) -> None:
    tracing = config(f"tracing: {{samplingRatePerMillion: {rate}}}").tracing
    assert tracing is not None
    assert tracing.sampling_rate_per_million == rate


def test_the_greatest_verbosities_and_the_shortest_times_CFG_012() -> None:
    most = 2**31 - 1
    log = config(
        f"logging: {{flushFrequency: 1ns, verbosity: {most}, "
        f"vmodule: [{{filePattern: a, verbosity: {most}}}]}}"
    ).logging
    assert (log.verbosity, log.vmodule[0].verbosity) == (most, most)
    never = replace(KubeletConfiguration(), logging=replace(log, flush_frequency_s=0.0))
    assert list(logging_problems(never)) == [
        'logging.flushFrequency: Invalid value: "0s": Must be greater than zero'
    ]


def test_without_tracing_there_is_none_CFG_013() -> None:
    assert config("").tracing is None
    assert "tracing" not in as_v1beta1(config(""))
    shown = as_v1beta1(config("tracing: {samplingRatePerMillion: 5}"))
    assert shown["tracing"] == {"samplingRatePerMillion": 5}


RATE = "tracing.samplingRatePerMillion: Invalid value: "
END = "tracing.endpoint: Invalid value: "
WRONG_TRACING = {
    "samplingRatePerMillion: -1": f"{RATE}-1: sampling rate must be positive",
    "samplingRatePerMillion: 1000001": (
        f"{RATE}1000001: sampling rate per million must be less than or equal to one million"
    ),
    "endpoint: 'HTTP://c:4317'": (
        f'{END}"HTTP://c:4317": unsupported scheme: http.  Options are none, dns, unix, or '
        "unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md"
    ),
    "endpoint: 'c:port'": (
        f'{END}"dns://c:port": parse "dns://c:port": invalid port ":port" after host'
    ),
    "endpoint: 'a b:1'": (
        f'{END}"dns://a b:1": parse "dns://a b:1": invalid character " " in host name'
    ),
    'endpoint: "a\\tb"': (
        f'{END}"dns://a\\tb": parse "dns://a\\tb": net/url: invalid control character in URL'
    ),
    "endpoint: '//c'": (
        f'{END}"//c": unsupported scheme: .  Options are none, dns, unix, or unix-abstract.  '
        "See https://github.com/grpc/grpc/blob/master/doc/naming.md"
    ),
    "endpoint: '://c'": f'{END}"://c": parse "://c": missing protocol scheme',
}


@pytest.mark.parametrize(("given", "text"), WRONG_TRACING.items())
def test_wrong_tracing_is_refused_in_upstreams_words_CFG_013(given: str, text: str) -> None:
    assert complaints(f"tracing: {{{given}}}") == [text]
