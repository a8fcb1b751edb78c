"""CredentialProviderConfig: the programs that know logins for image registries. Pure.

The schema, and what is wrong with a configuration (CFG-014). Texts after the field are upstream's.
`credential_provider_files` reads the files.
Upstream: pkg/credentialprovider/plugin/config.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import field

from kubeobjects.golang.duration import format_duration
from refkubelet.config.schema import fields as f
from refkubelet.config.validation.errors import (
    duplicate,
    forbidden,
    invalid,
    one_of,
    qualified_name,
    required,
)

GATE: Final = "KubeletServiceAccountTokenForCredentialProviders"
KIND: Final = "CredentialProviderConfig"
WITH_TOKENS: Final = "kubelet.config.k8s.io/v1"  # the only version that has tokenAttributes
API_VERSIONS: Final = (
    WITH_TOKENS,
    "kubelet.config.k8s.io/v1beta1",
    "kubelet.config.k8s.io/v1alpha1",
)
PROTOCOL_V1: Final = "credentialprovider.kubelet.k8s.io/v1"
PROTOCOLS: Final = (
    PROTOCOL_V1,
    "credentialprovider.kubelet.k8s.io/v1alpha1",
    "credentialprovider.kubelet.k8s.io/v1beta1",
)
PER_ACCOUNT: Final = "ServiceAccount"
PER_TOKEN: Final = "Token"
CACHE_TYPES: Final = (PER_ACCOUNT, PER_TOKEN)
_HOST: Final = re.compile(r"[^\s:<>\"\\^`{|}\[\]%/?#]+(:[0-9]*)?\Z|\[[0-9A-Fa-f:.]+\](:[0-9]*)?\Z")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}")

Problem = tuple[str, str]
"""The field of the provider, as `tokenAttributes`, and the whole error."""


class ExecEnvVar(f.Schema, frozen=True):
    """A variable of the plug-in's environment, over the kubelet's own."""

    name: str = ""
    value: str = ""


class TokenAttributes(f.Schema, frozen=True):
    """What the plug-in gets of the pod's service account: a token for that audience, and the
    annotations of these keys. `cache_type`: whether its answers are kept for each account or for
    each token."""

    audience: str = field(default="", name="serviceAccountTokenAudience")
    cache_type: str = ""
    require_account: bool | None = field(default=None, name="requireServiceAccount")
    required_keys: tuple[str, ...] = field(default=(), name="requiredServiceAccountAnnotationKeys")
    optional_keys: tuple[str, ...] = field(default=(), name="optionalServiceAccountAnnotationKeys")


class CredentialProvider(f.Schema, frozen=True):
    """A plug-in: the program `name` in the directory of plug-ins, which is asked for images that
    one of `match_images` covers."""

    name: str = ""
    match_images: tuple[str, ...] = ()
    default_cache_s: f.Duration | None = field(default=None, name="defaultCacheDuration")
    api_version: str = ""
    args: tuple[str, ...] = ()
    env: tuple[ExecEnvVar, ...] = ()
    token_attributes: TokenAttributes | None = None


class CredentialProviderConfig(f.Schema, frozen=True):
    """One file."""

    providers: tuple[CredentialProvider, ...] = ()


def provider_problems(
    provider: CredentialProvider, at: str, *, with_tokens: bool = True, tokens_on: bool = True
) -> Iterator[Problem]:
    """All that is wrong with the provider at that place of its file, as `providers[0]`.
    `with_tokens`: the version of the file has tokenAttributes; `tokens_on`: so has the kubelet, by
    its gate."""
    for problem in _name_problems(f"{at}.name", provider.name):
        yield "name", problem
    version = f"{at}.apiVersion"
    if not provider.api_version:
        yield "apiVersion", required(version)
    for problem in one_of(version, provider.api_version or None, PROTOCOLS):
        yield "apiVersion", problem
    for problem in _image_problems(f"{at}.matchImages", provider.match_images):
        yield "matchImages", problem
    field, kept_s = "defaultCacheDuration", provider.default_cache_s
    if kept_s is None:
        yield field, required(f"{at}.{field}")
    elif kept_s < 0:
        why = "must be greater than or equal to 0"
        yield field, invalid(f"{at}.{field}", format_duration(kept_s), why)
    if provider.token_attributes is None:
        return
    field = "tokenAttributes"
    for problem in _token_problems(f"{at}.{field}", provider, with_tokens, tokens_on):
        yield field, problem


def _image_problems(field: str, images: Iterable[str]) -> Iterator[str]:
    if not images:
        yield required(field, "at least 1 item in matchImages is required")
    for image in images:
        if (wrong := match_image_problem(image)) is not None:
            yield invalid(field, image, f"match image is invalid: {wrong}")


def match_image_problem(image: str) -> str | None:
    """Why an entry of matchImages is none; None: it is a host, perhaps with port and path.

    >>> match_image_problem("*.example.com:5000/team"), match_image_problem("reg.io:x")
    (None, "wanted host[:port][/path], as *.registry.io:8080/path; 'reg.io:x' is no host")
    """
    host, _, _ = image.partition("/")
    bad_escape = _BAD_ESCAPE.search(image)
    if bad_escape is not None:
        return f'invalid URL escape "{bad_escape[0]}"'
    if not _HOST.match(host):
        return f"wanted host[:port][/path], as *.registry.io:8080/path; {host!r} is no host"
    return None


def _name_problems(field: str, name: str) -> Iterator[str]:
    if not name:
        yield required(field, "the program's name in the directory of plug-ins")
    if "/" in name:
        yield invalid(field, name, "provider name cannot contain '/'")
    if "\0" in name:
        yield invalid(field, name, "provider name cannot contain a zero byte")
    if " " in name:
        yield invalid(field, name, "provider name cannot contain spaces")
    if name in (".", ".."):
        yield invalid(field, name, f"provider name cannot be '{name}'")


def _token_problems(
    field: str, provider: CredentialProvider, with_tokens: bool, tokens_on: bool
) -> Iterator[str]:
    token = provider.token_attributes or TokenAttributes()
    if not with_tokens:
        yield forbidden(field, f"only {WITH_TOKENS} has this field")
    if not tokens_on:
        yield forbidden(
            field, f"tokenAttributes is not supported when {GATE} feature gate is disabled"
        )
    if not token.audience:
        yield required(f"{field}.serviceAccountTokenAudience")
    if token.require_account is None:
        yield required(f"{field}.requireServiceAccount")
    if provider.api_version != PROTOCOL_V1:
        yield forbidden(field, f"tokenAttributes is only supported for {PROTOCOL_V1} API version")
    yield from _key_problems(field, token)
    if not token.cache_type:
        yield required(
            f"{field}.cacheType",
            "cacheType is required to be set when tokenAttributes is specified. Supported values "
            f"are: {', '.join(CACHE_TYPES)}",
        )
    yield from one_of(f"{field}.cacheType", token.cache_type or None, CACHE_TYPES)


def _key_problems(field: str, token: TokenAttributes) -> Iterator[str]:
    needed = f"{field}.requiredServiceAccountAnnotationKeys"
    if token.require_account is False and token.required_keys:
        yield forbidden(
            needed,
            "requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is "
            "set",
        )
    optional = f"{field}.optionalServiceAccountAnnotationKeys"
    for where, keys in ((needed, token.required_keys), (optional, token.optional_keys)):
        for number, key in enumerate(keys):
            yield from qualified_name(where, key.lower())
            if key in keys[:number]:
                yield duplicate(where, key)
    if both := sorted(set(token.required_keys) & set(token.optional_keys)):
        yield invalid(field, both, "annotation keys cannot be both required and optional")
