"""`node.logins`: credential provider plug-ins, programs that know logins for registries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubelet_conformance.harness.kubelets.login_plugins import (
    Asked,
    LoginPlugin,
    LoginPrograms,
    answer_of,
    provider_config,
)
from kubelet_conformance.harness.node.kubelet import NodeKubelet
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.observing.looked import looked_at


class NodeLogins:
    """The plug-ins of the node. A program is named as its entry in the configuration."""

    facet: Final = "logins."

    def __init__(self, parts: Parts, kubelet: NodeKubelet) -> None:
        self._programs = LoginPrograms(parts.paths)
        self._kubelet = kubelet

    async def use(self, *plugins: LoginPlugin) -> None:
        """Restart the kubelet with these plug-ins, in that order; each knows the registry's login
        for its matchImages, until `answers` says otherwise."""
        for plugin in plugins:
            self._programs.add(plugin.name, answer_of(*plugin.match_images))
        self._programs.write_config(provider_config(*plugins))
        await self._kubelet.restart()

    async def refused(self, config: Mapping[str, Any], *programs: str) -> str:
        """Start the kubelet with that CredentialProviderConfig, which it must not accept, and with
        these programs; returns the last lines of its log. Afterwards it runs without plug-ins."""
        for name in programs:
            self._programs.add(name, "")
        self._programs.write_config(config)
        words = await self._kubelet.refused_start()
        self._programs.remove_config()
        await self._kubelet.start()
        return words

    def answers(self, name: str, answer: str, *, code: int = 0, takes_s: float = 0) -> None:
        """From now on the program prints that, after so many seconds, and ends with that code. One
        that takes its time is for cases that need Feature.VIRTUAL_TIME."""
        self._programs.set(name, answer=answer, code=code, takes_s=takes_s)

    @looked_at
    def asked(self, name: str) -> list[Asked]:
        """The runs of the program, the first one first."""
        return self._programs.asked(name)
