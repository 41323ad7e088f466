"""Operations from OpenAPI documents."""

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, SemCache
from semcache.canonical import Json, JsonObject
from semcache.errors import (
    InvalidOperation,
    InvalidSettings,
    OperationFailed,
    OperationRefused,
    OutputTooLarge,
    SourceRejected,
    SourceUnavailable,
)
from semcache.sources.openapi import OpenApiService
from semcache.sources.openapi.exchange import Auth
from semcache.testing import FakeClock, HashEmbedder
from tests.sources.conftest import Describe, Echo

KEY = "s3cret-key"
Sent = tuple[Auth, tuple[str, str] | None, str]
"""Credentials, and where they must arrive: header, or query string."""
OK: JsonObject = {"200": {"description": "ok"}}


def call(catalog: Catalog, name: str, **values: Json) -> Any:
    found = catalog.get(name).call
    assert found is not None
    return found(values)


def answered(document: JsonObject, values: JsonObject, name: str = "ask", **options: Any) -> Any:
    """Return what the operation of a document answers to `values`."""
    with OpenApiService.open(document, **options) as service:
        return call(service.catalog, name, **values)


def inputs(document: JsonObject, name: str = "ask", **options: Any) -> JsonObject:
    """Return the schema of what the operation of a document takes."""
    with OpenApiService.open(document, **options) as service:
        return service.catalog.get(name).input_schema


def parameter(name: str, where: str = "query", /, **more: Json) -> JsonObject:
    schema = more.pop("schema", {})
    return {"name": name, "in": where, "schema": schema, "required": where == "path", **more}


def get(*parameters: Json, **more: Json) -> JsonObject:
    return {"get": {"operationId": "ask", "parameters": list(parameters), "responses": OK, **more}}


def post(schema: Json, *, kind: str = "application/json", **more: Json) -> JsonObject:
    body: JsonObject = {"required": True, "content": {kind: {"schema": schema}}}
    return {"post": {"operationId": "tell", "requestBody": body, "responses": OK, **more}}


# Through the whole way -----------------------------------------------------------------------


def test_a_service_answers_prompts_from_the_document_that_it_generates(shop_url: str) -> None:
    auth = Auth.header("X-API-Key", KEY)
    with (
        OpenApiService.open(f"{shop_url}/openapi.json", auth=auth) as service,
        SemCache.open(catalog=service.catalog, embedder=HashEmbedder()) as semcache,
    ):
        first = semcache.run("List the paid invoices of Acme")
        second = semcache.run("List the open invoices of Acme")
    assert first.value == {"answer": [invoice("INV-9", "paid", 45.5)]}
    assert second.value == {"answer": [invoice("INV-7", "open", 120.0)]}
    assert (first.tier, second.tier) == ("planned", "template")


def invoice(number: str, status: str, total: float) -> JsonObject:
    return {"number": number, "customer": "Acme", "status": status, "total": total, "parts": []}


def test_the_generated_document_gives_operations_with_effects_and_closed_sets(
    shop_url: str,
) -> None:
    with OpenApiService.open(f"{shop_url}/openapi.json") as service:
        effects = {operation.name: operation.effect for operation in service.catalog}
        closed = service.catalog.closed
    assert effects == {"create_invoice": "write", "get_invoice": "read", "list_invoices": "read"}
    assert closed == {"customer": ("Acme", "Initech"), "status": ("open", "paid")}


def test_a_recursive_body_is_sent_as_its_members(shop_url: str) -> None:
    part = invoice("INV-10a", "open", 1.0)
    whole = invoice("INV-10", "open", 2.0) | {"parts": [part]}
    with OpenApiService.open(f"{shop_url}/openapi.json") as service:
        assert service.catalog.violations("create_invoice", whole) == ()
        assert call(service.catalog, "create_invoice", **whole) == whole
        assert call(service.catalog, "get_invoice", number="INV-10") == whole


