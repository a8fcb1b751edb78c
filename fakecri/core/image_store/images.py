"""The image store: references as Docker reads them, images by id, a registry that can say no.

Rules: CRI-090..098. Ids and digests are derived from the reference, so that a run repeats.
What must never happen: an image without id or with size 0 (kubelets refuse those, BACK-203).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import grpc
from kubecri.v1 import api_pb2 as pb
from msgspec import Struct

from fakecri.core.image_store.references import parse_reference
from fakecri.core.lookups.lookup import shown
from fakecri.core.lookups.named import NamedTable
from fakecri.errors import CriError, unknown
from fakecri.process.accounts import Accounts
from fakecri.words import stop_signals
from kubeobjects.arguments import arguments_told
from kubeobjects.structs import replace

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]")
DEFAULT_SIZE_BYTES: Final = 2_000_000
HASH: Final = "sha256:"
"""What ids and digests begin with."""


class Image(Struct, frozen=True):
    """An image that the runtime has."""

    id: str
    """The digest of its config, with `sha256:`."""
    tags: tuple[str, ...] = ()
    """References such as docker.io/library/busybox:1."""
    digests: tuple[str, ...] = ()
    """References with the digest of its manifest (`name@sha256:...`)."""
    size_bytes: int = DEFAULT_SIZE_BYTES
    """What ImageStatus and the image filesystem count for it."""
    uid: int | None = None
    """The user it runs as, by number; None: not said."""
    username: str = ""
    """The user it runs as, by name; "": not said."""
    stop_signal: str = ""
    """Its STOPSIGNAL; "": none of its own."""
    pinned: bool = False
    """Garbage collection of kubelets leaves it alone (CRI-093)."""
    paths: tuple[str, ...] = ()
    """What is in it beside the usual directories: files that image volumes may have as a
    sub-path."""
    accounts: Accounts = Accounts()
    """The users and groups that it knows."""

    @property
    def runs_as(self) -> int:
        """The number of the user it runs as; 0: not said, or a name that it does not know."""
        if self.uid is not None or not self.username:
            return self.uid or 0
        named = self.accounts.named(self.username)
        return 0 if named is None else named.uid


@arguments_told
@dataclass(frozen=True, slots=True)
class RegistryImage:
    """What a registry says of one reference. Raises ValueError for a time, size, signal or line
    that is none."""

    content: str = ""
    """References with the same content are one image; "": the reference itself."""
    size_bytes: int = DEFAULT_SIZE_BYTES
    """What the image takes on disk, at least 1."""
    pull_s: float = 0.0
    """Seconds that a pull takes."""
    error: str = ""
    """A pull fails with this text, after `pull_s`; "": it does not."""
    error_code: str = "UNKNOWN"
    """The gRPC code of that failure."""
    uid: int | None = None
    """The user it runs as, by number; None: not said."""
    username: str = ""
    """The user it runs as, by name; "": not said."""
    stop_signal: str = ""
    """The image's STOPSIGNAL (CRI-061); "": none, then SIGTERM counts."""
    paths: tuple[str, ...] = ()
    """Files in it that image volumes may have as a sub-path."""
    users: tuple[str, ...] = ()
    """Lines of its /etc/passwd beside those of root and nobody."""
    groups: tuple[str, ...] = ()
    """Lines of its /etc/group beside those of root and nogroup."""
    credentials: tuple[str, str] | None = None
    """User and password that a pull must bring; None: none are needed."""

    def __post_init__(self) -> None:
        stop_signals.normal(self.stop_signal)  # a name that is none would only show at a create
        Accounts().with_lines(self.users, self.groups)
        if not self.pull_s >= 0:
            raise ValueError(f"pull_s: wanted seconds from 0, got {self.pull_s!r}")
        if not self.size_bytes >= 1:  # kubelets refuse such an image
            raise ValueError(f"size_bytes: wanted 1 or more, got {self.size_bytes!r}")


Registry: TypeAlias = Callable[[str], RegistryImage | None]
"""Answers for a normalised reference; None: there is no such image."""


def any_image(_: str) -> RegistryImage:
    """The default registry: it has every image."""
    return RegistryImage()


def registry_of(images: Mapping[str, RegistryImage] | Iterable[str]) -> Registry:
    """A registry with exactly these references (written in any form)."""
    named = images if isinstance(images, Mapping) else {name: RegistryImage() for name in images}
    table = {str(parse_reference(name)): image for name, image in named.items()}
    return table.get


