"""Container images as archives, made with `tarfile` alone: no Docker, no registry.

The format is the one of `docker save` (manifest.json, configs, layers), which every containerd
imports. Times, owners and order are fixed, so the same inputs give the same bytes and image ids.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from kubeobjects.structs import replace

_EPOCH: Final = "1970-01-01T00:00:00Z"
_PASSWD: Final = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
_GROUP: Final = b"root:x:0:\nnogroup:x:65534:\n"


class ImageRecipe(Struct, frozen=True):
    """One image of one layer."""

    tags: tuple[str, ...]
    """Full references, `localhost/busybox:1`."""
    files: Mapping[str, tuple[bytes, int]]
    """Path (no leading slash) -> content and mode."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Path -> target of a symbolic link."""
    directories: Mapping[str, int] = field(default_factory=dict)
    """Path -> mode."""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ("PATH=/bin:/sbin:/usr/bin:/usr/sbin",)


def busybox_recipe(busybox: bytes, applets: Sequence[str], tag: str) -> ImageRecipe:
    """A busybox root file system; each tag is an image of its own, with its own ID."""
    return ImageRecipe(
        tags=(tag,),
        directories={"bin": 0o755, "etc": 0o755, "root": 0o700, "tmp": 0o1777, "var": 0o755},
        files={
            "bin/busybox": (busybox, 0o755),
            "etc/passwd": (_PASSWD, 0o644),
            "etc/group": (_GROUP, 0o644),
        },
        links={f"bin/{name}": "busybox" for name in sorted(applets) if name != "busybox"},
        command=("sh",),
        env=("PATH=/bin", f"IMAGE={tag}"),
    )


def app_recipe(busybox: bytes, applets: Sequence[str], tag: str) -> ImageRecipe:
    """A busybox with the user `app` (1000), who is also in the groups 50000 and 50001, and a
    directory `data` with two files and a directory in it."""
    base = busybox_recipe(busybox, applets, tag)
    users = _PASSWD + b"app:x:1000:1000:app:/data:/bin/sh\n"
    groups = _GROUP + b"app:x:1000:\nextra:x:50000:app\nmore:x:50001:nobody,app\n"
    return replace(
        base,
        directories={**base.directories, "data": 0o755, "data/deep": 0o755},
        files={
            **base.files,
            "etc/passwd": (users, 0o644),
            "etc/group": (groups, 0o644),
            "data/empty": (b"", 0o644),
            "data/deep/none": (b"", 0o644),
        },
    )


def pause_recipe(busybox: bytes, tag: str) -> ImageRecipe:
    """The process of a sandbox: it sleeps, reaps orphans of a shared PID namespace, and ends on
    SIGTERM."""
    return ImageRecipe(
        tags=(tag,),
        directories={"bin": 0o755},
        files={"bin/busybox": (busybox, 0o755)},
        entrypoint=(
            "/bin/busybox",
            "sh",
            "-c",
            "trap 'exit 0' TERM INT; while :; do /bin/busybox sleep 86400 & wait $!; done",
        ),
    )


def image_archive(recipes: Sequence[ImageRecipe], architecture: str) -> bytes:
    """An archive with all `recipes`; `architecture` in Go's words (`amd64`, `arm64`)."""
    manifest = []
    blobs: dict[str, bytes] = {}
    for recipe in recipes:
        layer, config = layer_and_config(recipe, architecture)
        layer_id, config_id = (hashlib.sha256(blob).hexdigest() for blob in (layer, config))
        blobs[f"{layer_id}/layer.tar"] = layer
        blobs[f"{config_id}.json"] = config
        manifest.append(
            {
                "Config": f"{config_id}.json",
                "RepoTags": list(recipe.tags),
                "Layers": [f"{layer_id}/layer.tar"],
            }
        )
    blobs["manifest.json"] = json.dumps(manifest, sort_keys=True).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in sorted(blobs):
            _add_file(archive, name, blobs[name], 0o644)
    return buffer.getvalue()


def layer_and_config(recipe: ImageRecipe, architecture: str) -> tuple[bytes, bytes]:
    """The two blobs of an image: its only layer, not compressed, and its configuration."""
    layer = _layer(recipe)
    return layer, _config(recipe, hashlib.sha256(layer).hexdigest(), architecture)


def _config(recipe: ImageRecipe, layer_id: str, architecture: str) -> bytes:
    """The configuration of an image as JSON."""
    run: dict[str, object] = {"Env": list(recipe.env)}
    if recipe.entrypoint:
        run["Entrypoint"] = list(recipe.entrypoint)
    if recipe.command:
        run["Cmd"] = list(recipe.command)
    return json.dumps(
        {
            "architecture": architecture,
            "os": "linux",
            "created": _EPOCH,
            "config": run,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_id}"]},
            "history": [{"created": _EPOCH, "created_by": "refkubelet"}],
        },
        sort_keys=True,
    ).encode()


def _layer(recipe: ImageRecipe) -> bytes:
    """The only layer of an image as a tar archive, with its entries in order of their paths."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for path in sorted(recipe.directories):
            entry = tarfile.TarInfo(path)
            entry.type, entry.mode = tarfile.DIRTYPE, recipe.directories[path]
            layer.addfile(entry)
        for path in sorted(recipe.files):
            _add_file(layer, path, *recipe.files[path])
        for path in sorted(recipe.links):
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, recipe.links[path]
            layer.addfile(entry)
    return buffer.getvalue()


def _add_file(archive: tarfile.TarFile, path: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