def test_an_error_of_the_service_is_told_with_the_beginning_of_its_body(shop_url: str) -> None:
    with (
        OpenApiService.open(f"{shop_url}/openapi.json") as service,
        pytest.raises(SourceRejected, match=r"404.*'get_invoice'.*no invoice INV-0") as caught,
    ):
        call(service.catalog, "get_invoice", number="INV-0")
    assert (caught.value.status, caught.value.excerpt) == (404, '{"detail":"no invoice INV-0"}')


def test_an_error_of_the_service_ends_the_run_with_the_cause_kept(shop_url: str) -> None:
    with (
        OpenApiService.open(f"{shop_url}/openapi.json") as service,
        SemCache.open(catalog=service.catalog, embedder=HashEmbedder()) as semcache,
        pytest.raises(OperationFailed, match="401") as caught,
    ):
        semcache.run("List the paid invoices of Acme")
    assert isinstance(caught.value.__cause__, SourceRejected)


# Requests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "value", "query"),
    [
        ({}, "a b&c=d", "q=a%20b%26c%3Dd"),
        ({}, True, "q=true"),
        ({}, None, ""),
        ({}, [1, 2], "q=1&q=2"),
        ({"explode": False}, [1, 2], "q=1%2C2"),
        ({"style": "pipeDelimited", "explode": False}, ["a", "b"], "q=a%7Cb"),
        ({"style": "spaceDelimited", "explode": False}, ["a", "b"], "q=a%20b"),
        ({}, {"a": 1, "b": 2}, "a=1&b=2"),
        ({"explode": False}, {"a": 1}, "q=a%2C1"),
        ({"style": "deepObject"}, {"a": 1}, "q%5Ba%5D=1"),
    ],
)
def test_a_query_parameter_is_spelled_in_its_style(
    echo: Echo, described: Describe, spelled: JsonObject, value: Json, query: str
) -> None:
    answered(described({"/": get(parameter("q", **spelled))}), {"q": value})
    assert echo.seen[0].query == query


FILTER: JsonObject = {"type": "object", "properties": {"state": {}, "city": {}}}


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ({"schema": {}}, {"tenant": "b"}),
        ({"schema": {}}, {"TENANT": "b"}),
        ({"schema": {}}, {"token": "b"}),
        ({"schema": FILTER}, {"state": "open", "admin": True}),
        ({"schema": FILTER, "style": "deepObject"}, {"admin": True}),
        ({"schema": {}, "style": "deepObject"}, {"a][b": 1}),
        ({"schema": {}, "explode": False}, {"a": "1,admin,true"}),
        ({"schema": {}, "explode": False}, ["1,2"]),
        ({"schema": {}, "style": "pipeDelimited", "explode": False}, ["1|2"]),
    ],
)
def test_a_value_says_nothing_in_the_name_of_another_parameter(
    echo: Echo, described: Describe, spelled: JsonObject, value: Json
) -> None:
    path = get(parameter("q", **spelled), parameter("tenant"))
    auth = Auth.parameter("token", KEY)
    with pytest.raises(OperationRefused, match="'q'"):
        answered(described({"/": path}), {"q": value, "tenant": "a"}, auth=auth)
    assert echo.seen == []


def test_parameters_travel_in_path_header_and_cookie(echo: Echo, described: Describe) -> None:
    paths = {
        "/a/{id}/{tags}": get(
            parameter("id", "path"),
            parameter("tags", "path"),
            parameter("X-Trace", "header"),
            parameter("session", "cookie"),
            parameter("filter", content={"application/json": {"schema": {}}}),
        )
    }
    values: JsonObject = {"id": "a/b?c", "tags": ["x", "y"], "X-Trace": "t 1", "session": "s;1"}
    answered(described(paths), {"filter": {"a": 1}, **values})
    (seen,) = echo.seen
    assert (seen.path, seen.query) == ("/a/a%2Fb%3Fc/x,y", "filter=%7B%22a%22%3A1%7D")
    assert (seen.headers["x-trace"], seen.headers["cookie"]) == ("t 1", "session=s%3B1")


