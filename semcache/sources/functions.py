"""Operations from typed Python functions: their signature, types and docstring say all of it."""

import inspect
import re
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import UnionType
from typing import (
    Any,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
    overload,
)

import typing_extensions
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from semcache.canonical import Json, JsonObject, as_object, dumps, plain
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Effect, Operation
from semcache.errors import InvalidJson, InvalidOperation, OperationRefused
from semcache.schemas import faults

Function = Callable[..., object]
"""A plain function or bound method, annotated, whose arguments can be passed by name."""

# What pydantic, or the evaluation of an annotation, raises for a type that JSON cannot carry.
# RecursionError: an alias that refers to itself through a string.
_UNUSABLE = (PydanticUserError, PydanticUndefinedAnnotation, NameError, TypeError, RecursionError)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class _Schemas(GenerateJsonSchema):
    """JSON Schemas without titles: they repeat the names and cost a planner's tokens."""

    # A default that JSON cannot show is the function's own business.
    ignored_warning_kinds = GenerateJsonSchema.ignored_warning_kinds | {"non-serializable-default"}

    def field_title_should_be_set(self, _schema: object) -> bool:
        return False


@overload
def operation(
    fn: Function,
    *,
    name: str | None = ...,
    effect: Effect = ...,
    summary: str | None = ...,
    idempotency_key: str | None = ...,
    compensation: str | None = ...,
) -> Operation: ...
@overload
def operation(
    fn: None = ...,
    *,
    name: str | None = ...,
    effect: Effect = ...,
    summary: str | None = ...,
    idempotency_key: str | None = ...,
    compensation: str | None = ...,
) -> Callable[[Function], Operation]: ...
def operation(
    fn: Function | None = None,
    *,
    name: str | None = None,
    effect: Effect = "write",
    summary: str | None = None,
    idempotency_key: str | None = None,
    compensation: str | None = None,
) -> Operation | Callable[[Function], Operation]:
    """Return `fn` as an operation; usable as a decorator, with and without arguments.

    The input schema comes from the signature, descriptions from the docstring (its `Args:` section
    in Google style), the summary from its first paragraph. Input is taken strictly: `"2024"` is no
    integer, but an ISO date is a date. The result is turned into JSON by the return annotation.
    An operation is a write unless told that it only reads. `idempotency_key` names the argument
    that the engine fills with a key for each piece of work, so that a write can be tried again;
    `compensation` names the operation that undoes this one (see `Operation`).

    Raises:
        InvalidOperation: `fn` is asynchronous, lacks an annotation, takes arguments that have no
            name, or has a type that JSON Schema cannot describe.
    """
    if fn is None:
        return lambda decorated: operation(
            decorated,
            name=name,
            effect=effect,
            summary=summary,
            idempotency_key=idempotency_key,
            compensation=compensation,
        )
    if effect not in get_args(Effect):
        raise InvalidOperation(f"effect is {effect!r}; expected one of {get_args(Effect)}")
    name = name or _name(fn)
    bridge = _Bridge.of(fn, name)
    described = Operation(
        name=name,
        summary=summary if summary is not None else _summary(fn, name),
        input_schema=bridge.input_schema(_argument_texts(inspect.getdoc(fn) or "")),
        output_schema=bridge.output_schema(),
        effect=effect,
        call=bridge,
        compensation=compensation,
    )
    return described if idempotency_key is None else described.keyed(idempotency_key)


def catalog_from(
    *functions: Function | Operation,
    closed: Mapping[str, Sequence[str]] | None = None,
    synonyms: Mapping[str, str] | None = None,
) -> Catalog:
    """Return a catalog of operations and of functions, each function taken for a write.

    Raises:
        InvalidOperation: a function cannot become an operation, or two have one name.
    """
    operations = (fn if isinstance(fn, Operation) else operation(fn) for fn in functions)
    return Catalog(operations, closed=closed, synonyms=synonyms)


