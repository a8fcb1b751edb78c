"""The control API as an OpenAPI 3.1 document, made of its routes and of the structs they take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from msgspec.json import schema_components

from fakecri.control.answers import of_action
from fakecri.control.bodies import ACTIONS
from fakecri.control.routes import Route
from kubeobjects.strict.json_schema import as_json, schemas
from kubeobjects.strict.reader import Strict
from simclock.distribution import own_version

_REF: Final = "#/components/schemas/{name}"
_ERRORS: Final = {
    "400": "a mistake in the request, with its place",
    "404": "there is no such thing",
    "409": "not with this target or clock",
    "412": "the assertion failed",
}


def openapi(routes: Iterable[Route]) -> dict[str, Any]:
    """The document for these routes."""
    routes = [one for route in routes for one in _by_verb(route)]
    shapes = {one for route in routes for one in (route.body, route.query) if one is not None}
    ordered = sorted(shapes, key=lambda shape: shape.__name__)
    references, defined = schemas(ordered, _REF)
    by_shape = dict(zip(ordered, references, strict=True))
    answers, of_answers = as_json(
        *schema_components([route.answer for route in routes], ref_template=_REF)
    )
    paths: dict[str, Any] = {}
    for route, answer in zip(routes, answers, strict=True):
        operation = _operation(route, by_shape, defined, answer)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fakecri control",
            "version": own_version(),
            "description": "HTTP on the unix socket of --control. Bodies may also be YAML.",
        },
        "servers": [{"url": "http://fakecri"}],
        "paths": paths,
        "components": {"schemas": {**defined, **of_answers, "Error": error}},
    }


def _by_verb(route: Route) -> Iterator[Route]:
    """A route for each action in place of the one for all of them."""
    if "{verb}" not in route.path:
        yield route
        return
    for verb, shape in ACTIONS.items():
        summary = (shape.__doc__ or "").rstrip(".")
        path = route.path.replace("{verb}", verb)
        answer = of_action(verb)
        yield replace(
            route, path=path, summary=summary, body=shape, body_required=False, answer=answer
        )


def _operation(
    route: Route,
    by_shape: dict[type[Strict], dict[str, Any]],
    defined: dict[str, Any],
    answer_schema: dict[str, Any],
) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "application/x-ndjson" if route.lines else "application/json": {"schema": answer_schema}
    }
    status = "201" if route.made else "200"
    error = {"application/json": {"schema": {"$ref": _REF.format(name="Error")}}}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": _identity(route),
        "responses": {
            status: {"description": "done", "content": answer},
            **{code: {"description": text, "content": error} for code, text in _ERRORS.items()},
        },
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "integer"}}
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]
    if route.query is not None:
        name = by_shape[route.query]["$ref"].rpartition("/")[2]
        fields = defined[name]["properties"].items()
        parameters += [{"name": key, "in": "query", "schema": schema} for key, schema in fields]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        content = {kind: {"schema": by_shape[route.body]} for kind in _KINDS}
        operation["requestBody"] = {"required": route.body_required, "content": content}
    return operation


_KINDS: Final = ("application/json", "application/yaml")


def _identity(route: Route) -> str:
    words = re.findall(r"\w+", route.path.removeprefix("/v1"))
    return "_".join((route.method.lower(), *(word for word in words if word != "v1")))
