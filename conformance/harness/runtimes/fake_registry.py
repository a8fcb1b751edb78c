"""The image registry of a fake runtime, in this process."""

from __future__ import annotations

from conformance.harness.image_registry import CLOSED_HOST, OPEN_HOST, PASSWORD, USER
from fakecri import RegistryImage
from fakecri.core.images import connection_refused, not_found


class FakeRegistry:
    """An `ImageRegistry` as the function that a FakeCRI asks (its option `registry`)."""

    def __init__(self) -> None:
        self.open_host = OPEN_HOST
        self.closed_host = CLOSED_HOST
        self._images: set[str] = set()
        self._away = False

    def __call__(self, reference: str) -> RegistryImage | None:
        """The answer to a pull of that reference, which names its host; None for other hosts."""
        host, _, name = reference.partition("/")
        if host not in (self.open_host, self.closed_host):
            return None
        if self._away:
            return RegistryImage(error=connection_refused(reference))
        wanted = (USER, PASSWORD) if host == self.closed_host else None
        if name in self._images:
            content = f"{self.open_host}/{name}"  # the same image on both hosts
            return RegistryImage(content=content, credentials=wanted)
        return RegistryImage(error=not_found(reference), error_code="NOT_FOUND", credentials=wanted)

    async def add(self, name: str) -> None:
        self._images.add(name)

    async def stop(self) -> None:
        self._away = True

    async def start(self) -> None:
        self._away = False
