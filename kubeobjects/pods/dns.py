"""What is wrong with how a pod is named, and how it finds names: DNS, hosts, host names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kubeobjects.addresses import address_problems
from kubeobjects.causes import (
    Cause,
    forbidden_field,
    invalid_texts,
    invalid_value,
    required,
    too_long,
)
from kubeobjects.names import byte_length, explained
from kubeobjects.pods.common.checks import Object, subdomain

MAX_SERVERS: Final = 3
MAX_SEARCHES: Final = 32
MAX_SEARCH_CHARACTERS: Final = 2048
MAX_HOST_NAME: Final = 64
_MAX_DOMAIN: Final = 253
_PART: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_DOMAIN: Final = rf"{_PART}(\.{_PART})*"
_DOMAIN_RULE: Final = explained(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' "
    "or '.', and must start and end with an alphanumeric character",
    _DOMAIN,
    "example.com",
)


def dns_causes(spec: Object) -> Iterator[Cause]:
    """What is wrong with the configuration of DNS. A pod with policy None has to bring servers."""
    config, path = spec.get("dnsConfig"), "spec.dnsConfig"
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{path}.nameservers", text)
            return
    if config is None:
        return
    servers = config.get("nameservers") or ()
    if len(servers) > MAX_SERVERS:
        text = f"must not have more than {MAX_SERVERS} nameservers"
        yield invalid_value(f"{path}.nameservers", servers, text)
    for i, server in enumerate(servers):
        yield from invalid_texts(f"{path}.nameservers[{i}]", server, address_problems(server))
    yield from _search_causes(config.get("searches") or [], f"{path}.searches")
    for i, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required(f"{path}.options[{i}]", "must not be empty")


def _search_causes(searches: list[str], path: str) -> Iterator[Cause]:
    """The domains in which names are searched, as resolvers limit them."""
    if len(searches) > MAX_SEARCHES:
        text = f"must not have more than {MAX_SEARCHES} search paths"
        yield invalid_value(path, searches, text)
    if byte_length(" ".join(searches)) > MAX_SEARCH_CHARACTERS:
        text = f"must not have more than {MAX_SEARCH_CHARACTERS} characters (including spaces)"
        yield invalid_value(path, searches, f"{text} in the search list")
    for i, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            yield from invalid_texts(f"{path}[{i}]", domain, _domain_problems(domain))


def _domain_problems(domain: str) -> list[str]:
    """What is wrong with a subdomain in which there may be underscores."""
    length = byte_length(domain)
    problems = [f"must be no more than {_MAX_DOMAIN} characters"] if length > _MAX_DOMAIN else []
    return problems if re.fullmatch(_DOMAIN, domain) else [*problems, _DOMAIN_RULE]


def alias_causes(aliases: Iterable[Object]) -> Iterator[Cause]:
    """What is wrong with the entries that the pod adds to its file of hosts."""
    for i, alias in enumerate(aliases):
        path, address = f"spec.hostAliases[{i}]", alias.get("ip") or ""
        yield from invalid_texts(f"{path}.ip", address, address_problems(address))
        for j, name in enumerate(alias.get("hostnames") or ()):
            yield from subdomain(name, f"{path}.hostnames[{j}]")


def host_name_causes(spec: Object) -> Iterator[Cause]:
    """What is wrong with a host name that replaces all others."""
    name, path = spec.get("hostnameOverride"), "spec.hostnameOverride"
    if name is None:
        return
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field):
            yield forbidden_field(path, f"may not be specified when {field} is true")
    if byte_length(name) > MAX_HOST_NAME:
        yield too_long(path, MAX_HOST_NAME)
    yield from subdomain(name, path)
