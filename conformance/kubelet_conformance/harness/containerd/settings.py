"""The files that containerd reads: its configuration, the CNI network and the start script.

They are pure text made from frozen values, so a test can read them without Docker. The image holds
packages only; these files are mounted from the host, so a change of them needs no new image.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from msgspec import Struct

SHARED_DIR: Final = "/run/refkubelet"
"""Where the container sees the directory it shares with the host (socket, configuration)."""
PAUSE_IMAGE: Final = "localhost/pause:1"
BUSYBOX_IMAGES: Final = ("localhost/busybox:1", "localhost/busybox:2")
APP_IMAGE: Final = "localhost/app:1"
"""busybox with a user of its own, who is in further groups, and a directory of data."""
POD_SUBNET: Final = "10.210.0.0/16"
REGISTRIES_DIR: Final = f"{SHARED_DIR}/certs.d"
"""Where containerd looks, at every pull, how to reach the registry of an image."""
CNI_PLUGINS: Final = "/usr/lib/cni"
"""Where Debian's package has them."""


class NodeSettings(Struct, frozen=True):
    """What differs from host to host."""

    restrict_oom_score_adj: bool
    """True where CAP_SYS_RESOURCE is missing: a process may then not lower its oom_score_adj."""
    containerd_root: str
    """containerd's store, the same path inside and outside: ImageFsInfo names it (CRI-098)."""
    socket_uid: int = 0
    socket_gid: int = 0
    config_version: int = 2
    """Of config.toml: 2 for containerd 1.6 and 1.7, 3 for 2.x."""


def containerd_config(settings: NodeSettings) -> str:
    """The text of config.toml.

    The snapshotter is chosen by the start script, because only that can try overlayfs on the spot.
    AppArmor is disabled: its profiles belong to the host.
    """
    head = f"""\
version = {settings.config_version}
root = "{settings.containerd_root}"
state = "/run/containerd"
oom_score = 0

[grpc]
  address = "{SHARED_DIR}/containerd.sock"
  uid = {settings.socket_uid}
  gid = {settings.socket_gid}

"""
    plugins = _plugins_v3 if settings.config_version == 3 else _plugins_v2
    return head + plugins("true" if settings.restrict_oom_score_adj else "false")


def _plugins_v2(restrict: str) -> str:
    """The tables of the CRI plugin for containerd 1.6 and 1.7."""
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""\
[{cri}]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = {restrict}
  disable_apparmor = true
  disable_tcp_service = true

  [{cri}.registry]
    config_path = "{REGISTRIES_DIR}"

  [{cri}.containerd]
    snapshotter = "@SNAPSHOTTER@"
    default_runtime_name = "runc"

    [{cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [{cri}.containerd.runtimes.runc.options]
        SystemdCgroup = false

  [{cri}.cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{SHARED_DIR}/cni"
"""


def _plugins_v3(restrict: str) -> str:
    """The tables of the plugins for containers, images and streams of containerd 2.x."""
    runtime, images = (
        'plugins."io.containerd.cri.v1.runtime"',
        'plugins."io.containerd.cri.v1.images"',
    )
    return f"""\
[{images}]
  snapshotter = "@SNAPSHOTTER@"

  [{images}.registry]
    config_path = "{REGISTRIES_DIR}"

  [{images}.pinned_images]
    sandbox = "{PAUSE_IMAGE}"

[{runtime}]
  restrict_oom_score_adj = {restrict}
  disable_apparmor = true

  [{runtime}.containerd]
    default_runtime_name = "runc"

    [{runtime}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [{runtime}.containerd.runtimes.runc.options]
        SystemdCgroup = false

  [{runtime}.cni]
    bin_dirs = ["{CNI_PLUGINS}"]
    conf_dir = "{SHARED_DIR}/cni"

[plugins."io.containerd.grpc.v1.cri"]
  disable_tcp_service = true
"""


def cni_config() -> str:
    """A bridge with addresses from `POD_SUBNET`, without masquerading: pods need no connection to
    the outside."""
    return json.dumps(
        {
            "cniVersion": "0.4.0",
            "name": "refkubelet",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": "cni0",
                    "isGateway": True,
                    "ipMasq": False,
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": POD_SUBNET}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                }
            ],
        },
        indent=2,
    )


RUN_SCRIPT: Final = f"""\
#!/bin/sh
# Main process of the node: makes the mounts containerd needs, then keeps containerd running.
# containerd is a child, not this process, so that it can be restarted while containers live on.
# Argument: containerd's root directory.
shared={SHARED_DIR}
root=$1

# Without --privileged Docker hands these out read-only.
mount -o remount,rw /sys 2>/dev/null
for path in /proc/sys /proc/sysrq-trigger /proc/irq /proc/bus /proc/fs; do
  umount "$path" 2>/dev/null
done
# Mount propagation inside pods needs shared mounts here.
mount --make-rshared /

mkdir -p /run/containerd "$root/probe"
snapshotter=native
cd "$root/probe" && mkdir -p low up work all
if mount -t overlay overlay -o lowerdir=low,upperdir=up,workdir=work all 2>/dev/null; then
  umount all
  snapshotter=overlayfs
fi
cd / && rm -rf "$root/probe"
sed "s/@SNAPSHOTTER@/$snapshotter/" "$shared/config.toml" > /run/containerd-config.toml

while :; do
  while [ -e "$shared/stay-down" ]; do sleep 0.1; done
  containerd --config /run/containerd-config.toml &
  echo $! > /run/containerd.pid
  wait $!
  echo "containerd ended with code $?" >&2
  sleep 0.1
done
"""


def write_shared(directory: Path, settings: NodeSettings) -> None:
    """Fill the directory that is mounted at `SHARED_DIR`."""
    (directory / "cni").mkdir(parents=True, exist_ok=True)
    (directory / "config.toml").write_text(containerd_config(settings))
    (directory / "cni" / "10-refkubelet.conflist").write_text(cni_config())
    (directory / "run.sh").write_text(RUN_SCRIPT)