@pytest.mark.parametrize("value", ["..", ".", "", []])
def test_a_value_that_would_change_the_route_is_refused(
    echo: Echo, described: Describe, value: Json
) -> None:
    paths = {"/a/{id}/b": get(parameter("id", "path"))}
    with pytest.raises(OperationRefused, match=r"'id'.*one part of a path"):
        answered(described(paths), {"id": value})
    assert echo.seen == []


def test_a_line_break_cannot_be_smuggled_into_a_header(echo: Echo, described: Describe) -> None:
    paths = {"/": get(parameter("X-Trace", "header"))}
    with pytest.raises(OperationRefused, match="printable ASCII"):
        answered(described(paths), {"X-Trace": "a\r\nX-Admin: 1"})
    assert echo.seen == []


def test_any_text_arrives_as_it_was_given(echo: Echo, described: Describe) -> None:
    paths = {"/a/{id}": get(parameter("id", "path"), parameter("q"))}
    with OpenApiService.open(described(paths)) as service:

        @settings(max_examples=50)
        @given(st.text(min_size=1).filter(lambda text: text not in {".", ".."}))
        def arrives(text: str) -> None:
            call(service.catalog, "ask", id=text, q=text)
            seen = echo.seen[-1]
            assert unquote(seen.path.removeprefix("/a/")) == text
            assert parse_qs(seen.query, keep_blank_values=True)["q"] == [text]

        arrives()


def test_a_body_that_is_no_plain_object_is_one_input(echo: Echo, described: Describe) -> None:
    either: JsonObject = {"oneOf": [{"type": "string"}, {"type": "array"}]}
    with OpenApiService.open(described({"/": post(either)})) as service:
        assert service.catalog.get("tell").input_schema["required"] == ["body"]
        call(service.catalog, "tell", body=["a"])
    assert echo.seen[0].body == ["a"]
    assert echo.seen[0].headers["content-type"] == "application/json"


def test_members_of_a_body_that_are_parameters_too_keep_the_body_whole(
    echo: Echo, described: Describe
) -> None:
    schema: JsonObject = {"type": "object", "properties": {"id": {}, "name": {}}}
    path = post(schema, parameters=[parameter("id", "path")])
    answered(described({"/a/{id}": path}), {"id": 1, "body": {"id": 2}}, "tell")
    assert (echo.seen[0].path, echo.seen[0].body) == ("/a/1", {"id": 2})


def test_what_a_service_sets_itself_is_no_input(described: Describe) -> None:
    schema: JsonObject = {
        "type": "object",
        "required": ["id", "name"],
        "properties": {"id": {"readOnly": True}, "name": {"type": "string"}},
    }
    shown = inputs(described({"/": post(schema)}), "tell")
    assert shown["properties"] == {"name": {"type": "string"}}
    assert shown["required"] == ["name"]


def test_parameters_of_one_name_in_two_places_are_told_apart(
    echo: Echo, described: Describe
) -> None:
    paths = {"/a/{id}": get(parameter("id", "path"), parameter("id", "query"))}
    answered(described(paths), {"path_id": 1, "query_id": 2})
    assert (echo.seen[0].path, echo.seen[0].query) == ("/a/1", "id=2")


def test_a_parameter_of_the_operation_replaces_that_of_its_path(described: Describe) -> None:
    path = get(parameter("id", "path", schema={"type": "integer"}))
    path["parameters"] = [parameter("id", "path", schema={"type": "string"}), parameter("all")]
    shown = inputs(described({"/a/{id}": path}))
    assert shown["properties"] == {"id": {"type": "integer"}, "all": {}}


# Names, servers, effects ---------------------------------------------------------------------


