"""What the verbs have of the server, and how they find what they work on.

A verb is synchronous, so a request is one atomic step. Stored objects are never changed in place,
and bodies are copied before they are stored.
"""

from __future__ import annotations

from msgspec import Struct

from fakekubeapi.access.settings import AccessSettings
from fakekubeapi.errors import not_found
from fakekubeapi.requests.routes import Route
from fakekubeapi.storage.changes import Object
from fakekubeapi.storage.store import Store
from fakekubeapi.verbs.controllers import Controllers
from fakekubeapi.verbs.ownership import Owners
from simclock import Clock, Ids, format_rfc3339


class Server(Struct, frozen=True):
    """One store, and who works on it."""

    store: Store
    clock: Clock
    """Gives the times of creation, deletion and change."""
    ids: Ids
    """Gives UIDs and generated names."""
    access: AccessSettings
    owners: Owners
    controllers: Controllers

    def now(self) -> str:
        """The time, as objects have it."""
        return format_rfc3339(self.clock.wall_ns())

    def stored(self, route: Route) -> Object:
        """The stored object itself, not to be changed. Raises: StatusError 404."""
        obj = self.store.get(route.key)
        if obj is None:
            raise not_found(route.resource.qualified, route.name)
        return obj