@arguments_told
@dataclass(slots=True, eq=False)
class ImageStore:
    """The images of the node. Pulls ask `registry`."""

    registry: Registry = any_image
    images: NamedTable[Image] = field(default_factory=NamedTable)

    def __repr__(self) -> str:
        names = (", ".join(image.tags or image.digests) for image in self.images.values())
        return f"<ImageStore {', '.join(names) or 'empty'}>"

    def add(
        self, reference: str, source: RegistryImage = RegistryImage(), *, pinned: bool = False
    ) -> Image:
        """Put an image into the store, as a pull that ended well would. Raises ValueError for
        what is no reference."""
        try:
            ref = parse_reference(reference)
        except ValueError as error:
            raise ValueError(f"{reference!r}: {error}") from None
        content = source.content or str(ref)
        image_id = _digest(f"config of {content}")
        manifest = ref.digest or _digest(f"manifest of {content}")
        old = self.images.get(image_id) or Image(
            image_id,
            size_bytes=source.size_bytes,
            uid=source.uid,
            username=source.username,
            stop_signal=source.stop_signal,
            paths=source.paths,
            accounts=Accounts().with_lines(source.users, source.groups),
        )
        tags = (str(ref),) if ref.tag else ()
        new = replace(
            old,
            tags=_joined(old.tags, tags),
            digests=_joined(old.digests, (f"{ref.name}@{manifest}",)),
            pinned=old.pinned or pinned,
        )
        self._take_tags_from_others(new)
        self.images[image_id] = new
        return new

    def _take_tags_from_others(self, new: Image) -> None:
        for tag in new.tags:
            for image in self.images.named(tag):
                if image.id != new.id:
                    remaining = tuple(t for t in image.tags if t not in new.tags)
                    self.images[image.id] = replace(image, tags=remaining)

    def find(self, reference: str) -> Image | None:
        """By tag, digest reference, id, or a unique prefix of an id (CRI-091); None: not there."""
        if "/" in reference:  # a whole name, as images have it; no id has a slash
            named = self._named(reference)
            if named is not None:
                return named
        by_id = self._with_prefix(reference)
        if len(by_id) == 1:
            return self.images[by_id.pop()]
        try:
            return self._named(str(parse_reference(reference)))
        except ValueError:
            return None

    def _named(self, name: str) -> Image | None:
        return next(iter(self.images.named(name)), None)

    def _with_prefix(self, text: str) -> set[str]:
        """The ids that begin with a text, with or without the name of their hash; of more than two
        only some."""
        if not text:
            return set()
        return {*self.images.at_most_two(text), *self.images.at_most_two(f"{HASH}{text}")}

    def resolve(self, reference: str) -> Image:
        """The image that a container is to be made of; it is never pulled (CRI-051).

        Raises CriError: NOT_FOUND, or UNKNOWN for an empty reference.
        """
        if not reference:
            raise unknown('failed to resolve image "": ambiguous digest string')
        image = self.find(reference)
        if image is None:
            text = f'failed to resolve image "{shown(reference)}": not found'
            raise CriError(grpc.StatusCode.NOT_FOUND, text)
        return image

    def look_up_in_registry(
        self, reference: str, auth: pb.AuthConfig | None = None
    ) -> RegistryImage:
        """What a pull of `reference` would meet; `auth` is read only by a registry that wants
        credentials. Raises CriError (CRI-090, CRI-096, CRI-097)."""
        try:
            normal = str(parse_reference(reference))
        except ValueError as error:
            name = shown(reference)
            raise unknown(f'failed to parse image reference "{name}": {error}') from None
        source = self.registry(normal)
        if source is None:
            raise CriError(grpc.StatusCode.NOT_FOUND, not_found(normal))
        if source.credentials is not None:
            try:
                sent_credentials = credentials_of(auth or pb.AuthConfig(), normal.partition("/")[0])
            except ValueError as error:
                raise unknown(_unresolved(normal, str(error))) from None
            if sent_credentials != source.credentials:
                raise unknown(unauthorized(normal))
        return source

    def remove(self, reference: str) -> None:
        """Remove the image behind any of its names, with all of them (CRI-095)."""
        image = self.find(reference)
        if image is not None:
            del self.images[image.id]

    def total_bytes(self) -> int:
        return sum(image.size_bytes for image in self.images.values())


def not_found(reference: str) -> str:
    """What containerd says when the registry has no such image."""
    return _unresolved(reference, f"{reference}: not found")


def unauthorized(reference: str) -> str:
    """The same when the registry wants other credentials."""
    ref = parse_reference(reference)
    return _unresolved(
        reference,
        f"pulling from host {ref.name.partition('/')[0]} failed with status code "
        f"[manifests {ref.tag or ref.digest}]: 401 Unauthorized",
    )


def connection_refused(reference: str) -> str:
    """The same where nothing listens at the registry's address."""
    ref = parse_reference(reference)
    host, _, path = ref.name.partition("/")
    url = f"https://{host}/v2/{path}/manifests/{ref.tag or ref.digest}"
    return _unresolved(
        reference, f'failed to do request: Head "{url}": dial tcp: connect: connection refused'
    )


def _unresolved(reference: str, why: str) -> str:
    return (
        f'failed to pull and unpack image "{reference}": failed to resolve reference '
        f'"{reference}": {why}'
    )


def credentials_of(auth: pb.AuthConfig, host: str = "") -> tuple[str, str] | None:
    """User and password of a pull request; None for an anonymous one, and where server_address is
    that of another registry than `host`. The first that is set counts: username, identity_token
    (user ""), auth (CRI-097). Raises ValueError for bad base64 and for an address without scheme.
    """
    if auth.server_address and _host_of(auth.server_address) != host:
        return None
    if auth.username:
        return auth.username, auth.password
    if auth.identity_token:
        return "", auth.identity_token
    if not auth.auth:
        return None
    try:
        user, _, password = base64.b64decode(auth.auth, validate=True).decode().partition(":")
    except ValueError:
        wrong = next((i for i, c in enumerate(auth.auth) if not _BASE64.match(c)), len(auth.auth))
        raise ValueError(f"illegal base64 data at input byte {wrong}") from None
    return user, password.rstrip("\0")


def _host_of(server_address: str) -> str:
    """The host and port of a URL; "" without a scheme, as Go reads it. Raises ValueError for
    `host:port`."""
    scheme, slashes, rest = server_address.partition("://")
    if slashes:
        return rest.partition("/")[0]
    if ":" in scheme.partition("/")[0]:
        text = "first path segment in URL cannot contain colon"
        raise ValueError(f"parse {shown(server_address)!r}: {text}".replace("'", '"'))
    return ""


def _digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _joined(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return (*old, *(item for item in new if item not in old))
