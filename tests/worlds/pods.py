"""Pods for tests, in one place. What a test does not say is filled in with dull values.

- `make_pod(*containers, name=, uid=, namespace=, static=, init=, meta=, status=, **spec)`: a `Pod`
  as the kubelet has it; what an API server would have defaulted stays empty.
- `manifest(...)`: the same in JSON's form, for files, for API servers, and for tests of decoding.
- `container(name, cpu=, memory=, storage=, **more)`: a container; amounts are "request/limit".
- `sidecar(name, **more)`: an init container that goes on beside the regular ones.

>>> pod = make_pod("main", container("db", cpu="1/2"), init=[sidecar("proxy")], dnsPolicy="None")
>>> [c.name for c in pod.spec.containers], pod.metadata.uid
(['main', 'db'], 'uid-web')
>>> container("db", cpu="1/2", memory="/64Mi")["resources"]
{'requests': {'cpu': '1'}, 'limits': {'cpu': '2', 'memory': '64Mi'}}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from refkubelet.model.objects import Pod, decode_pod
from refkubelet.model.pod import CONFIG_SOURCE

IMAGE: Final = "localhost/busybox:1"


def make_pod(*containers: Mapping[str, Any] | str, **fields: Any) -> Pod:
    """A pod; the arguments are those of `manifest`."""
    return decode_pod(manifest(*containers, **fields))


def manifest(
    *containers: Mapping[str, Any] | str,
    name: str = "web",
    uid: str | None = None,
    namespace: str = "default",
    static: bool = False,
    init: Iterable[Mapping[str, Any] | str] = (),
    meta: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod in JSON's form.

    `containers` and `init`: mappings, or names alone; each gets an image if it has none. Without
    any there is one container, `main`; `containers=[]` makes a pod of none. `uid`: `uid-NAME`
    unless given. `static`: from a file. `meta`: further metadata, `spec`: further fields of the
    spec; both win over what the other arguments say.
    """
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}" if uid is None else uid}
    marks = {"annotations": {CONFIG_SOURCE: "file"}} if static else {}
    fields = {"containers": [_full(c) for c in containers or ("main",)]}
    first = {"initContainers": [_full(c) for c in init]} if init else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, **marks, **(meta or {})},
        "spec": {**fields, **first, **spec},
        **({"status": {**status}} if status else {}),
    }


def container(
    name: str = "main", *, cpu: str = "", memory: str = "", storage: str = "", **more: Any
) -> dict[str, Any]:
    """A container. Amounts are "REQUEST/LIMIT"; either may be empty, and "1" is a request alone.
    `storage`: ephemeral storage. `more`: further fields."""
    resources: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
    for resource, text in (("cpu", cpu), ("memory", memory), ("ephemeral-storage", storage)):
        for kind, amount in zip(("requests", "limits"), text.split("/"), strict=False):
            if amount:
                resources[kind][resource] = amount
    said = {kind: amounts for kind, amounts in resources.items() if amounts}
    return {"name": name, **({"resources": said} if said else {}), **more}


def sidecar(name: str, **more: Any) -> dict[str, Any]:
    """An init container with restartPolicy Always; it belongs into `init`."""
    return {"name": name, "restartPolicy": "Always", **more}


def _full(given: Mapping[str, Any] | str) -> dict[str, Any]:
    return {"image": IMAGE, **({"name": given} if isinstance(given, str) else given)}