def test_without_an_id_method_and_path_are_the_name(described: Describe) -> None:
    paths: JsonObject = {
        "/users/{id}/orders": {"get": {"responses": OK}, "post": {"responses": OK}},
        "/users/orders/{id}": {"get": {"responses": OK}},
    }
    with OpenApiService.open(described(paths)) as service:
        assert service.catalog.names == (
            "get_users_orders_by_id",
            "get_users_orders_by_id_2",
            "post_users_orders_by_id",
        )


def test_effects_follow_the_method_unless_the_caller_knows_better(described: Describe) -> None:
    paths = {"/": get() | post({})}
    document = described(paths)
    with OpenApiService.open(document, effects={"tell": "read"}) as service:
        assert {one.name: one.effect for one in service.catalog} == {"ask": "read", "tell": "read"}
    with pytest.raises(InvalidSettings, match="'search'"):
        OpenApiService.open(document, effects={"search": "read"})


IDEMPOTENCY = parameter("Idempotency-Key", "header", schema={"type": "string"}, required=True)


@pytest.mark.parametrize(
    ("header", "told"),
    [(IDEMPOTENCY, {}), (parameter("X-Request", "header"), {"tell": "X-Request"})],
)
def test_a_write_that_takes_a_key_is_tried_again_with_the_same_one(
    echo: Echo, described: Describe, header: JsonObject, told: dict[str, str]
) -> None:
    schema: JsonObject = {"type": "object", "properties": {"amount": {"type": "integer"}}}
    document = described({"/": post(schema, parameters=[header])})
    echo.failures = [503]
    plan: JsonObject = {
        "tasks": [
            {"id": "task0", "input": {}},
            {"id": "task1", "service": "tell", "input": {"amount": 3}},
        ]
    }
    with (
        OpenApiService.open(document, idempotency_keys=told) as service,
        SemCache.open(
            catalog=service.catalog, embedder=HashEmbedder(), clock=FakeClock()
        ) as semcache,
    ):
        properties = service.catalog.get("tell").input_schema["properties"]
        semcache.execute(plan)
    assert properties == {"amount": {"type": "integer"}}
    keys = [seen.headers[str(header["name"]).lower()] for seen in echo.seen]
    assert len(keys) == 2
    assert keys[0] == keys[1] != ""


def test_a_key_that_an_operation_cannot_take_is_an_error(described: Describe) -> None:
    document = described({"/": get()})
    with pytest.raises(InvalidOperation, match="no argument 'request'"):
        OpenApiService.open(document, idempotency_keys={"ask": "request"})
    with pytest.raises(InvalidSettings, match="`idempotency_keys` names 'search'"):
        OpenApiService.open(document, idempotency_keys={"search": "request"})


def test_the_address_comes_from_servers_their_variables_or_the_caller(
    echo: Echo, described: Describe
) -> None:
    variables: JsonObject = {"version": {"default": "v1", "enum": ["v1", "v2"]}}
    server: JsonObject = {"url": echo.url + "/{version}/", "variables": variables}
    document = described({"/x": get()}, servers=[server])
    for options in ({}, {"variables": {"version": "v2"}}, {"base_url": f"{echo.url}/other"}):
        answered(document, {}, **options)
    assert [seen.path for seen in echo.seen] == ["/v1/x", "/v2/x", "/other/x"]
    with pytest.raises(InvalidSettings, match="'version'"):
        OpenApiService.open(document, variables={"version": "v3"})
    with pytest.raises(InvalidSettings, match="'region'"):
        OpenApiService.open(document, variables={"region": "eu"})


def test_a_relative_server_is_taken_from_where_the_document_was(
    echo: Echo, described: Describe
) -> None:
    echo.body = json.dumps(described({"/x": get()}, servers=[{"url": "../api"}])).encode()
    with OpenApiService.open(f"{echo.url}/docs/openapi.json") as service:
        call(service.catalog, "ask")
    assert echo.seen[-1].path == "/api/x"


def test_a_document_without_an_address_asks_for_one(described: Describe) -> None:
    with pytest.raises(InvalidOperation, match="base_url"):
        OpenApiService.open(described({"/": get()}, servers=[]))


