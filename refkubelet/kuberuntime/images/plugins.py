"""Asks credential provider plug-ins for logins, and keeps their answers (BACK-214..216).

`plugin_wire` says what they are told and answer, `callers` for which service account they are
asked; a plug-in itself is a program of the node. What must never happen here: a plug-in that
hangs, fails or prints nonsense touches another pull or another plug-in; a password or a token in a
log.
Upstream: pkg/credentialprovider/plugin/plugin.go: pluginProvider, execPlugin; plugins.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from refkubelet.config.credentials.providers import CredentialProvider
from refkubelet.failures import Complaints
from refkubelet.host.programs import Finished, Program, ProgramError, Programs
from refkubelet.kuberuntime.images.callers import Callers, CallerUnknownError
from refkubelet.kuberuntime.images.keyring import Credential, keyring
from refkubelet.kuberuntime.images.plugin_wire import (
    Answer,
    AnswerError,
    CacheKey,
    Caller,
    is_asked,
    kept_under,
    looked_for,
    read_answer,
    request_bytes,
)
from refkubelet.model.objects import Pod
from refkubelet.telemetry.metrics import Durations
from simclock import Clock

log = logging.getLogger(__name__)

RUN_LIMIT_S: Final = 60.0
LONGEST_COMPLAINT: Final = 200  # characters of what a plug-in writes to stderr


class PluginFailed(Exception):
    """A plug-in gave no credentials; the text says why."""


EXPECTED: Final = (PluginFailed, AnswerError, ProgramError, CallerUnknownError)


@dataclass(frozen=True, slots=True)
class PluginDeps:
    """What plug-ins work with. `environment`: the kubelet's own, which they get, too."""

    programs: Programs
    clock: Clock
    callers: Callers
    bin_dir: Path
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    config_hash: str = ""


@dataclass(slots=True)
class PluginMetrics:
    """By plug-in: how many of its runs failed, and how long they took; `config_hash`: of the files
    that name them."""

    config_hash: str = ""
    errors: Counter[str] = field(default_factory=Counter)
    durations: dict[str, Durations] = field(default_factory=dict)


class CredentialPlugins:
    """All plug-ins, in the order of the configuration."""

    def __init__(self, providers: tuple[CredentialProvider, ...], deps: PluginDeps) -> None:
        self.metrics = PluginMetrics(deps.config_hash)
        self._complaints = Complaints(log, deps.clock)
        self._plugins = [CredentialPlugin(p, deps, self.metrics) for p in providers]

    async def lookup(self, pod: Pod, repository: str) -> tuple[Credential, ...]:
        """The credentials of all plug-ins for an image (a full name without tag) of that pod, those
        for the longer place first, else in the order of the plug-ins. One that fails gives none,
        and is told in the log."""
        entries: list[tuple[str, Credential]] = []
        for plugin in self._plugins:
            complaint = f"no logins of the plug-in {plugin.name} for {repository}"
            with self._complaints.guarded(complaint, *EXPECTED):
                entries += await plugin.provide(pod, repository)
        return keyring(entries).lookup(repository)


@dataclass(slots=True)
class _Run:
    """A run under way, and how many wait for it."""

    task: asyncio.Task[Answer]
    waiting: int = 0


class CredentialPlugin:
    """One plug-in, with its answers that are kept and its runs under way."""

    def __init__(
        self, provider: CredentialProvider, deps: PluginDeps, metrics: PluginMetrics
    ) -> None:
        self.name = provider.name
        self._provider = provider
        self._deps = deps
        self._metrics = metrics
        self._kept: dict[CacheKey, tuple[float, Answer]] = {}
        self._runs: dict[CacheKey, _Run] = {}

    async def provide(self, pod: Pod, repository: str) -> list[tuple[str, Credential]]:
        """Its credentials by place, from what is kept or by a run; none for an image that it is not
        for. Raises one of `EXPECTED`."""
        if not is_asked(self._provider, repository):
            return []
        caller = await self._deps.callers.of(pod, self._provider.token_attributes)
        if caller is None:
            return []
        answer = self._known(repository, caller)
        if answer is None:
            answer = await self._run_once(repository, caller)
            self._keep(answer, repository, caller)
        return answer.credentials(caller.source)

    def _known(self, repository: str, caller: Caller) -> Answer | None:
        now_s = self._deps.clock.monotonic_s()
        for key in looked_for(repository, caller):
            until_s, answer = self._kept.get(key, (-1.0, None))
            if now_s <= until_s:
                return answer
        return None

    def _keep(self, answer: Answer, repository: str, caller: Caller) -> None:
        """Keep the answer as long as it says, or by default; and forget those that are too old."""
        keep_s = self._provider.default_cache_s if answer.keep_s is None else answer.keep_s
        now_s = self._deps.clock.monotonic_s()
        if not keep_s:
            return
        self._kept = {key: entry for key, entry in self._kept.items() if now_s <= entry[0]}
        key = kept_under(answer.key_type, repository, caller)
        self._kept[key] = (now_s + keep_s, answer)

    async def _run_once(self, repository: str, caller: Caller) -> Answer:
        """Run the program, or wait for its run for the same image and caller. It is ended when
        nobody waits any more."""
        key = (repository, *caller.run_key)
        run = self._runs.get(key)
        if run is None:
            task = asyncio.create_task(self._run(repository, caller), name=f"plug-in {self.name}")
            run = self._runs[key] = _Run(task)
            task.add_done_callback(lambda _: self._forget(key, run))
        run.waiting += 1
        try:
            return await asyncio.shield(run.task)
        finally:
            run.waiting -= 1
            if not run.waiting:
                self._forget(key, run)
                run.task.cancel()

    def _forget(self, key: CacheKey, run: _Run) -> None:
        if self._runs.get(key) is run:
            del self._runs[key]

    async def _run(self, repository: str, caller: Caller) -> Answer:
        finished = await self._measured(self._program(repository, caller), repository)
        if finished.code != 0:
            self._metrics.errors[self.name] += 1
            words = _said(finished, caller.token)
            raise PluginFailed(f"exit code {finished.code}" + (f": {words}" if words else ""))
        return read_answer(finished.output, self._provider.api_version)

    async def _measured(self, program: Program, repository: str) -> Finished:
        """Run it within a minute. Raises `PluginFailed`, `ProgramError`."""
        began_s = self._deps.clock.monotonic_s()
        try:
            async with asyncio.timeout(RUN_LIMIT_S):
                return await self._deps.programs.run(program)
        except TimeoutError:
            self._metrics.errors[self.name] += 1
            raise PluginFailed(f"it did not end within {RUN_LIMIT_S:g} s, and was ended") from None
        except ProgramError:
            self._metrics.errors[self.name] += 1
            raise
        finally:
            took_s = self._deps.clock.monotonic_s() - began_s
            self._metrics.durations.setdefault(self.name, Durations()).add(took_s)

    def _program(self, repository: str, caller: Caller) -> Program:
        provider = self._provider
        own = {variable.name: variable.value for variable in provider.env}
        return Program(
            (str(self._deps.bin_dir / provider.name), *provider.args),
            {**self._deps.environment, **own},
            request_bytes(provider, repository, caller),
        )


def _said(finished: Finished, token: str) -> str:
    """The beginning of what it wrote to stderr, on one line and without the token."""
    text = " ".join(finished.complaint.decode(errors="replace").split())
    return (text.replace(token, "(the token)") if token else text)[:LONGEST_COMPLAINT]
