"""Reads the files of credential providers, one or a directory of them (CFG-014).

Files are read strictly, unlike the kubelet's own configuration; all mistakes of all files are one
error, and none of a wrong configuration has an effect.
Upstream: pkg/credentialprovider/plugin/config.go: readCredentialProviderConfig; plugin.go:
RegisterCredentialProviderPlugins.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from refkubelet.config.credentials.providers import (
    API_VERSIONS,
    KIND,
    WITH_TOKENS,
    CredentialProvider,
    CredentialProviderConfig,
    provider_problems,
)
from refkubelet.config.decode import decoded, read_file
from refkubelet.config.schema.errors import ConfigErrors

FLAG: Final = "--image-credential-provider-config"
BIN_DIR_FLAG: Final = "--image-credential-provider-bin-dir"
SUFFIXES: Final = (".json", ".yaml", ".yml")


class CredentialProviders(Struct, frozen=True):
    """The plug-ins of a kubelet in the order in which they are asked, and where their programs
    are."""

    providers: tuple[CredentialProvider, ...]
    bin_dir: Path
    config_hash: str = ""
    """`sha256:` and the hash of the files, each after its length; "": it is not known."""


class _Read(Struct, frozen=True):
    """A file, its providers, and what is wrong with it."""

    providers: tuple[CredentialProvider, ...] = ()
    problems: tuple[str, ...] = ()
    content: bytes = b""


def load_credential_providers(
    config: str, bin_dir: str, *, tokens_on: bool = True
) -> CredentialProviders | None:
    """The providers that the two flags name; None if neither is given.

    `config`: a file, or a directory whose `*.json`, `*.yaml` and `*.yml` are read by name;
    `tokens_on`: the gate for tokens of service accounts. Raises `ConfigErrors` with all mistakes,
    programs that are missing among them.
    """
    if not config and not bin_dir:
        return None
    problems = [*_flag_problems(config, bin_dir)]
    providers: list[CredentialProvider] = []
    files = hashlib.sha256()
    for file in _files(config, problems):
        read = _read(file, tokens_on=tokens_on)
        files.update(len(read.content).to_bytes(8, "big") + read.content)
        providers += read.providers
        problems += read.problems
    problems += _together(config, providers) if not problems else ()
    problems += _missing_programs(providers, bin_dir) if not problems else ()
    if problems:
        raise ConfigErrors(problems)
    return CredentialProviders(
        tuple(providers), Path(bin_dir).absolute(), f"sha256:{files.hexdigest()}"
    )


def _flag_problems(config: str, bin_dir: str) -> Iterator[str]:
    if not config:
        yield f"{FLAG} is missing: with {BIN_DIR_FLAG} it names the file of the plug-ins"
    if not bin_dir:
        yield f"{BIN_DIR_FLAG} is missing: with {FLAG} it names the directory of their programs"
    elif not Path(bin_dir).is_dir():
        yield f"{BIN_DIR_FLAG} {bin_dir}: plugin binary directory {bin_dir} did not exist"


def _files(config: str, problems: list[str]) -> list[Path]:
    path = Path(config)
    if not config:
        return []
    try:
        if not path.is_dir():
            return [path]
        files = sorted(f for f in path.iterdir() if f.suffix in SUFFIXES and not f.is_dir())
    except OSError as error:
        problems.append(_unreadable(path, error))
        return []
    if not files:
        problems.append(
            f"{FLAG} {config}: no configuration files found in directory {config}; wanted "
            f"*{', *'.join(SUFFIXES)}"
        )
    return files


def _read(file: Path, *, tokens_on: bool) -> _Read:
    try:
        content = file.read_bytes()
        document = read_file(content, str(file), KIND)
        config = decoded(document, str(file), CredentialProviderConfig, API_VERSIONS)
    except OSError as error:
        return _Read(problems=(_unreadable(file, error),))
    except ConfigErrors as error:
        return _Read(problems=tuple(error.problems))
    with_tokens = document.value["apiVersion"] == WITH_TOKENS
    problems: list[str] = []
    for number, provider in enumerate(config.providers):
        for field, text in provider_problems(
            provider, f"providers[{number}]", with_tokens=with_tokens, tokens_on=tokens_on
        ):
            line = document.line_of(("providers", number, field))
            problems.append(f"{file}:{line}: {text}" if line else f"{file}: {text}")
    return _Read(config.providers, tuple(problems), content)


def _together(config: str, providers: Sequence[CredentialProvider]) -> Iterator[str]:
    """What is wrong with the providers of all files."""
    if not providers:
        yield f"{config}: providers: Required value: at least 1 item in plugins is required"
    names = [provider.name for provider in providers]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield f'{config}: duplicate provider name "{name}" found in configuration file(s)'


def _missing_programs(providers: Sequence[CredentialProvider], bin_dir: str) -> Iterator[str]:
    for provider in providers:
        path = Path(bin_dir) / provider.name
        if not path.is_file():
            yield f"{BIN_DIR_FLAG} {bin_dir}: plugin binary executable {path} did not exist"
        elif not os.access(path, os.X_OK):
            yield f"{BIN_DIR_FLAG} {bin_dir}: {path} cannot be executed; wanted a program"


def _unreadable(path: Path, error: OSError) -> str:
    return f"{FLAG} {path}: cannot be read: {(error.strerror or str(error)).lower()}"