# Credentials ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        (Auth.bearer(KEY), ("authorization", f"Bearer {KEY}"), ""),
        (Auth.header("X-Key", KEY), ("x-key", KEY), ""),
        (Auth.basic("me", KEY), ("authorization", "Basic bWU6czNjcmV0LWtleQ=="), ""),
        (Auth.parameter("api_key", KEY), None, f"q=1&api_key={KEY}"),
    ],
)
def test_credentials_reach_the_service_and_nothing_else(
    echo: Echo, described: Describe, caplog: pytest.LogCaptureFixture, sent: Sent
) -> None:
    auth, header, query = sent
    caplog.set_level(logging.DEBUG)
    with OpenApiService.open(described({"/": get(parameter("q"))}), auth=auth) as service:
        call(service.catalog, "ask", q=1)
        ask = service.catalog.get("ask")
        shown = f"{service!r}{service.catalog!r}{ask!r}{ask.call!r}{ask.input_schema}{auth!r}"
    (seen,) = echo.seen
    assert header is None or seen.headers[header[0]] == header[1]
    assert seen.query == (query or "q=1")
    secret = header[1].rpartition(" ")[2] if header else KEY
    assert secret not in shown + caplog.text


def test_credentials_are_asked_for_at_each_call(echo: Echo, described: Describe) -> None:
    tokens = iter(["first", "second"])
    with OpenApiService.open(
        described({"/": get()}), auth=lambda: Auth.bearer(next(tokens))
    ) as service:
        call(service.catalog, "ask")
        call(service.catalog, "ask")
    sent = [seen.headers["authorization"] for seen in echo.seen]
    assert sent == ["Bearer first", "Bearer second"]


def test_credentials_do_not_follow_an_operation_to_another_origin(
    echo: Echo, described: Describe
) -> None:
    elsewhere = echo.url.replace("127.0.0.1", "localhost")
    path = get(servers=[{"url": elsewhere}])
    answered(described({"/": path}), {}, auth=Auth.bearer(KEY))
    assert "authorization" not in echo.seen[0].headers


def test_a_parameter_that_carries_credentials_is_no_input(described: Describe) -> None:
    schemes: JsonObject = {"key": {"type": "apiKey", "in": "query", "name": "token"}}
    path = get(parameter("token"), parameter("X-Key", "header"), parameter("q"))
    document = described({"/": path}, components={"securitySchemes": schemes})
    shown = inputs(document, auth=Auth.header("x-key", KEY))
    assert shown["properties"] == {"q": {}}


@pytest.mark.parametrize("spelled", [str, quote, lambda key: json.dumps(key)[1:-1]])
@pytest.mark.parametrize("auth", [Auth.bearer, partial(Auth.header, "X-Our-Own")])
def test_an_error_that_echoes_a_credential_is_told_without_it(
    echo: Echo, described: Describe, auth: Callable[[str], Auth], spelled: Callable[[str], str]
) -> None:
    key = 'k?e+y&"x" of ours'
    echo.status, echo.body = 403, f"bad token {spelled(key)}".encode()
    with pytest.raises(SourceRejected) as caught:
        answered(described({"/": get()}), {}, auth=auth(key))
    assert caught.value.excerpt == "bad token <redacted>"


def test_a_run_tree_keeps_no_credential_that_an_answer_echoes(
    echo: Echo, described: Describe
) -> None:
    key = "a key in a header of its own"
    echo.body = json.dumps({"headers": {"X-Our-Own": key}}).encode()
    auth = Auth.header("X-Our-Own", key)
    with (
        OpenApiService.open(described({"/": get()}), auth=auth) as service,
        SemCache.open(catalog=service.catalog, embedder=HashEmbedder()) as semcache,
    ):
        answer = semcache.run("ask")
        run = semcache.runs.latest()
        assert run is not None
        assert "X-Our-Own" in json.dumps(run.to_dict())
        assert key not in json.dumps(run.to_dict())
        assert key in json.dumps(answer.value)


