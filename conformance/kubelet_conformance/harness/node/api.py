"""`node.api`: the API server, as a user of the cluster sees and uses it (needs Feature.API).

Pods are created, changed and deleted here; faults make the server answer late, with errors, or not
at all. Pods, containers and the Node object are read from the last snapshot: one look per tick,
which is not among the recorded requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.api_server import NAMESPACE
from kubelet_conformance.harness.expect import Seen
from kubelet_conformance.harness.manifests import Container, PodPlan
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.node.watch import Watch
from kubelet_conformance.harness.observing.looked import looked_at
from kubelet_conformance.harness.observing.snapshots import container_status
from kubeobjects.structs import replace

STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
_CORE: Final = f"/api/v1/namespaces/{NAMESPACE}"
_NODES: Final = "/api/v1/nodes"


class NodeApi:
    """The API server of a case. Pods are named as in their manifests; every name may also be that
    of a static pod and then means its mirror pod.

    Methods that send a request raise RuntimeError when the server refuses it, and in a case that
    does not need Feature.API.
    """

    facet: Final = "api."

    def __init__(self, parts: Parts, watch: Watch) -> None:
        self._parts = parts
        self._watch = watch

    @property
    def fake(self) -> Any:
        """The fake API server itself (fakekubeapi's `FakeApi`), for other faults than those
        below."""
        self._watch.plan("server")
        return self._parts.the_api().fake

    # --- pods -----------------------------------------------------------------------------

    def will_create(self, name: str) -> None:
        """From now on that name is of a pod at the API, although it is created only later."""
        self._watch.created_at_api.add(name)

    async def create_pod(self, plan: PodPlan) -> None:
        """Create the pod, bound to this node; it keeps a UID that its manifest has."""
        if uid := plan.manifest["metadata"].get("uid"):
            self._parts.the_api().fake.gives_uid("pods", plan.name, uid)
        self._watch.created_at_api.add(plan.name)
        self._parts.runtime.teach(plan.name, plan)
        spec = {**plan.manifest["spec"], "nodeName": self._parts.node_name}
        await self._send("POST", f"{_CORE}/pods", {**plan.manifest, "spec": spec})

    async def run_pods(self, *plans: PodPlan) -> None:
        """Create the pods and run until all are Running at the API, within limits.START_S."""
        for plan in plans:
            await self.create_pod(plan)
        await self._watch.run_until(
            lambda: all(self.phase(plan.name) == "Running" for plan in plans),
            within_s=limits.START_S,
            what="all pods Running",
        )

    async def delete_pod(self, name: str, *, grace_s: int | None = None) -> None:
        """Delete the pod; `grace_s` None: with the grace period of its spec."""
        body: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        await self._send("DELETE", self._path(name), body)

    def vanish_pod(self, name: str) -> None:
        """Remove the pod from the API without deleting it: no watch is told, and the kubelet
        notices when it lists its pods, which it must do at once (its watch ends with 410)."""
        self._watch.plan("user", name)
        self._parts.the_api().vanish(self._watch.runtime_name(name))

    async def patch_pod(self, name: str, patch: Mapping[str, Any], *, status: bool = False) -> None:
        """Merge-patch the pod, or with `status` its status, as a user would."""
        path = self._path(name) + ("/status" if status else "")
        await self._send("PATCH", path, patch, MERGE_PATCH)

    async def debug(self, plan: PodPlan, *containers: Container, target: str = "") -> None:
        """Add ephemeral containers to a pod that was created here, in the process namespace of its
        container `target` ("": in their own)."""
        self._parts.runtime.teach(plan.name, replace(plan, containers=plan.containers + containers))
        aimed = {"targetContainerName": target} if target else {}
        manifests = [{**c.manifest, **aimed} for c in containers]
        path = f"{_CORE}/pods/{plan.name}/ephemeralcontainers"
        await self._send("PATCH", path, {"spec": {"ephemeralContainers": manifests}}, MERGE_PATCH)

    async def resize_pod(
        self, name: str, container: str, resources: Mapping[str, Any], *, init: bool = False
    ) -> None:
        """Change the resources of a container, or with `init` of an init container, in place;
        `resources` as in the API: `{"requests": {"cpu": "200m"}}`."""
        field = "initContainers" if init else "containers"
        await self._resize(name, {field: [{"name": container, "resources": resources}]})

    async def resize_containers(self, name: str, wanted: Mapping[str, Any]) -> None:
        """Change the resources of several containers in one request; `wanted`: container name ->
        resources."""
        containers = [{"name": each, "resources": wanted[each]} for each in wanted]
        await self._resize(name, {"containers": containers})

    async def resize_whole_pod(self, name: str, resources: Mapping[str, Any]) -> None:
        """Change the resources at the level of the pod, in place."""
        await self._resize(name, {"resources": resources})

    async def _resize(self, name: str, spec: Mapping[str, Any]) -> None:
        await self._send("PATCH", f"{_CORE}/pods/{name}/resize", {"spec": spec}, STRATEGIC_MERGE)

    def _path(self, pod: str) -> str:
        return f"{_CORE}/pods/{self._watch.runtime_name(pod)}"

    # --- other objects --------------------------------------------------------------------

    async def create_secret(self, manifest: Mapping[str, Any]) -> None:
        """Create the Secret in the namespace of the pods."""
        await self.create_object("secrets", manifest)

    async def replace_data(self, secret: Mapping[str, Any]) -> None:
        """Give the Secret of that name the data of this one."""
        path = f"{_CORE}/secrets/{secret['metadata']['name']}"
        await self._send("PATCH", path, {"data": secret["data"]}, MERGE_PATCH)

    async def delete_secret(self, name: str) -> None:
        """Delete the Secret."""
        await self._send("DELETE", f"{_CORE}/secrets/{name}", {})

    async def create_object(self, plural: str, manifest: Mapping[str, Any]) -> None:
        """Create an object of the core group, in the namespace of the pods if it names none;
        `plural` names its kind: `configmaps`, `services`."""
        namespace = manifest["metadata"].get("namespace", NAMESPACE)
        await self._send("POST", f"/api/v1/namespaces/{namespace}/{plural}", manifest)

    async def change_object(self, plural: str, name: str, patch: Mapping[str, Any]) -> None:
        """Merge-patch an object of the core group in the namespace of the pods."""
        await self._send("PATCH", f"{_CORE}/{plural}/{name}", patch, MERGE_PATCH)

    async def delete_object(self, plural: str, name: str) -> None:
        """Delete an object of the core group in the namespace of the pods."""
        await self._send("DELETE", f"{_CORE}/{plural}/{name}", {})

    async def create_runtime_class(self, name: str, handler: str) -> None:
        """Create a RuntimeClass."""
        body = {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": name},
            "handler": handler,
        }
        await self._send("POST", "/apis/node.k8s.io/v1/runtimeclasses", body)

    async def create_resource_claim(self, name: str, driver: str, *, pod_uid: str) -> None:
        """Create a ResourceClaim with one device of that driver, reserved for that pod."""
        path = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
        request = {"name": "one", "exactly": {"deviceClassName": "any"}}
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name},
            "spec": {"devices": {"requests": [request]}},
        }
        await self._send("POST", path, body)
        result = {"request": "one", "driver": driver, "pool": "pool", "device": "device"}
        status = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "web", "uid": pod_uid}],
        }
        await self._send("PATCH", f"{path}/{name}/status", {"status": status}, MERGE_PATCH)

    async def create_claim(
        self,
        name: str,
        volume: str,
        *,
        phase: str = "Bound",
        mode: str = "Filesystem",
        request: str = "1Gi",
        access: str = "ReadWriteOnce",
    ) -> str:
        """Create a PersistentVolumeClaim of that phase for the PersistentVolume `volume`, as users
        and the controller of claims do together; returns its UID. The user wants `request`, and has
        1Gi so far."""
        spec: dict[str, Any] = {
            "accessModes": [access],
            "resources": {"requests": {"storage": request}},
            "volumeName": volume,
            "volumeMode": mode,
        }
        path = f"{_CORE}/persistentvolumeclaims"
        body = {"metadata": {"name": name}, "spec": spec}
        claim = await self._parts.the_api().request("POST", path, body=body)
        status = {
            "phase": phase,
            "accessModes": spec["accessModes"],
            "capacity": {"storage": "1Gi"},  # else the kubelet enlarges the volume
        }
        await self._send("PATCH", f"{path}/{name}/status", {"status": status}, MERGE_PATCH)
        return str(claim["metadata"]["uid"])

    async def create_volume(
        self, name: str, source: Mapping[str, Any], *, claim: Mapping[str, Any] | None, **spec: Any
    ) -> None:
        """Create a PersistentVolume with that source. `claim`: the name and the UID of the claim it
        is bound to; None: to none."""
        bound = {"claimRef": {"namespace": NAMESPACE, **claim}} if claim is not None else {}
        body = {
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                **source,
                **bound,
                **spec,
            },
        }
        await self._send("POST", "/api/v1/persistentvolumes", body)

    async def create_node(self, metadata: Mapping[str, Any]) -> None:
        """Create a Node with the name of this node, as another client would."""
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": dict(metadata)}
        body["metadata"]["name"] = self._parts.node_name
        await self._send("POST", _NODES, body)

    async def patch_node(self, patch: Mapping[str, Any], *, status: bool = False) -> None:
        """Merge-patch the Node, or with `status` its status, as another client would."""
        path = f"{_NODES}/{self._parts.node_name}" + ("/status" if status else "")
        await self._send("PATCH", path, patch, MERGE_PATCH)

    async def delete_node(self) -> None:
        """Delete the Node object; with a finalizer it stays, with a deletionTimestamp."""
        await self._send("DELETE", f"{_NODES}/{self._parts.node_name}", {})

    async def send(
        self, method: str, path: str, body: Mapping[str, Any], content_type: str = ""
    ) -> None:
        """Send any other request, as a user."""
        await self._send(method, path, body, content_type)

    async def _send(
        self, method: str, path: str, body: Mapping[str, Any], content_type: str = ""
    ) -> None:
        arguments = {"content_type": content_type} if content_type else {}
        await self._parts.the_api().request(method, path, body=dict(body), **arguments)

    async def user_of_token(self, token: str, audience: str) -> dict[str, Any]:
        """The user whose token it is for that audience, as a TokenReview tells; {} if it is
        nobody's."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [audience]},
        }
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        review = await self._parts.the_api().request("POST", path, body=body)
        return dict(review["status"].get("user") or {})

    # --- users ----------------------------------------------------------------------------

    def add_user(
        self,
        token: str,
        name: str,
        *groups: str,
        uid: str = "",
        extra: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Let a token belong to that user of these groups, with this UID and these extra facts."""
        users = self._parts.the_api().fake.users
        users.add(token, name, groups=groups, uid=uid, extra=extra)

    def remove_user(self, token: str, *, explained: bool = True) -> None:
        """Let a token belong to nobody; not `explained`: the server does not say why it refuses
        it."""
        self._parts.the_api().fake.users.remove(token, explained=explained)

    def allow(self, **access: str) -> None:
        """Allow an access; `access`: its `user`, `verb`, `subresource` and so on. Of the rows that
        fit an access, the newest decides."""
        self._parts.the_api().fake.access.allow(**access)

    def deny(self, **access: str) -> None:
        """Deny an access."""
        self._parts.the_api().fake.access.deny(**access)

    def say_nothing(self, **access: str) -> None:
        """Neither allow nor deny an access: the server has no opinion."""
        self._parts.the_api().fake.access.say_nothing(**access)

    def contradict(self, **access: str) -> None:
        """Allow and deny an access, as no server should."""
        self._parts.the_api().fake.access.contradict(**access)

    # --- faults ---------------------------------------------------------------------------

    def fails(self, method: str, path: str, *, status: int = 500) -> AbstractContextManager[object]:
        """A block in which the server answers `status` to these requests of the kubelet; `path` is
        a regular expression."""
        self._watch.plan("server", path)
        return self._parts.the_api().fake.fails(method, path, status)

    def slow(self, method: str, path: str, delay_s: float) -> AbstractContextManager[object]:
        """A block in which the server handles these requests `delay_s` seconds after they came;
        `path` is a regular expression."""
        self._watch.plan("server", path)
        return self._parts.the_api().fake.delays(method, path, delay_s)

    def down(self) -> AbstractContextManager[object]:
        """A block in which no request reaches the server."""
        self._watch.plan("server")
        return self._parts.the_api().fake.down()

    # --- what is there --------------------------------------------------------------------

    @looked_at
    def pod(self, name: str) -> dict[str, Any] | None:
        """The pod, or the mirror pod of a static pod; None when there is none."""
        return self._watch.snapshots.api_pods.get(self._watch.runtime_name(name))

    @looked_at
    def phase(self, name: str) -> str:
        """The pod's phase; "" when there is no such pod or no phase yet."""
        return str(((self.pod(name) or {}).get("status") or {}).get("phase", ""))

    @looked_at
    def container(self, pod: str, name: str) -> dict[str, Any]:
        """The status of a container of any kind; {} when there is none."""
        return container_status(self.pod(pod), name)

    @looked_at
    def requests(self, method: str, path: str, *, of_users: bool = True) -> Sequence[Any]:
        """The requests that were answered so far (fakekubeapi's records), in order; `path` is a
        regular expression; `of_users`: those of the case itself are among them. What one has done
        may be seen before it is among them."""
        api = self._parts.the_api()
        all_records = api.fake.requests(method, path)
        records = [r for r in all_records if of_users or r.seq not in api.by_users]
        return Seen(records, self._watch, f"{method} {path}")

    # --- the Node object ------------------------------------------------------------------

    @property
    def _node(self) -> dict[str, Any]:
        """The Node at the last look."""
        self._parts.not_shared("the Node")
        return self._watch.snapshots.node

    @looked_at
    def node_object(self) -> dict[str, Any]:
        """The whole Node; {} when there is none."""
        return self._node

    @looked_at
    def node_condition(self, kind: str) -> dict[str, Any]:
        """The Node's condition of that type; {} when there is none."""
        conditions = (self._node.get("status") or {}).get("conditions") or []
        return next((dict(c) for c in conditions if c["type"] == kind), {})

    @looked_at
    def allocatable(self, resource: str) -> str:
        """How much of a resource the Node can give to pods, as written there (`7886Mi`); "" before
        it says so."""
        return str((self.node_status("allocatable") or {}).get(resource, ""))

    @looked_at
    def capacity(self, resource: str) -> str:
        """How much of a resource the Node has in all, as written there; "" before it says so."""
        return str((self.node_status("capacity") or {}).get(resource, ""))

    @looked_at
    def node_status(self, field: str) -> Any:
        """That field of the Node's status; None while it is not there."""
        return (self._node.get("status") or {}).get(field)

    @looked_at
    def node_uid(self) -> str:
        """The UID of the Node; "" before there is a Node."""
        return str((self._node.get("metadata") or {}).get("uid", ""))

    @looked_at
    def node_metadata(self, field: str) -> Any:
        """That field of the Node's metadata; None while it is not there."""
        return (self._node.get("metadata") or {}).get(field)

    @looked_at
    def taints(self) -> list[dict[str, Any]]:
        """The taints of the Node."""
        return list((self._node.get("spec") or {}).get("taints") or [])
