"""The catalog planner: from a complete schema to a plan of one operation, with no model.

An operation is chosen by its verb, its noun and what it can take; the plan calls it once with a
placeholder for every value. Where two operations would do, or none, it says so instead of guessing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from semcache.binding.generalize.placeholders import placeholder, without_placeholders
from semcache.canonical import Json, JsonObject, as_object, same
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.catalog.shape import Columns, Input, QueryShape, Shape, shape, snake
from semcache.errors import NotActionable, PlanningError
from semcache.planners.arguments.argument_match import Placed
from semcache.planners.arguments.input_fields import places
from semcache.planners.arguments.operation_index import known_as
from semcache.planners.arguments.step_account import account_of
from semcache.plans.codec import check
from semcache.plans.routes import RoutePlan
from semcache.ports import Planned, PlanRequest
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.schema import CONTROLS, PromptSchema, aggregate_name, operator_name
from semcache.prompts.vocabulary import GETS, READS, actions, entity

NAME = "catalog 1"
"""Which planner made a plan; the number grows when its plans change."""


class _Unfit(Exception):
    """Why an operation cannot answer a schema; never leaves this module."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An operation that can answer the schema, and its input with placeholders."""

    operation: Operation
    input: JsonObject
    exact: bool
    """Whether its verb is the very action of the schema."""


class CatalogPlanner:
    """Plans intents of one operation by rules alone. Safe from several threads."""

    def plan(self, request: PlanRequest) -> Planned:
        """Return a plan that calls one operation with a placeholder for every value.

        Raises:
            NotActionable: no operation of the catalog can do what the schema asks.
            PlanningError: there is no complete schema, or several operations would do.
        """
        schema = _complete(request)
        params = _named_by_caller(schema.parameters(), request.params)
        chosen = _chosen(request.catalog, schema, params)
        plan = RoutePlan.from_dict(_routes(chosen.operation, chosen.input))
        findings = [*_input_findings(request.catalog, chosen, params)]
        findings += [str(finding) for finding in check(plan, request.catalog)]
        if findings:
            raise PlanningError(
                f"a call of {chosen.operation.name!r} for {schema.key!r} would be refused: "
                + "; ".join(findings)
            )
        _check_account(request, chosen, params)
        return Planned(plan=plan, params=tuple(params.values()), planner=NAME)


def _complete(request: PlanRequest) -> PromptSchema:
    schema = request.schema
    if schema is None:
        raise PlanningError(
            f"there is no schema for {request.prompt[:80]!r}; "
            "the catalog planner plans from nothing else"
        )
    if schema.partial:
        words = ", ".join(map(repr, schema.unexplained))
        raise PlanningError(
            f"the schema of {request.prompt[:80]!r} does not account for {words}; "
            "say it otherwise, declare synonyms in the catalog, or use a planner with a model"
        )
    return schema


def _named_by_caller(
    params: Sequence[Parameter], given: Sequence[Parameter]
) -> dict[str, Parameter]:
    """Return the schema's name of each parameter → the parameter, under the caller's own name.

    A caller who gives `state` gives it again with the next prompt, also where the schema has it as
    `state.operand`.
    """
    named: dict[str, Parameter] = {}
    for parameter in params:
        field = name_key(parameter.name.partition(".")[0])
        own = [one for one in given if name_key(one.name) == field]
        alike = len(own) == 1 and same(own[0].value, parameter.value)
        name = own[0].name if alike else parameter.name
        named[parameter.name] = Parameter(name, parameter.value, parameter.mention)
    return named


def _check_account(
    request: PlanRequest, chosen: _Candidate, params: Mapping[str, Parameter]
) -> None:
    """Return if an operation that is no query accounts for every word of the prompt.

    Raises:
        PlanningError: it does not.
    """
    if shape(chosen.operation).query is not None:
        return
    into = {place.name: place for place in places(chosen.operation.input_schema)}
    by_placeholder = {placeholder(one.name): one for one in params.values()}
    placed = [
        Placed(into[name], by_placeholder[text])
        for name, value in chosen.input.items()
        for text in (value if isinstance(value, list) else [value])
        if isinstance(text, str) and text in by_placeholder and name in into
    ]
    known = known_as(chosen.operation, request.catalog)
    found = account_of(request.prompt, known, placed, request.catalog)
    if found.odd:
        told = ", ".join(map(repr, found.odd))
        raise PlanningError(f"{chosen.operation.name!r} does not account for {told}")


# ── choosing ─────────────────────────────────────────────────────────────────────────────────────


