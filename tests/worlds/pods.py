"""Pods for tests, in one place. What a test does not say is filled in with dull values.

- `make_pod(*containers, name=, ...)`: a `Pod` as the kubelet has it, with a UID. What an API server
  would have defaulted stays empty, unless the test goes through `apply_api_defaults`.
- `manifest(*containers, name=, ...)`: the same as a user writes it, in JSON's form, with neither
  UID nor namespace: for files, for API servers, for tests of decoding.
- `container(name, cpu=, memory=, ...)`, `sidecar(name, ...)`; amounts are "request/limit".
- `named(pod, name)`: a container of a pod.
- `DELETED`: the metadata of a pod that is being deleted: `make_pod(meta=DELETED)`.

>>> pod = make_pod("main", container("db", cpu="1/2"), init=[sidecar("proxy")], dnsPolicy="None")
>>> [c.name for c in pod.spec.containers], pod.metadata.uid
(['main', 'db'], 'uid-web')
>>> container("db", cpu="1/2", memory="/64Mi")["resources"]
{'requests': {'cpu': '1'}, 'limits': {'cpu': '2', 'memory': '64Mi'}}
>>> manifest(name="job", restartPolicy="Never")["metadata"]
{'name': 'job'}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from refkubelet.model.objects import Container, Pod, decode_pod
from refkubelet.model.pod import CONFIG_SOURCE, containers

IMAGE: Final = "localhost/busybox:1"
DELETED: Final[Mapping[str, Any]] = {
    "deletionTimestamp": "2026-01-01T00:00:00Z",
    "deletionGracePeriodSeconds": 5,
}


def make_pod(
    *containers: Mapping[str, Any] | str,
    name: str = "web",
    uid: str = "",
    namespace: str = "default",
    **fields: Any,
) -> Pod:
    """A pod; the arguments are those of `manifest`. Without a `uid` it gets `uid-NAME`."""
    uid = uid or f"uid-{name}"
    return decode_pod(manifest(*containers, name=name, uid=uid, namespace=namespace, **fields))


def manifest(
    *containers: Mapping[str, Any] | str,
    name: str = "web",
    uid: str = "",
    namespace: str = "",
    static: bool = False,
    init: Iterable[Mapping[str, Any] | str] = (),
    meta: Mapping[str, Any] | None = None,
    phase: str = "",
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod in JSON's form.

    `containers` and `init`: mappings, or names alone; each gets an image if it has none. Without
    any there is one container, `main`; `containers=[]` makes a pod of none. `static`: marked as
    from a file. `meta`: further metadata; its annotations come on top of that mark. `phase`: of
    the status. `spec`: further fields of the spec. `meta`, `status` and `spec` win over what the
    other arguments say.
    """
    given = {"name": name, "namespace": namespace, "uid": uid}
    metadata = {**{key: text for key, text in given.items() if text}, **(meta or {})}
    if static:
        metadata["annotations"] = {CONFIG_SOURCE: "file", **(metadata.get("annotations") or {})}
    regular = {"containers": [_full(c) for c in containers or ("main",)]}
    first = {"initContainers": [_full(c) for c in init]} if init else {}
    told = {**({"phase": phase} if phase else {}), **(status or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**regular, **first, **spec},
        **({"status": told} if told else {}),
    }


def container(
    name: str = "main",
    *,
    cpu: str = "",
    memory: str = "",
    storage: str = "",
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A container.

    `cpu`, `memory`, `storage` (ephemeral storage): "REQUEST/LIMIT"; either may be empty, and "1" is
    a request alone. `requests`, `limits`: of other resources. `more`: further fields.
    """
    amounts = {"requests": {**(requests or {})}, "limits": {**(limits or {})}}
    for resource, text in (("cpu", cpu), ("memory", memory), ("ephemeral-storage", storage)):
        for kind, amount in zip(amounts, text.split("/"), strict=False):
            if amount:
                amounts[kind][resource] = amount
    said = {kind: given for kind, given in amounts.items() if given}
    return {"name": name, **({"resources": said} if said else {}), **more}


def sidecar(name: str = "side", **fields: Any) -> dict[str, Any]:
    """An init container that goes on beside the regular ones; it belongs into `init`. The fields
    are those of `container`."""
    return container(name, restartPolicy="Always", **fields)


def named(pod: Pod, name: str = "main") -> Container:
    """The container of that name."""
    return next(one for one in containers(pod) if one.name == name)


def _full(given: Mapping[str, Any] | str) -> dict[str, Any]:
    return {"image": IMAGE, **({"name": given} if isinstance(given, str) else given)}
