"""What the Docker daemon and this host allow: whether it answers, capabilities, and containers left
by runs that were killed.

Everything is found out, nothing assumed: most hosts run `--privileged` containers, but some refuse
them because a capability is missing from their own bounding set.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from fakecri.process.security import CAPABILITIES

OWNER_LABEL: Final = "refkubelet.containerd.owner"

_CAPABILITIES: Final = CAPABILITIES[:38]
"""To AUDIT_READ: containerd needs no later ones, and Docker 20.10 does not know them."""


class NodeError(Exception):
    """The containerd node cannot be built, started or reached; the text says what to do."""


def docker_client(timeout_s: int = 600) -> Any:
    """A client of the Docker daemon that `DOCKER_HOST` names (default: its unix socket)."""
    import docker

    return docker.from_env(timeout=timeout_s)


def docker_problem() -> str | None:
    """Why containers cannot be started here, and what to do, in one line; None when they can."""
    try:
        import testcontainers.core  # noqa: F401
    except ImportError:
        return "testcontainers is not installed: run  pip install 'refkubelet[containers]'"
    where = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    problem = _socket_problem(where)
    if problem is None:
        try:
            client = docker_client(timeout_s=10)
        except Exception as error:  # docker-py wraps every transport's errors differently
            problem = (str(error) or type(error).__name__).splitlines()[0][:200]
        else:
            client.close()
            return None
    return (
        f"Docker does not answer at {where} ({problem}): start it, for example with  "
        "sudo systemctl start docker  or  sudo dockerd  (DOCKER_HOST names another one)"
    )


def _socket_problem(where: str) -> str | None:
    """Why a unix socket cannot be reached; None for one that can, and for addresses of other
    kinds."""
    if not where.startswith("unix://"):
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(5.0)
        try:
            probe.connect(where.removeprefix("unix://"))
        except FileNotFoundError:
            return "no such file"
        except PermissionError:
            return "permission denied: add your user to the group docker"
        except OSError as error:
            return str(error.strerror or error).lower()
    return None


def bounding_set(status: str) -> frozenset[str]:
    """Names of the capabilities 0..37 in `CapBnd` of a /proc/<pid>/status text."""
    line = next(line for line in status.splitlines() if line.startswith("CapBnd:"))
    bits = int(line.split()[1], 16)
    return frozenset(name for number, name in enumerate(_CAPABILITIES) if bits >> number & 1)


def host_capabilities() -> frozenset[str]:
    """The capabilities that this host can give to containers; all of them where that cannot be
    found out."""
    try:
        return bounding_set(Path("/proc/self/status").read_text())
    except OSError:
        return frozenset(_CAPABILITIES)


def privileges(allowed: frozenset[str]) -> dict[str, Any]:
    """Docker arguments that give a container as much as `allowed` permits.

    `privileged` where everything is; otherwise an explicit list, because Docker then fails with
    "unable to apply caps".
    """
    if allowed.issuperset(_CAPABILITIES):
        return {"privileged": True}
    return {
        "cap_drop": ["ALL"],
        "cap_add": [name for name in _CAPABILITIES if name in allowed],
        "security_opt": ["seccomp=unconfined", "apparmor=unconfined", "label=disable"],
    }


def bind_mode(path: Path, mountinfo: str | None = None) -> str:
    """The mode of a volume: `rw,rslave` where mounts below `path` can be passed on into a
    container, else `rw`."""
    text = Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo
    best, shared = -1, False
    for line in text.splitlines():
        fields = line.split()
        point = fields[4]
        inside = path == Path(point) or Path(point) in path.parents
        if inside and len(point) >= best:
            optional = fields[6 : fields.index("-")]
            best, shared = len(point), any(f.startswith(("shared:", "master:")) for f in optional)
    return "rw,rslave" if shared else "rw"


def owner_mark(pid: int | None = None) -> str | None:
    """`<pid>.<start time>` of a process (default: this one); None when it does not run."""
    pid = os.getpid() if pid is None else pid
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return f"{pid}.{stat.rpartition(')')[2].split()[19]}"


def leftovers(client: Any) -> Sequence[Any]:
    """The containers of this suite whose owner process has ended."""
    containers = client.containers.list(all=True, filters={"label": OWNER_LABEL})
    return [c for c in containers if not _owner_lives(c.labels[OWNER_LABEL])]


def _owner_lives(mark: str) -> bool:
    pid = mark.partition(".")[0]
    return pid.isdigit() and owner_mark(int(pid)) == mark