def _chosen(catalog: Catalog, schema: PromptSchema, params: Mapping[str, Parameter]) -> _Candidate:
    fitting: list[_Candidate] = []
    unfit: list[str] = []
    related = [one for one in catalog if set(schema.entities) <= {entity(shape(one))}]
    for operation in related:
        try:
            fitting.append(_candidate(operation, schema, params))
        except _Unfit as why:
            unfit.append(f"{operation.name!r}: {why}")
    best = [one for one in fitting if one.exact] or fitting
    # A name with a dot is a server's: the caller's own operation goes before it.
    best = [one for one in best if "." not in one.operation.name] or best
    if len(best) == 1:
        return best[0]
    if not best:
        nouns = " and ".join(map(repr, schema.entities))
        reasons = "; ".join(unfit) or f"the catalog has none about {nouns}"
        raise NotActionable(f"no operation can do {schema.key!r}: {reasons}")
    names = ", ".join(repr(one.operation.name) for one in best)
    raise PlanningError(f"{names} could all do {schema.key!r}; nothing in the prompt tells which")


def _candidate(
    operation: Operation, schema: PromptSchema, params: Mapping[str, Parameter]
) -> _Candidate:
    one = shape(operation)
    if not _does(one, schema.action):
        raise _Unfit(f"it does not {schema.action}")
    if one.query is not None:
        given = _query_input(one.query, schema, params)
    else:
        given = _plain_input(one, schema, params)
    missing = [needed.name for needed in one.required if needed.name not in given]
    if missing:
        raise _Unfit(f"it needs {', '.join(missing)}, which the prompt does not give")
    exact = one.verb == schema.action or (schema.action == "get" and one.verb in GETS)
    return _Candidate(operation, given, exact)


def _does(one: Shape, action: str) -> bool:
    # Reading verbs are told apart by what is asked, not by the word: "find order 17" gets it.
    reading = one.verb in READS and action in READS and one.query is None
    return action in actions(one) or reading or (action == "query" and one.query is not None)


# ── input of a query ─────────────────────────────────────────────────────────────────────────────


def _query_input(
    query: QueryShape, schema: PromptSchema, params: Mapping[str, Parameter]
) -> JsonObject:
    filters: list[Json] = []
    aggregates: list[Json] = []
    for name, value in schema.params.items():
        if name in CONTROLS:
            continue
        if (condition := _filter(query.filters, name, value, params)) is not None:
            filters.append(condition)
        if isinstance(value, dict) and "aggregate" in value:
            aggregates.append(_aggregate(query, name, value["aggregate"]))
    parts: list[tuple[str, list[Json]]] = [(query.filters.name, filters)]
    if query.aggregates is not None:
        parts.append((query.aggregates.name, aggregates))
    if query.groups is not None:
        parts.append((query.groups.name, _groups(query.groups, schema)))
    elif schema.group_by:
        raise _Unfit("it groups by nothing")
    parts.append(_sorts(query, schema))
    given: JsonObject = {name: value for name, value in parts if value}
    return given | _limit(query.limit, schema, params)


def _filter(
    columns: Columns, name: str, value: Json, params: Mapping[str, Parameter]
) -> JsonObject | None:
    """Return the filter that a parameter of the schema asks for; None if it asks for none."""
    operator, operand = _compared(name, value, params)
    if not operator:
        return None
    field = _spelled(name, columns.fields, columns.name)
    condition: JsonObject = {columns.field_key: field}
    if columns.second_key:
        condition[columns.second_key] = _operator(operator, columns)
    elif operator != "=":
        raise _Unfit(f"its {columns.name} only compare by equality")
    return {**condition, columns.value_key: operand}


def _compared(name: str, value: Json, params: Mapping[str, Parameter]) -> tuple[str, Json]:
    """Return the operator of a parameter, and its operand as placeholders."""
    if not isinstance(value, dict):
        return ("in" if isinstance(value, list) else "="), _placeholder(name, params)
    operator = value.get("operator")
    if not isinstance(operator, str):
        return "", None
    known = operator_name(operator) or operator
    if known == "between" and isinstance(operand := value.get("operand"), list):
        ends = [f"{name}.operand.{i}" for i in range(len(operand))]
        return known, [_placeholder(end, params) for end in ends]
    if "operand" not in value:
        raise _Unfit(f"{name!r} is compared with nothing")
    return known, _placeholder(f"{name}.operand", params)


def _placeholder(name: str, params: Mapping[str, Parameter]) -> str:
    return placeholder(params[name].name)


def _operator(operator: str, columns: Columns) -> str:
    for spelling in columns.seconds:
        if operator_name(spelling) == operator:
            return spelling
    if columns.seconds:
        raise _Unfit(f"its {columns.name} do not compare by {operator!r}")
    return operator