def load(address: str) -> Catalog:
    """Return the catalog at `module:name`: a catalog, an operation, a function, or several.

    The module is imported, so its code runs.

    Raises:
        InvalidOperation: nothing of the kind is there.
    """
    module_name, colon, name = address.partition(":")
    if not (module_name and colon and name):
        raise InvalidOperation(
            f"{address!r} is no address of operations; expected `module:name`, as in "
            "`my_operations:catalog` for what my_operations.py calls catalog"
        )
    try:
        found: object = getattr(import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise InvalidOperation(f"nothing can be loaded from {address!r}: {error}") from error
    if isinstance(found, Catalog):
        return found
    return catalog_from(*_several(found, address))


def _several(found: object, address: str) -> list[Function | Operation]:
    several = list(found) if isinstance(found, Iterable) else [found]
    usable = [one for one in several if isinstance(one, Operation) or callable(one)]
    if len(usable) < len(several):
        raise InvalidOperation(
            f"{address!r} holds a {type(found).__name__}; "
            "expected a catalog, an operation, a function, or an iterable of these"
        )
    return usable


@dataclass(frozen=True, slots=True)
class _Bridge:
    """Carries a call from JSON to Python and its result back."""

    fn: Function
    name: str
    arguments: type[BaseModel]
    result: TypeAdapter[object] | None
    """None where the function does not say what it returns, or JSON has no words for it."""

    @classmethod
    def of(cls, fn: Function, name: str) -> "_Bridge":
        """Return the bridge to `fn`.

        Raises:
            InvalidOperation: its signature cannot be described.
        """
        if inspect.isasyncgenfunction(fn):
            raise InvalidOperation(
                f"operation {name!r} is an asynchronous generator; expected a function that "
                "returns, or an `async def` that does"
            )
        hints = _hints(fn, name)
        return cls(fn, name, _model(fn, name, hints), _adapter(hints))

    def __call__(self, values: JsonObject) -> object:
        """Return what the function returns for `values`: a coroutine, of an `async def`.

        Raises:
            OperationRefused: `values` do not fit the signature; the function was not called.
        """
        try:
            arguments = self.arguments.model_validate_json(dumps(values), strict=True)
        except ValidationError as error:
            raise OperationRefused(
                f"operation {self.name!r} does not take this input: {'; '.join(faults(error))}"
            ) from error
        given = {name: getattr(arguments, _field(name)) for name in values}
        value = self.fn(**given)
        return self._awaited(value) if inspect.iscoroutine(value) else self._converted(value)

    async def _awaited(self, value: Coroutine[object, object, object]) -> object:
        return self._converted(await value)

    def _converted(self, value: object) -> object:
        if self.result is None:
            return value
        converted: object = self.result.dump_python(value, mode="json", warnings="error")
        return converted

    def input_schema(self, described: Mapping[str, str]) -> JsonObject:
        """Return the JSON Schema of the arguments, with a description of each."""
        schema = _described(self.arguments.model_json_schema(schema_generator=_Schemas), self.name)
        for name, argument in as_object(schema.get("properties")).items():
            if isinstance(argument, dict) and name in described:
                argument.setdefault("description", described[name])
        return schema

    def output_schema(self) -> JsonObject:
        """Return the JSON Schema of the result; empty if unknown."""
        if self.result is None:
            return {}
        schema = self.result.json_schema(mode="serialization", schema_generator=_Schemas)
        return _described(schema, self.name)


def _name(fn: object) -> str:
    name: object = getattr(fn, "__name__", None)
    if not callable(fn) or not isinstance(name, str):
        raise InvalidOperation(f"{fn!r} is no function; expected a function or a bound method")
    return name


def _hints(fn: Function, name: str) -> dict[str, Any]:
    """Return the annotations of `fn`, evaluated.

    `semcache.canonical.Json` spells its own recursion in a string, which pydantic cannot follow;
    pydantic's `JsonValue` means the same.
    """
    seen: object = getattr(inspect.unwrap(fn), "__globals__", {}).get("Json", Json)
    try:
        hints = get_type_hints(
            fn, localns={"Json": JsonValue} if seen == Json else None, include_extras=True
        )
        return {argument: _portable(hint) for argument, hint in hints.items()}
    except _UNUSABLE as error:
        raise InvalidOperation(
            f"the annotations of operation {name!r} cannot be read: {error}"
        ) from error


def _model(fn: Function, name: str, hints: Mapping[str, Any]) -> type[BaseModel]:
    """Return a model with one field an argument.

    Fields are prefixed and aliased: an argument may be named `schema` or `copy`, which a pydantic
    model has itself.
    """
    fields: dict[str, Any] = {}
    for argument in inspect.signature(fn).parameters.values():
        _check_argument(argument, name, hints)
        default = ... if argument.default is argument.empty else argument.default
        field = Field(default, alias=argument.name)
        fields[_field(argument.name)] = (hints[argument.name], field)
    config = ConfigDict(extra="forbid")
    try:
        model: type[BaseModel] = create_model(name, __config__=config, **fields)
        model.model_json_schema(schema_generator=_Schemas)
    except _UNUSABLE as error:
        raise InvalidOperation(
            f"an argument of operation {name!r} has a type that JSON cannot carry: "
            f"{_first_line(error)}"
        ) from error
    return model


def _check_argument(argument: inspect.Parameter, name: str, hints: Mapping[str, Any]) -> None:
    if argument.kind not in _NAMED:
        raise InvalidOperation(
            f"argument {argument.name!r} of operation {name!r} is {argument.kind.description}; "
            "a plan passes each argument by its name"
        )
    if argument.name not in hints:
        raise InvalidOperation(
            f"argument {argument.name!r} of operation {name!r} has no annotation; say its type"
        )


def _portable(hint: Any) -> Any:  # noqa: ANN401 - any annotation
    """Return an annotation with the `TypedDict`s of `typing` as those of typing_extensions.

    Before Python 3.12 pydantic can describe the others alone.
    """
    if sys.version_info >= (3, 12):
        return hint
    if is_typeddict(hint):
        required = hint.__required_keys__
        members = {
            name: kind if name in required else typing_extensions.NotRequired[kind]
            for name, said in get_type_hints(hint, include_extras=True).items()
            for kind in [_portable(_unmarked(said))]
        }
        make: Any = typing_extensions.TypedDict
        return make(hint.__name__, members)
    inner = get_args(hint)
    portable = tuple(map(_portable, inner))
    if portable == inner:
        return hint
    origin: Any = get_origin(hint)
    return (Union if origin is UnionType else origin)[portable]


def _unmarked(hint: Any) -> Any:  # noqa: ANN401 - any annotation
    """Return an annotation without `Required` or `NotRequired`, which its class knows as well."""
    return get_args(hint)[0] if get_origin(hint) in {NotRequired, Required} else hint


def _adapter(hints: Mapping[str, Any]) -> TypeAdapter[object] | None:
    """Return what turns a result into JSON; None if its annotation is absent or beyond JSON."""
    if "return" not in hints:
        return None
    try:
        adapter: TypeAdapter[object] = TypeAdapter(hints["return"])
        adapter.json_schema(mode="serialization", schema_generator=_Schemas)
    except _UNUSABLE:
        return None
    return adapter


def _described(schema: dict[str, object], name: str) -> JsonObject:
    schema.pop("title", None)
    try:
        described = plain(schema, what=f"the schema of operation {name!r}")
    except InvalidJson as error:
        raise InvalidOperation(str(error)) from error
    return as_object(described)


def _field(name: str) -> str:
    return f"p_{name}"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _summary(fn: Function, name: str) -> str:
    paragraph = (inspect.getdoc(fn) or "").split("\n\n")[0]
    return " ".join(paragraph.split()) or name.replace("_", " ")


_SECTION = re.compile(r"^(?:Args|Arguments|Parameters):\s*$")
_ARGUMENT = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


def _argument_texts(docstring: str) -> dict[str, str]:
    """Return argument → description, from the `Args:` section of a Google-style docstring."""
    texts: dict[str, str] = {}
    name, indent = "", 0
    for line in _section(docstring):
        found = _ARGUMENT.match(line.strip())
        deep = len(line) - len(line.lstrip())
        if found and (not indent or deep <= indent):
            name, indent = found[1], deep
            texts[name] = found[2]
        elif name:
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts


def _section(docstring: str) -> list[str]:
    """Return the indented, non-empty lines below `Args:`."""
    lines = docstring.splitlines()
    starts = [i for i, line in enumerate(lines) if _SECTION.match(line)]
    section: list[str] = []
    for line in lines[starts[0] + 1 :] if starts else ():
        if line.strip() and not line[0].isspace():
            break
        section.append(line)
    return [line for line in section if line.strip()]