@pytest.mark.parametrize("address", ["https://me:secret@host", "ftp://host", "host", "http://"])
def test_a_base_url_that_cannot_be_called_is_refused_without_its_password(
    described: Describe, address: str
) -> None:
    with pytest.raises(InvalidSettings, match="base_url") as caught:
        OpenApiService.open(described({"/": get()}), base_url=address)
    assert "secret" not in str(caught.value)


def test_a_malformed_credential_is_refused_without_being_shown() -> None:
    with pytest.raises(InvalidSettings) as caught:
        Auth.bearer("sec\nret")
    assert "sec\nret" not in str(caught.value)


# Answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "body", "value"),
    [
        ("application/json; charset=utf-8", b'{"a":1}', {"a": 1}),
        ("application/problem+json", b"[1]", [1]),
        ("text/plain", "grün".encode(), "grün"),
        ("application/json", b"", None),
    ],
)
def test_an_answer_is_json_text_or_nothing(
    echo: Echo, described: Describe, kind: str, body: bytes, value: Json
) -> None:
    echo.headers, echo.body = {"Content-Type": kind}, body
    assert answered(described({"/": get()}), {}) == value


@pytest.mark.parametrize("body", [b"{", b"NaN", b"\xff\xfe"])
def test_an_answer_that_is_not_what_it_says_is_an_error(
    echo: Echo, described: Describe, body: bytes
) -> None:
    echo.body = body
    with pytest.raises(SourceUnavailable, match="cannot be read as application/json"):
        answered(described({"/": get()}), {})


def test_an_answer_over_the_bound_is_refused_within_a_run(echo: Echo, described: Describe) -> None:
    echo.body = json.dumps("x" * 100_000).encode()
    document = described({"/things": get(operationId="list_things")})
    with (
        OpenApiService.open(document, max_response_bytes=1_000) as service,
        SemCache.open(catalog=service.catalog, embedder=HashEmbedder()) as semcache,
        pytest.raises(OutputTooLarge, match=r"'list_things' is over 1,000 bytes"),
    ):
        semcache.run("list things")


def test_a_redirect_is_not_followed(echo: Echo, described: Describe) -> None:
    echo.status, echo.headers = 302, {"Location": "http://127.0.0.1:9/"}
    with pytest.raises(SourceRejected, match=r"302.*redirects are not followed"):
        answered(described({"/": get()}), {})


def test_a_service_that_does_not_answer_is_given_up(echo: Echo, described: Describe) -> None:
    echo.hang = threading.Event()
    with pytest.raises(SourceUnavailable, match=r"GET / of operation 'ask'.*ReadTimeout"):
        answered(described({"/": get()}), {}, timeout_s=0.05)


def test_a_service_that_is_not_there_is_told(described: Describe) -> None:
    with pytest.raises(SourceUnavailable, match="ConnectError"):
        answered(described({"/": get()}), {}, base_url="http://127.0.0.1:1")


def test_a_cookie_that_a_service_sets_is_not_sent_back(echo: Echo, described: Describe) -> None:
    echo.headers["Set-Cookie"] = "session=of-somebody-else"
    with OpenApiService.open(described({"/": get()})) as service:
        call(service.catalog, "ask")
        call(service.catalog, "ask")
    assert "cookie" not in echo.seen[1].headers


# Documents -----------------------------------------------------------------------------------


def test_yaml_is_read_as_openapi_means_it(tmp_path: Path, described: Describe) -> None:
    path = tmp_path / "openapi.yaml"
    path.write_text(
        "openapi: 3.0.3\nservers: [{url: 'http://h'}]\npaths:\n  /x:\n    get:\n"
        "      operationId: ask\n      parameters:\n        - name: c\n          in: query\n"
        "          schema: {type: string, enum: [no, on, 2024-01-01, 010]}\n"
        "      responses:\n        200: {description: ok}\n",
        encoding="utf-8",
    )
    with OpenApiService.open(path) as service:
        assert service.catalog.closed == {"c": ("no", "on", "2024-01-01", "010")}