def _aggregate(query: QueryShape, name: str, function: Json) -> JsonObject:
    columns = query.aggregates
    if columns is None or not columns.field_key or not columns.second_key:
        raise _Unfit("it aggregates nothing")
    wanted = aggregate_name(function) if isinstance(function, str) else None
    spellings = [one for one in columns.seconds if aggregate_name(one) == wanted]
    if wanted is None or (columns.seconds and not spellings):
        raise _Unfit(f"it does not compute {function!r}")
    return {
        columns.field_key: _spelled(name, columns.fields, columns.name),
        columns.second_key: spellings[0] if spellings else wanted,
    }


def _groups(columns: Columns, schema: PromptSchema) -> list[Json]:
    names = [_spelled(name, columns.fields, columns.name) for name in schema.group_by]
    return [{columns.field_key: name} if columns.field_key else name for name in names]


def _sorts(query: QueryShape, schema: PromptSchema) -> tuple[str, list[Json]]:
    name = schema.params.get("sort_by")
    columns = query.sorts
    if name is None:
        return "", []
    if columns is None or not columns.field_key or not isinstance(name, str):
        raise _Unfit("it sorts by nothing")
    order: JsonObject = {columns.field_key: _spelled(name, columns.fields, columns.name)}
    direction = schema.params.get("order", "asc")
    if columns.second_key:
        order[columns.second_key] = _direction(str(direction), columns)
    elif direction != "asc":
        raise _Unfit("it sorts in one direction alone")
    return columns.name, [order]


def _direction(direction: str, columns: Columns) -> str:
    for spelling in columns.seconds:
        if spelling.lower().startswith(direction):
            return spelling
    if columns.seconds:
        raise _Unfit(f"its {columns.name} do not sort {direction!r}")
    return direction


def _limit(name: str, schema: PromptSchema, params: Mapping[str, Parameter]) -> JsonObject:
    if "offset" in schema.params:
        raise _Unfit("it skips no rows")
    if "limit" not in schema.params:
        return {}
    if not name:
        raise _Unfit("it has no limit")
    return {name: _placeholder("limit", params)}


def _spelled(name: str, fields: Sequence[str], where: str) -> str:
    """Return a field as the operation spells it."""
    if not fields:
        return name
    for spelling in fields:
        if snake(spelling) == name:
            return spelling
    raise _Unfit(f"its {where} have no field {name!r}")


# ── input of a plain operation ───────────────────────────────────────────────────────────────────


def _plain_input(one: Shape, schema: PromptSchema, params: Mapping[str, Parameter]) -> JsonObject:
    if schema.group_by or "sort_by" in schema.params:
        raise _Unfit("it neither groups nor sorts")
    given = _limit(one.limit, schema, params)
    for name, value in schema.params.items():
        if name in CONTROLS and not _inputs(one, name):
            continue
        given |= _given(one, name, value, params)
    return given


def _given(one: Shape, name: str, value: Json, params: Mapping[str, Parameter]) -> JsonObject:
    """Return the inputs that take a parameter of the schema."""
    operator, operand = _compared(name, value, params)
    if isinstance(value, dict) and ("aggregate" in value or not operator):
        raise _Unfit("it aggregates nothing")
    if operator == "between" and isinstance(operand, list):
        low, high = (_only(one, name, end) for end in (">=", "<="))
        return {low.name: operand[0], high.name: operand[1]}
    taking = _only(one, name, "=" if operator == "in" else operator)
    if operator == "in" and not taking.many:
        raise _Unfit(f"its {taking.name!r} takes one value")
    return {taking.name: [operand] if taking.many and operator == "=" else operand}


def _only(one: Shape, name: str, operator: str) -> Input:
    """Return the input that compares a field so; one whose own name is given takes the value."""
    own = [given for given in _inputs(one, name) if operator == "="]
    fitting = own or [g for g in one.inputs if (g.field, g.operator) == (name, operator)]
    if len(fitting) != 1:
        raise _Unfit(f"it has no input for {name!r} with {operator!r}")
    return fitting[0]


def _inputs(one: Shape, name: str) -> list[Input]:
    return [given for given in one.inputs if snake(given.name) == name]


# ── the plan ─────────────────────────────────────────────────────────────────────────────────────


def _routes(operation: Operation, given: JsonObject) -> JsonObject:
    """Return the routes plan: call the operation, and answer with what it returns."""
    enveloped = "data" in as_object(operation.output_schema.get("properties"))
    return {
        "start_node": {"route": "call"},
        "call": {"operation": operation.name, "input": given, "route": "end"},
        "end": {"completed": True, "vars": {"answer": "$.call.data" if enveloped else "$.call"}},
    }


def _input_findings(
    catalog: Catalog, chosen: _Candidate, params: Mapping[str, Parameter]
) -> list[str]:
    """Return how the input breaks the operation's schema once the values are in it."""
    filled = without_placeholders(chosen.input, params.values())
    return [str(found) for found in catalog.violations(chosen.operation.name, filled)]
