"""Removes what a node leaves behind: processes, files of root, cgroups, and the containers of runs
that were killed. What belongs to a run that goes on is not touched.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any, Final

from kubelet_conformance.harness.containerd.docker_host import OWNER_LABEL, leftovers
from kubelet_conformance.harness.containerd.settings import SHARED_DIR

ROOT_LABEL: Final = "refkubelet.containerd.root"
OURS: Final = ("case-", "refkubelet-")
"""Prefixes of the names of cgroups that cases and tests make, and remove, themselves."""
_CGROUPS: Final = Path("/sys/fs/cgroup")


def remove_leftovers(client: Any) -> None:
    """Remove the containers of nodes whose run has ended without removing them."""
    import docker.errors

    for container in leftovers(client):
        try:
            empty(container)
            container.remove(force=True, v=True)
        except docker.errors.NotFound:
            continue


def empty(container: Any) -> None:
    """End all processes in a node and delete the files that root made there, which only root can
    do."""
    import docker.errors

    root = container.labels.get(ROOT_LABEL)
    if not root:
        return
    workdir = str(Path(root).parent)
    script = (
        f"touch {SHARED_DIR}/stay-down; kill -9 -1; "
        f"rm -rf {shlex.quote(root)}/* {SHARED_DIR}/*; "
        f"chown -R {os.getuid()}:{os.getgid()} {shlex.quote(workdir)}/logs "
        f"{shlex.quote(workdir)}/kubelet"
    )
    try:
        container.exec_run(["sh", "-c", script])
    except docker.errors.APIError:  # it does not run any more: nothing can be done from inside
        return


def top_cgroups(root: Path = _CGROUPS) -> frozenset[Path]:
    """The top directories of every cgroup hierarchy (v1), or of the only one (v2)."""
    unified = (root / "cgroup.controllers").exists()
    pattern = "*/" if unified else "*/*/"
    return frozenset(path for path in root.glob(pattern) if not path.is_symlink())


def remove_new_cgroups(client: Any, container: Any, before: frozenset[Path]) -> None:
    """Remove empty cgroups below top directories that were not there `before` the run.

    runc makes the parents of a pod's cgroup and leaves them, and so does a kubelet that manages no
    cgroups. Nothing is removed while another run's node lives, because some may be that run's;
    cgroups of cases and tests are removed by those.
    """
    nodes = client.containers.list(filters={"label": OWNER_LABEL})
    tops = top_cgroups() - before
    new = sorted(str(path) for path in tops if not path.name.startswith(OURS))
    if new and all(node.id == container.id for node in nodes):
        container.exec_run(["find", *new, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"])