def test_without_pyyaml_documents_in_json_are_read_and_yaml_asks_for_the_extra(
    tmp_path: Path, described: Describe
) -> None:
    (tmp_path / "shop.json").write_text(json.dumps(described({"/": get()})), "utf-8")
    (tmp_path / "shop.yaml").write_text("openapi: 3.1.0", "utf-8")
    code = (
        "import sys; sys.modules['yaml'] = None\n"
        "from semcache.sources.openapi import OpenApiService\n"
        f"print(OpenApiService.open({str(tmp_path / 'shop.json')!r}).catalog.names)\n"
        f"OpenApiService.open({str(tmp_path / 'shop.yaml')!r})"
    )
    done = subprocess.run(  # noqa: S603 - the code above
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout == "('ask',)\n"
    assert "MissingExtra: OpenAPI documents need a package that is not installed" in done.stderr


def test_schemas_of_3_0_become_json_schema(described: Describe) -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "enum": ["x"], "nullable": True, "example": "x"},
            "b": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "c": {"nullable": True, "allOf": [{"type": "string"}]},
        },
    }
    with OpenApiService.open(described({"/": post(schema)}, version="3.0.3")) as service:
        shown = service.catalog.get("tell").input_schema["properties"]
        assert service.catalog.violations("tell", {"a": None, "b": 1, "c": None}) == ()
        assert len(service.catalog.violations("tell", {"a": "y", "b": 0, "c": 1})) == 3
    assert isinstance(shown, dict)
    assert shown["a"] == {"type": ["string", "null"], "enum": ["x", None]}


def test_a_recursive_schema_is_checked_to_any_depth(described: Describe) -> None:
    node: JsonObject = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "next": {"$ref": "#/components/schemas/Node"}},
    }
    document = described(
        {"/": post({"$ref": "#/components/schemas/Node"})}, components={"schemas": {"Node": node}}
    )
    with OpenApiService.open(document) as service:
        assert service.catalog.violations("tell", {"next": {"next": {"name": "x"}}}) == ()
        assert service.catalog.violations("tell", {"next": {"next": {"name": 1}}})


def schemas(**found: Json) -> JsonObject:
    return {"components": {"schemas": found}}


def ref(name: str) -> JsonObject:
    return {"$ref": f"#/components/schemas/{name}"}


DOUBLING: JsonObject = {f"A{i}": {"allOf": [ref(f"A{i + 1}"), ref(f"A{i + 1}")]} for i in range(40)}


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (schemas(A0=ref("A0")), "in a circle"),
        (schemas(A0=ref("A1"), A1=ref("A0")), "in a circle"),
        (schemas(A0={"allOf": [ref("A0")]}), "holds itself"),
        (schemas(**DOUBLING, A40={}), "combines over"),
        (schemas(), "leads to nothing"),
        (schemas(A0={"$ref": "https://example.org/x.json"}), "remote_references"),
        (schemas(A0={"$ref": "file:///etc/passwd"}), "remote_references"),
        (schemas(A0={"$ref": "other.yaml#/A"}), "remote_references"),
    ],
    ids=["self", "mutual", "in place", "doubling", "nowhere", "remote", "file", "relative"],
)
def test_a_reference_that_cannot_be_followed_is_an_error(
    described: Describe, found: JsonObject, says: str
) -> None:
    with pytest.raises(InvalidOperation, match=says):
        OpenApiService.open(described({"/": post(ref("A0"))}, **found))


def test_a_long_chain_of_schemas_is_cut_where_it_is_far(described: Describe) -> None:
    chain: JsonObject = {
        f"A{i}": {"type": "object", "properties": {"n": ref(f"A{i + 1}")}} for i in range(2_000)
    }
    document = described({"/": post(ref("A0"))}, **schemas(**chain, A2000={}))
    definitions = inputs(document, "tell")["$defs"]
    assert isinstance(definitions, dict)
    assert len(definitions) <= 60


