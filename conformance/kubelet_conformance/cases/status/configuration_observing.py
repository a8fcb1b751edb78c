"""Values of `logging` and `tracing` with which a kubelet does not start (CFG-012, CFG-013)."""

from __future__ import annotations

from typing import Any, Final

from kubelet_conformance.harness.expect import expect
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, Level, conformance

STATUS, RESTART = Feature.STATUS, Feature.RESTART
TOO_MUCH: Final = 2**31
SCHEMES: Final = (
    "Options are none, dns, unix, or unix-abstract.  "
    "See https://github.com/grpc/grpc/blob/master/doc/naming.md"
)
ENDPOINTS: Final = {
    "http://collector:4317": f"unsupported scheme: http.  {SCHEMES}",
    "HTTPS://collector": f"unsupported scheme: https.  {SCHEMES}",
    "//collector": f"unsupported scheme: .  {SCHEMES}",
    "://collector": "missing protocol scheme",
    "dns://a b": 'invalid character " " in host name',
    "dns://a:b": 'invalid port ":b" after host',
    "a\tb": "net/url: invalid control character in URL",
}
"""What is said of an endpoint."""


async def _refused(node: Node, config: dict[str, Any], *texts: str) -> None:
    """Expect that the kubelet does not start with this configuration, and says these texts."""
    error = await node.kubelet.refused_start(**config)
    for text in texts:
        expect(node, text in error, f"a kubelet that ends with {text!r}", error)
    await node.kubelet.start()


@conformance(
    id="config-logging-refused",
    rules=["CFG-012.2", "CFG-012.3", "CFG-005"],
    level=Level.SHOULD,
    needs=[STATUS, RESTART],
)
async def what_logs_cannot_be_ends_the_start(node: Node) -> None:
    """The kubelet does not start with another format, a frequency of nothing, too much verbosity,
    patterns of files that are none, or options whose gate is off, and names each of them."""
    patterns = [
        {"filePattern": "", "verbosity": 1},
        {"filePattern": "a=b", "verbosity": 1},
        {"filePattern": "a,b", "verbosity": 1},
        {"filePattern": "a", "verbosity": TOO_MUCH},
    ]
    logging = {"verbosity": TOO_MUCH, "flushFrequency": "-1s", "vmodule": patterns}
    pattern_error = "File pattern must not contain equal sign or comma"
    most = "Must be <= 2147483647"
    await _refused(
        node,
        {"logging": logging},
        'logging.flushFrequency: Invalid value: "-1s": Must be greater than zero',
        f"logging.verbosity: Invalid value: {TOO_MUCH}: {most}",
        "logging.vmodule[0]: Required value: File pattern must not be empty",
        f'logging.vmodule[1]: Invalid value: "a=b": {pattern_error}',
        f'logging.vmodule[2]: Invalid value: "a,b": {pattern_error}',
        f"logging.vmodule[3]: Invalid value: {TOO_MUCH}: {most}",
    )
    options = {name: {"infoBufferSize": "1k"} for name in ("text", "json")}
    disabled = "Forbidden: Feature LoggingAlphaOptions is disabled"
    await _refused(
        node,
        {"logging": {"format": "xml", "vmodule": patterns[3:], "options": options}},
        'logging.format: Invalid value: "xml": Unsupported log format',
        "logging.vmodule: Forbidden: Only supported for text log format",
        *(f"logging.options.{name}.infoBufferSize: {disabled}" for name in options),
    )


@conformance(
    id="config-tracing-refused",
    rules=["CFG-013.2", "CFG-013.3", "CFG-005"],
    level=Level.SHOULD,
    needs=[STATUS, RESTART],
)
async def what_spans_cannot_be_ends_the_start(node: Node) -> None:
    """The kubelet does not start with a rate of spans below 0 or above a million, or an endpoint
    that gRPC does not know."""
    field = "tracing.samplingRatePerMillion: Invalid value"
    for rate, why in (
        (-1, "sampling rate must be positive"),
        (1_000_001, "sampling rate per million must be less than or equal to one million"),
    ):
        tracing = {"samplingRatePerMillion": rate}
        await _refused(node, {"tracing": tracing}, f"{field}: {rate}: {why}")
    for endpoint, why in ENDPOINTS.items():
        await _refused(node, {"tracing": {"endpoint": endpoint}}, "tracing.endpoint", why)
