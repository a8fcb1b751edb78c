"""How a fake API server is set up: `ServerOptions`, what a kube-apiserver's flags are."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fakekubeapi.access.certificates import CertificateAuthority
from fakekubeapi.kubelets.options import KubeletOptions
from fakekubeapi.storage.store import DEFAULT_HISTORY
from kubeobjects.arguments import arguments_told
from kubeobjects.schema.messages import DEFAULT_MINOR


@arguments_told
@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """All have defaults: a server without any flag."""

    kubernetes: str = DEFAULT_MINOR
    """The minor whose types it serves, of those that `kubeobjects.schema` has; the rules are those
    of the default one."""

    field_managers: bool = False
    """Whether each object says in `metadata.managedFields` who owns its fields, as in a
    kube-apiserver and in `fakekubeapi serve`; writes take two or three times as long then. False:
    only those that are applied (server-side apply) do; what they had before is owned by
    `before-first-apply`."""

    service_account_admission: bool = False
    """Whether new pods get a service account and the volume with its token, and new namespaces
    kube-root-ca.crt, as a kube-apiserver does unless the plug-in ServiceAccount is switched off. It
    is off here unless asked for: the recorded runs are of a server without it, and a kubelet
    without projected volumes runs no pod that has one."""

    authority: CertificateAuthority | None = None
    """Signs approved certificate requests; None: they wait for a signer."""

    data: Path | None = None
    """A directory in which all objects are kept, so that a server that is started with it again
    goes on where the last one ended, crash or not; None: in memory alone."""

    history: int = DEFAULT_HISTORY
    """How many changes are kept; a watch that starts from an older version gets 410 Expired."""

    bookmark_every_s: float | None = None
    """How often watches that take bookmarks get one; None: after initial events and at their
    time-out only, so that nothing happens in virtual time while nothing changes."""

    waits_apart: bool = False
    """Beside a latency: whether a change takes the time of those watches alone that it may be for.
    False: each open watch waits over each change, whatever it is about, so that the runs of a seed
    go as they always have; beside the watches of many nodes that is most of what a change costs."""

    request_limit: int = 100_000
    """How many requests `FakeApi.requests()` remembers; older ones are forgotten."""

    kubelets: KubeletOptions = field(default_factory=KubeletOptions)
    """How to reach kubelets, to which a server on a socket passes on logs, exec and the like."""
