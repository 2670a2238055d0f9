"""The descriptions are of what is there, valid, and their examples work."""

from __future__ import annotations

import json
import re

import jsonschema
import msgspec
import pytest

from tamis.service import wire
from tamis.service.asyncapi import FROM_BROKER, FROM_CLIENT, asyncapi
from tamis.service.http.routes import ROUTES
from tamis.service.links.server import LinkServer
from tamis.service.openapi import openapi
from tamis.service.operations import OPERATIONS
from tamis.service.settings import Differences

from .http.brokers import eventually, running


def references(document):
    """Yield all `$ref`s of a document."""
    if isinstance(document, dict):
        for name, value in document.items():
            if name == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(document, list):
        for value in document:
            yield from references(value)


def looked_up(document, reference):
    assert reference.startswith("#/")
    for part in reference[2:].split("/"):
        document = document[part]
    return document


@pytest.mark.parametrize("document", [openapi(), asyncapi()], ids=["openapi", "asyncapi"])
def test_every_reference_leads_somewhere_and_every_schema_is_one(document):
    found = list(references(document))
    assert found
    for reference in found:
        looked_up(document, reference)
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(msgspec.json.encode(document)) == json.loads(json.dumps(document))


def test_the_routes_and_their_descriptions_are_the_same():
    assert {(route.method, route.path) for route in ROUTES} == {
        (operation.method, operation.path) for operation in OPERATIONS
    }
    assert len(OPERATIONS) == len(ROUTES)


def test_the_description_of_http_has_what_openapi_demands():
    document = openapi()
    assert re.fullmatch(r"3\.1\.\d", document["openapi"])
    assert document["info"]["title"]
    assert document["info"]["version"]
    identifiers = []
    for path, item in document["paths"].items():
        assert path.startswith("/")
        for method, operation in item.items():
            assert method in ("get", "put", "post", "delete")
            identifiers.append(operation["operationId"])
            in_path = {parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "path"}
            assert in_path == set(re.findall(r"{(\w+)}", path))
            for parameter in operation.get("parameters", []):
                assert parameter["in"] in ("path", "query")
                assert "schema" in parameter
            for status, response in operation["responses"].items():
                assert re.fullmatch(r"\d{3}|default", status)
                assert response["description"]
    assert len(identifiers) == len(set(identifiers))


def test_the_description_of_the_web_socket_has_what_asyncapi_demands():
    document = asyncapi()
    assert document["asyncapi"] == "3.0.0"
    assert document["channels"]["ws"]["address"] == wire.PATH
    for operation in document["operations"].values():
        assert operation["action"] in ("send", "receive")
        assert all(
            "payload" in looked_up(document, looked_up(document, ref["$ref"])["$ref"]) for ref in operation["messages"]
        )


@pytest.mark.parametrize(("name", "example"), [*FROM_CLIENT.items(), *FROM_BROKER.items()])
def test_examples_of_messages_fit_their_schema_and_are_decoded(name, example):
    document = asyncapi()
    schema = {
        "$ref": f"#/components/schemas/{'FromClient' if name in FROM_CLIENT else 'FromBroker'}",
        "components": document["components"],
    }
    jsonschema.validate(example, schema)
    decode = wire.decode_client if name in FROM_CLIENT else wire.decode_broker
    [message] = decode(json.dumps(example))
    assert getattr(message, name) not in (msgspec.UNSET, "")


def test_every_message_of_a_client_and_of_a_broker_has_an_example():
    options = {"since", "settle_s", "lease_s", "wanted", "in_s", "reason", "id"}
    assert set(FROM_CLIENT) == set(wire.FromClient.__struct_fields__) - options
    answers = {"since", "settled", "position", "positions", "known", "durable", "wanted", "effective", "id", "retry_s"}
    answers |= {"remembering"}
    assert set(FROM_BROKER) == set(wire.FromBroker.__struct_fields__) - answers


@eventually
async def test_every_example_request_works_and_is_answered_as_described(tmp_path):
    schemas = {"components": openapi()["components"]}
    async with running(tmp_path) as broker:

        async def reload():
            return Differences((), ())

        broker.server.front.reload = reload
        broker.server.front.links = LinkServer(broker.server.front.core, broker.server.front.settings)
        await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=201, data="price < 20")
        await broker.publish({"price": 12})
        last = [operation for operation in OPERATIONS if operation.method == "DELETE"]
        for operation in [operation for operation in OPERATIONS if operation not in last] + last[::-1]:
            if operation.status == "101" or operation.path.endswith("{subscriber}/events"):
                continue
            path = operation.path.replace("{subscriber}", "ann").replace("{key}", "cheap").replace("{link}", "north")
            if operation.path.endswith("/{key}") and operation.method == "DELETE":
                await broker.ask("PUT", path, data="price < 20")
            query = {name: example for name, _, example in operation.options}
            for body in operation.bodies or (None,):
                options = {"params": query}
                if body is not None:
                    data = body.example if isinstance(body.example, str) else json.dumps(body.example)
                    options |= {"data": data.encode(), "headers": {"Content-Type": body.media_type}}
                    if body.schema:
                        instances = body.example if body.is_list else [body.example]
                        for instance in instances:
                            jsonschema.validate(instance, {"$ref": f"#/components/schemas/{body.schema}", **schemas})
                async with broker.session.request(operation.method, broker.url + path, **options) as response:
                    content = await response.read()
                    assert str(response.status) in (operation.status, "201"), (operation, content)
                    assert response.status != 204 or not content
                    if response.status != 204:
                        assert response.content_type == operation.media_type, operation
                    if operation.answers:
                        jsonschema.validate(
                            json.loads(content), {"$ref": f"#/components/schemas/{operation.answers}", **schemas}
                        )


def test_the_description_of_http_is_valid_to_a_validator_of_openapi():
    validator = pytest.importorskip("openapi_spec_validator")
    assert list(validator.OpenAPIV31SpecValidator(json.loads(json.dumps(openapi()))).iter_errors()) == []
