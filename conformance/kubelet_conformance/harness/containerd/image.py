"""The container image that holds containerd: packages only, built once, tagged by its inputs.

There are two ways to the same packages: from a public Debian base where a registry can be reached,
else from Debian packages alone (debootstrap, needs root). A failed build leaves no tag behind, so
that a later run cannot take it for the whole image.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from kubelet_conformance.harness.containerd.docker_host import NodeError
from kubelet_conformance.harness.containerd.versions import Release, other_version

PACKAGES: Final = (
    "busybox-static",
    "containerd",
    "containernetworking-plugins",
    "docker-registry",
    "iptables",
    "runc",
)
REPOSITORY: Final = "refkubelet-containerd"

DEFAULT_MIRROR: Final = "http://deb.debian.org/debian"
_LEFT_OUT: Final = (
    "./dev/*",
    "./proc/*",
    "./sys/*",
    "./usr/share/doc",
    "./usr/share/locale",
    "./usr/share/man",
    "./var/cache/apt",
    "./var/lib/apt/lists",
)
_BUILD_TIMEOUT_S: Final = 900
_PROBE_TIMEOUT_S: Final = 3.0

Report = Callable[[str], None]


def dockerfile(release: Release) -> str:
    """The packages on the public Debian base; the build fails if containerd has another version."""
    return f"""\
FROM debian:{release.suite}-slim
RUN apt-get update \\
 && apt-get install -y --no-install-recommends {" ".join(PACKAGES)} \\
 && rm -rf /var/lib/apt/lists/* \\
 && dpkg-query -W -f '${{Version}}' containerd | grep '^{re.escape(release.version)}[^0-9]'
"""


def image_tag(release: Release) -> str:
    """`refkubelet-containerd:<version>-<hash of everything that goes into it>`."""
    inputs = "\n".join((dockerfile(release), *_LEFT_OUT))
    return f"{REPOSITORY}:{release.version}-{hashlib.sha256(inputs.encode()).hexdigest()[:12]}"


def ensure_image(client: Any, release: Release, report: Report) -> str:
    """The tag of the image, built first if it is not there (about a minute, once).

    Environment: `REFKUBELET_CONTAINERD_IMAGE` names a ready image to use instead;
    `REFKUBELET_IMAGE_SOURCE` = `registry` or `packages` chooses the way.

    Raises: NodeError that names what each way lacked.
    """
    import docker.errors

    if tag_of_user := os.environ.get("REFKUBELET_CONTAINERD_IMAGE"):
        return tag_of_user
    tag = image_tag(release)
    try:
        client.images.get(tag)
    except docker.errors.ImageNotFound:
        _build(client, release, report)
    return tag


def _build(client: Any, release: Release, report: Report) -> None:
    """Build the image in the first way that works. Raises NodeError that names what each way
    lacked."""
    tag = image_tag(release)
    ways = {"registry": build_from_registry, "packages": build_from_packages}
    chosen = os.environ.get("REFKUBELET_IMAGE_SOURCE")
    if chosen is not None and chosen not in ways:
        raise NodeError(f"REFKUBELET_IMAGE_SOURCE={chosen!r}: wanted registry or packages")
    if chosen is None and not registry_answers(client):
        report("no image registry answers: building from Debian packages")
        chosen = "packages"
    problems = []
    for name in (chosen,) if chosen else tuple(ways):
        report(f"building the image {tag} from {name} (about a minute, only once)")
        try:
            ways[name](client, release)
        except NodeError as error:
            problems.append(f"from {name}: {error}")
        else:
            return
    raise NodeError(
        f"cannot build the image of containerd {release.version} (Debian {release.suite})\n  "
        + "\n  ".join(problems)
    )


def registry_answers(client: Any) -> bool:
    """Whether the daemon's default registry can be reached; a configured proxy counts as yes."""
    info = client.info()
    if info.get("HttpsProxy") or info.get("HttpProxy"):
        return True
    mirrors = (info.get("RegistryConfig") or {}).get("Mirrors") or ()
    for url in (*mirrors, info.get("IndexServerAddress", "")):
        parts = urlsplit(url)
        if parts.hostname is None:
            continue
        port = parts.port or (80 if parts.scheme == "http" else 443)
        try:
            socket.create_connection((parts.hostname, port), timeout=_PROBE_TIMEOUT_S).close()
        except OSError:
            continue
        return True
    return False


def build_from_registry(client: Any, release: Release) -> None:
    """Build on the public Debian base. Raises: NodeError with the last lines of the build."""
    import docker.errors

    text, tag = dockerfile(release).encode(), image_tag(release)
    try:
        client.images.build(fileobj=io.BytesIO(text), tag=tag, rm=True, timeout=_BUILD_TIMEOUT_S)
    except docker.errors.BuildError as error:
        lines = [str(entry["stream"]).strip() for entry in error.build_log if "stream" in entry]
        raise NodeError("; ".join([*[line for line in lines if line][-3:], error.msg])) from None
    except docker.errors.APIError as error:
        raise NodeError(error.explanation or str(error)) from None


def build_from_packages(client: Any, release: Release) -> None:
    """Unpack a minimal Debian with debootstrap and import it; needs root and a package mirror.

    Environment: `REFKUBELET_DEBIAN_MIRROR` (default: deb.debian.org).

    Raises: NodeError that says what is missing or the last lines of debootstrap.
    """
    if os.geteuid() != 0:
        raise NodeError("needs root to unpack packages: run as root, or make a registry reachable")
    if shutil.which("debootstrap") is None:
        raise NodeError("debootstrap is not installed: apt-get install debootstrap")
    repository, _, version = image_tag(release).partition(":")
    mirror = os.environ.get("REFKUBELET_DEBIAN_MIRROR") or DEFAULT_MIRROR
    with tempfile.TemporaryDirectory(prefix="refkubelet-image-") as scratch:
        rootfs, archive = Path(scratch, "rootfs"), Path(scratch, "rootfs.tar")
        include = f"--include={','.join(PACKAGES)}"
        command = ["debootstrap", "--variant=minbase", include, release.suite, str(rootfs), mirror]
        try:
            _run([*command, *([release.build_script] if release.build_script else [])])
        except NodeError as error:
            raise NodeError(
                f"suite {release.suite} of {mirror}: {error} (REFKUBELET_DEBIAN_MIRROR names "
                "another mirror)"
            ) from None
        packaged = package_version((rootfs / "var/lib/dpkg/status").read_text(), "containerd")
        if not release.is_version(packaged):
            raise NodeError(other_version(release, f"{release.suite} of {mirror}", packaged))
        excludes = [f"--exclude={pattern}" for pattern in _LEFT_OUT]
        _run(["tar", "-C", str(rootfs), *excludes, "-cf", str(archive), "."])
        client.api.import_image_from_file(str(archive), repository=repository, tag=version)


def package_version(status: str, package: str) -> str:
    """The version of `package` in the text of dpkg's status file; `nothing` if it is not there."""
    match = re.search(rf"^Package: {re.escape(package)}\n(?:.+\n)*?Version: (.+)$", status, re.M)
    return match[1] if match else "nothing"


def _run(command: list[str]) -> None:
    """Run the command and wait. Raises NodeError with its last lines when it fails or takes too
    long."""
    try:
        process = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NodeError(f"{command[0]} did not end within {_BUILD_TIMEOUT_S} s") from None
    if process.returncode != 0:
        tail = "; ".join(process.stdout.strip().splitlines()[-3:])
        raise NodeError(f"{command[0]} failed with code {process.returncode}: {tail}")