def test_other_documents_are_read_with_leave(tmp_path: Path, described: Describe) -> None:
    (tmp_path / "common.yaml").write_text(
        "A:\n  type: object\n  properties: {b: {$ref: '#/B'}}\nB: {enum: [x, y]}\n",
        encoding="utf-8",
    )
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(described({"/": post({"$ref": "common.yaml#/A"})})), "utf-8")
    with OpenApiService.open(path, remote_references=True) as service:
        assert service.catalog.closed == {"b": ("x", "y")}


def test_a_document_from_the_net_does_not_lead_to_a_file(echo: Echo, described: Describe) -> None:
    document = described({"/": post({"$ref": "file:///etc/passwd"})})
    echo.body = json.dumps(document).encode()
    with pytest.raises(InvalidOperation, match="to a file or nowhere"):
        OpenApiService.open(f"{echo.url}/openapi.json", remote_references=True)


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefghij", "bcdefghijk", strict=True)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LAUGHS, "over 2,000,000 values"),
        ("a: &a [*a, *a]", "contains itself"),
        ("a: " + "[" * 100_000, "deeper than 100"),
        ('{"a":' + "[" * 100_000, "not JSON"),
        ("{", "not JSON"),
        ("a: [", "neither JSON nor YAML"),
        ("[1]", "expected an object"),
        ("swagger: '2.0'", "OpenAPI 3.0"),
        ("a: !!python/object:os.system x", "neither JSON nor YAML"),
        ("? [a]\n: b", "neither JSON nor YAML"),
    ],
    ids=[
        "laughs", "cycle", "deep yaml", "deep json", "bad json", "bad yaml", "list", "swagger",
        "python", "key",
    ],
)  # fmt: skip
def test_what_is_no_document_is_an_error(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "openapi"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidOperation, match=says):
        OpenApiService.open(path)


@pytest.mark.parametrize("place", ["absent.json", "http://127.0.0.1:1/openapi.json?key=secret"])
def test_a_document_that_cannot_be_read_is_told_without_its_query(place: str) -> None:
    with pytest.raises(SourceUnavailable) as caught:
        OpenApiService.open(place)
    assert "secret" not in str(caught.value)


def test_an_operation_that_cannot_be_sent_is_left_out_and_told(
    described: Describe, caplog: pytest.LogCaptureFixture
) -> None:
    paths = {"/": get() | post({}, kind="multipart/form-data")}
    with OpenApiService.open(described(paths)) as service:
        assert service.catalog.names == ("ask",)
        assert service.skipped == {"tell": "its body is multipart/form-data; only JSON can be sent"}
    assert "'tell' is left out" in caplog.text


def test_slips_of_a_document_do_not_spoil_its_schemas(described: Describe) -> None:
    slips: JsonObject = {"type": "string", "required": True, "pattern": r"^\p{L}+$"}
    with OpenApiService.open(described({"/": get(parameter("q", schema=slips))})) as service:
        assert service.catalog.violations("ask", {"q": 1})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$ref", "type", "properties", "parameters", "schema", "in", "name"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=100)
@given(json_values, json_values)
def test_any_json_in_a_document_gives_a_service_or_a_typed_error(path: Json, body: Json) -> None:
    operation: JsonObject = {"parameters": [path], "requestBody": body, "responses": {"200": path}}
    document: JsonObject = {
        "openapi": "3.1.0",
        "servers": [{"url": "http://h"}],
        "paths": {"/a": {"post": operation, "get": path}, "/b": body},
        "components": {"schemas": path},
    }
    try:
        service = OpenApiService.open(document)
    except InvalidOperation:
        return
    for operation_ in service.catalog:
        service.catalog.violations(operation_.name, {"name": "x"})
