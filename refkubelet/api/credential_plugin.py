"""Bearer tokens from a credential plug-in: a program that the kubeconfig names, which prints one.

It runs when a token is needed: at the first request, and again when the server answers 401. One run
serves all requests that wait; when the request that started it times out, the run is ended too.
What must never happen: a plug-in that hangs is started again beside itself; the output of one that
failed is taken for a token. Client certificates from plug-ins are not supported.
Rules: NODE-007. Upstream: client-go plugin/pkg/client/auth/exec.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from typing import Any, Final

import httpx2
from lightkube.config.models import UserExec

UNAUTHORIZED: Final = 401
FITS_A_HEADER: Final = re.compile(r"[!-~]+")
LONGEST_COMPLAINT: Final = 200  # characters of what the plug-in says


class CredentialError(Exception):
    """The plug-in gave no token; the text says why."""


class PluginAuth(httpx2.Auth):
    """Authenticates requests with tokens of `plugin`. They raise `CredentialError` if it fails."""

    def __init__(self, plugin: UserExec) -> None:
        self._plugin = plugin
        self._token = ""
        self._turn = asyncio.Lock()

    def sync_auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Refused: only the asynchronous client waits for plug-ins."""
        raise RuntimeError("credential plug-ins are for the asynchronous client")

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The request with a token, and once more with a new one if that was refused."""
        token = await self._token_other_than("")
        request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == UNAUTHORIZED:
            token = await self._token_other_than(token)
            request.headers["Authorization"] = f"Bearer {token}"
            yield request

    async def _token_other_than(self, refused: str) -> str:
        """The token at hand, or a new one if that is the refused one."""
        async with self._turn:
            if self._token == refused:
                self._token = ""
                self._token = token_in(await self._run(), self._plugin.command)
            return self._token

    async def _run(self) -> bytes:
        """Run the plug-in once: what it printed. Raises `CredentialError`, OSError."""
        plugin = self._plugin
        info = {"apiVersion": plugin.apiVersion, "kind": "ExecCredential", "spec": {}}
        own = {variable.name: variable.value for variable in plugin.env or ()}
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *(plugin.args or ()),
            env={**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            output, complaint = await process.communicate()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.kill()
            raise
        if process.returncode != 0:
            error_text = complaint.decode(errors="replace").strip()[:LONGEST_COMPLAINT]
            raise CredentialError(
                f"exec: executable {plugin.command} failed with exit code {process.returncode}"
                + (f": {error_text}" if error_text else "")
            )
        return output


def token_in(output: bytes, command: str) -> str:
    """The token of an ExecCredential. Raises `CredentialError`."""
    try:
        value: Any = json.loads(output)
        token = value["status"]["token"]
    except (ValueError, KeyError, TypeError, RecursionError):
        token = None
    if not isinstance(token, str) or not FITS_A_HEADER.fullmatch(token):
        start = output[:80].decode(errors="replace")
        raise CredentialError(
            f"exec: {command}: wanted an ExecCredential with status.token, got {start!r}"
        )
    return token
