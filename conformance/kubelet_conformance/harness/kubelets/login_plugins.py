"""Credential provider plug-ins of a case: scripts that a kubelet runs, and what they were asked.

A plug-in is a shell script in the case's directory of programs. What it answers lies in files
beside it, and there it writes what it was asked; so a case can look and change at any time. In
virtual time nobody runs scripts: `PlayedScripts` does what they would do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from kubelet_conformance.harness.image_registry import PASSWORD, USER
from kubelet_conformance.harness.kubelets.base import NodePaths
from refkubelet.host.programs import Finished, Program

PROTOCOL: Final = "credentialprovider.kubelet.k8s.io/v1"
CONFIG_VERSION: Final = "kubelet.config.k8s.io/v1"
SCRIPT: Final = """#!/bin/sh
cd {directory} || exit 9
run=asked/$(date +%s%N)-$$
cat > "$run.stdin"
env > "$run.env"
printf '%s\\n' "$@" > "$run.part"
mv "$run.part" "$run.args"
sleep "$(cat takes_s)"
cat answer
exit "$(cat code)"
"""


class LoginPlugin(Struct, frozen=True):
    """A plug-in in the CredentialProviderConfig; `more`: further fields of its entry."""

    name: str
    match_images: Sequence[str]
    more: Mapping[str, Any] = field(default_factory=dict)

    def entry(self) -> dict[str, Any]:
        """Its entry in the configuration."""
        return {
            "name": self.name,
            "matchImages": list(self.match_images),
            "defaultCacheDuration": "0s",
            "apiVersion": PROTOCOL,
            **self.more,
        }


class Asked(Struct, frozen=True):
    """One run of a plug-in."""

    request: dict[str, Any]
    args: tuple[str, ...]
    environment: Mapping[str, str]


def provider_config(*plugins: LoginPlugin, version: str = CONFIG_VERSION) -> dict[str, Any]:
    """A CredentialProviderConfig with these plug-ins, in order."""
    providers = [plugin.entry() for plugin in plugins]
    return {"apiVersion": version, "kind": "CredentialProviderConfig", "providers": providers}


def answer_of(*places: str, user: str = USER, password: str = PASSWORD, **fields: Any) -> str:
    """A CredentialProviderResponse with one login for these places, kept by image; `fields`
    replace or add."""
    login = {"username": user, "password": password}
    return json.dumps(
        {
            "apiVersion": PROTOCOL,
            "kind": "CredentialProviderResponse",
            "cacheKeyType": "Image",
            "auth": dict.fromkeys(places, login),
            **fields,
        }
    )


class LoginPrograms:
    """The programs of a case, in its directory."""

    def __init__(self, paths: NodePaths) -> None:
        self._paths = paths

    def write_config(self, config: Mapping[str, Any]) -> None:
        """What the kubelet reads when it starts next."""
        self._paths.login_programs.mkdir(parents=True, exist_ok=True)
        self._paths.login_config.write_text(json.dumps(config))

    def remove_config(self) -> None:
        """The kubelet has no plug-ins when it starts next."""
        self._paths.login_config.unlink()

    def add(self, name: str, answer: str) -> None:
        """A program that answers so."""
        directory = self._beside(name)
        (directory / "asked").mkdir(parents=True, exist_ok=True)
        script = self._paths.login_programs / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(SCRIPT.format(directory=f"'{directory}'"))
        script.chmod(0o755)
        self.set(name, answer=answer)

    def set(self, name: str, *, answer: str, code: int = 0, takes_s: float = 0) -> None:
        """What it does from now on."""
        directory = self._beside(name)
        (directory / "answer").write_text(answer)
        (directory / "code").write_text(str(code))
        (directory / "takes_s").write_text(f"{takes_s:g}")

    def asked(self, name: str) -> list[Asked]:
        """Its runs, the first one first."""
        return [_asked(file) for file in sorted((self._beside(name) / "asked").glob("*.args"))]

    def _beside(self, name: str) -> Path:
        return self._paths.base / "login-plugins" / name


def _asked(args: Path) -> Asked:
    variables = args.with_suffix(".env").read_text().splitlines()
    standard_input = args.with_suffix(".stdin").read_text()
    pairs = (line.partition("=") for line in variables)
    return Asked(
        json.loads(standard_input) if standard_input else {},
        tuple(args.read_text().splitlines()),
        {name: value for name, _, value in pairs},
    )


class PlayedScripts:
    """Does in virtual time what the scripts do (refkubelet's `Programs`)."""

    def __init__(self, paths: NodePaths) -> None:
        self._directory = paths.base / "login-plugins"

    async def run(self, program: Program) -> Finished:
        """Play the script of that name."""
        command, *args = program.command
        directory = self._directory / Path(command).name
        before = len(list((directory / "asked").glob("*.args")))
        run = directory / "asked" / f"{before + 1:06}"
        run.with_suffix(".stdin").write_bytes(program.stdin)
        lines = (f"{name}={value}\n" for name, value in program.environment.items())
        run.with_suffix(".env").write_text("".join(lines))
        run.with_suffix(".args").write_text("".join(f"{arg}\n" for arg in args))
        await asyncio.sleep(float((directory / "takes_s").read_text()))
        code = int((directory / "code").read_text())
        return Finished(code, (directory / "answer").read_bytes())
