"""What is posted to a pod and is no pod: a Binding gives it its node, an Eviction deletes it."""

from __future__ import annotations

from fakekubeapi.asked import Asked
from fakekubeapi.errors import conflict
from fakekubeapi.requests.parameters import check_delete_options
from fakekubeapi.requests.shapes import check_shape
from fakekubeapi.verbs.bindings import (
    binding_problem,
    is_disrupted,
    require_eviction,
    require_name,
    target_of,
    with_disruption,
    with_node,
)
from fakekubeapi.verbs.deletion import Leaving, allowed, delete, found
from fakekubeapi.verbs.server import Server
from kubeobjects.schema.messages import message


def bind(asked: Asked, server: Server) -> None:
    """Give an unbound pod its node, as a scheduler does (POST pods/binding). Raises:
    StatusError 404 without the pod, 422 without a node, 409 if the pod has a node."""
    check_shape(asked.body, message("core.v1.Binding"))
    route, body = asked.route, asked.body or {}
    node, pod = target_of(route, body), server.stored(route)
    problem = binding_problem(pod)
    if problem:
        raise conflict("pods/binding", route.name, f"pod {route.name} {problem}")
    server.store.put(route.key, with_node(pod, body, node, server.now()))


def evict(asked: Asked, server: Server) -> None:
    """Delete a pod for an eviction, after giving it the condition DisruptionTarget. Raises:
    StatusError as `delete` does, and 400 for a body that is not an eviction of the pod."""
    check_shape(asked.body, message("policy.v1.Eviction"))
    route, body = asked.route, asked.body or {}
    require_eviction(body)
    require_name(route, body, "Eviction")
    options = body.get("deleteOptions")
    dry_run = asked.dry_run or check_delete_options(options or {})
    pod, leaving = server.stored(route), Leaving(route, options, dry_run)
    if not dry_run and not is_disrupted(pod):
        found(leaving, server)
        allowed(leaving, server)
        server.store.put(route.key, with_disruption(pod, server.now()))
    delete(leaving, server)
