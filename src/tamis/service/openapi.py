"""What can be asked over HTTP, for programs? A description of the operations in OpenAPI.

It is made from the table of operations and from the Structs that decode requests, so that what is described is what is
read.

Source: OpenAPI 3.1.0.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from tamis.service.http.answers import PROBLEM
from tamis.service.operations import OPERATIONS, STRUCTS, Body, Operation

ABOUT = "A content-based broker: whoever wants events that fulfil a condition gets them."


@cache
def openapi() -> dict[str, Any]:
    """Return the description of the HTTP routes."""
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tamis", "version": version("tamis"), "summary": ABOUT, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": schemas(STRUCTS),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "certificate": {"type": "mutualTLS"},
            },
        },
        "security": [{"token": []}, {"certificate": []}, {}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "example": example}
        for name, example in (("subscriber", "ann"), ("key", "cheap"), ("link", "north"))
        if f"{{{name}}}" in operation.path
    ]
    parameters += [
        {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}, "example": example}
        for name, meaning, example in operation.options
    ]
    success: dict[str, Any] = {"description": operation.summary}
    if operation.status not in ("101", "204"):
        schema = reference(operation.answers) if operation.answers else {}
        success["content"] = {operation.media_type: {"schema": schema}}
    responses = {operation.status: success}
    if operation.answers == "SubscribedBody":
        responses["201"] = success
    responses["default"] = {
        "description": "Refused, and why",
        "content": {PROBLEM: {"schema": reference("Problem")}},
    }
    described: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", f"{operation.method.lower()}{operation.path}").strip("_"),
        "summary": operation.summary,
        "responses": responses,
    }
    if parameters:
        described["parameters"] = parameters
    if operation.bodies:
        content: dict[str, Any] = {}
        for body in operation.bodies:
            examples = content.setdefault(body.media_type, {"schema": _body_schema(body), "examples": {}})["examples"]
            examples[f"example{len(examples) + 1}"] = {"value": body.example}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _body_schema(body: Body) -> dict[str, Any]:
    if not body.schema:
        return {}
    return {"type": "array", "items": reference(body.schema)} if body.is_list else reference(body.schema)


def reference(name: str) -> dict[str, Any]:
    """Return how a schema is named in another place of the description."""
    return {"$ref": f"#/components/schemas/{name}"}


def schemas(structs: tuple[type, ...]) -> dict[str, Any]:
    """Return the JSON Schemas of Structs, by name."""

    def hook(kind: type) -> dict[str, Any]:
        if kind is msgspec.Raw:
            return {"description": "a CloudEvent, or any object"}
        raise NotImplementedError(kind)

    _, components = msgspec.json.schema_components(
        structs, schema_hook=hook, ref_template="#/components/schemas/{name}"
    )
    return dict(components)
