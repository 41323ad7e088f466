"""Plan files of OneMCP: `plans/<key>.json` with `{psk, created_at, plan}`, read and written."""

import contextlib
import hashlib
import json
import logging
import re
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.binding.generalize.placeholders import placeholder
from semcache.canonical import Json, JsonObject, Pointer, as_object, loads, plain, value_at
from semcache.catalog.catalog import Catalog
from semcache.errors import BindingError, InvalidInput, PlanningError
from semcache.planners.model.planner import with_structure
from semcache.plans.codec import check, decode
from semcache.plans.document import ExecutionPlan
from semcache.plans.tasks import check_params
from semcache.ports import Clock, Planned, PlanRequest
from semcache.prompts.parameter import Parameter
from semcache.prompts.schema import PromptSchema
from semcache.schemas import STRICT, Value, validated

log = logging.getLogger(__name__)

NAME = "plan-file"
"""Which planner a plan from a file is said to be by."""
MAX_BYTES = 2**20
_SAFE = re.compile(r"[A-Za-z0-9_-]{1,120}")
_WHOLE = frozenset({"any", "text", "number", "boolean", "array", "object"})
"""Codecs that make of `{{params.x}}` what it is anyway."""


class PlanFiles:
    """A folder of plans by Prompt Schema Key, one file a key. Satisfies `ports.Planner`.

    A key leaves out values, operators and aggregates, so that a file is only taken where its plan
    passes all checks with the values of the schema at hand. Safe from several threads and
    processes: a file is written aside and renamed.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        """Keep where the files are; the folder is made with the first that is written."""
        self._folder = folder
        self._clock = clock

    def __repr__(self) -> str:
        return f"PlanFiles({str(self._folder)!r})"

    def plan(self, request: PlanRequest) -> Planned:
        """Return the plan of the file of the request's schema; no model is asked.

        A file that cannot be read is set aside as `<name>.broken`.

        Raises:
            PlanningError: the prompt has no complete schema, there is no file for it, or its plan
                does not fit.
        """
        schema = request.schema
        if schema is None or schema.partial or request.failure:
            raise PlanningError("plan files are found by a complete schema")
        params = request.params or schema.parameters()
        try:
            body = with_structure(self._read(schema), schema)
            plan = decode(body)
            _check(plan, params, request.catalog)
        except (InvalidInput, BindingError) as error:
            path = self._path(schema)
            raise PlanningError(f"the plan file {path} does not fit: {error}") from error
        return Planned(plan, tuple(params), NAME)

    def write(self, schema: PromptSchema, planned: Planned, catalog: Catalog) -> bool:
        """Write a new plan under its key, in place of an older one; return whether it was.

        Not one that came from a file, that is no routes plan, or that holds a value which no
        placeholder can stand for: the next reader would get it for any other value.
        """
        if schema.partial or planned.planner == NAME or planned.plan.format != "routes":
            return False
        body = _with_placeholders(planned, catalog)
        if body is None:
            return False
        at = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = json.dumps({"psk": schema.key, "created_at": at, "plan": body}, indent=2)
        path = self._path(schema)
        aside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            aside.write_text(text + "\n", encoding="utf-8")
            aside.replace(path)
        except OSError as error:
            log.warning("the plan file %s was not written: %s", path, error)
            return False
        return True

    def _path(self, schema: PromptSchema) -> Path:
        # A key is made of words of a catalog: `..`, `/`, and what is too long are no file names.
        key = schema.key
        if not _SAFE.fullmatch(key):
            digest = hashlib.sha256(key.encode()).hexdigest()[:16]
            key = f"{re.sub('[^A-Za-z0-9_-]', '_', key)[:100]}-{digest}"
        return self._folder / f"{key}.json"

    def _read(self, schema: PromptSchema) -> JsonObject:
        path = self._path(schema)
        try:
            size = path.stat().st_size
            if size > MAX_BYTES:
                raise PlanningError(f"the plan file {path} has {size} bytes; at most {MAX_BYTES}")
            text = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError as error:
            raise PlanningError(f"no plan file of the key {schema.key!r}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise PlanningError(f"the plan file {path} cannot be read: {error}") from error
        try:
            return _plan_of(text, schema.key)
        except InvalidInput as error:
            with contextlib.suppress(OSError):  # a folder that cannot be written keeps it
                path.replace(path.with_suffix(".broken"))
            log.warning("the plan file %s was set aside: %s", path, error)
            raise PlanningError(f"the plan file {path} cannot be used: {error}") from error


@with_config(STRICT)
class _PlanFileDoc(TypedDict):
    psk: str
    plan: dict[str, Value] | Annotated[str, Field(max_length=MAX_BYTES)]
    """The Java program writes the plan as text in the file, its document as an object."""


_SCHEMA: TypeAdapter[_PlanFileDoc] = TypeAdapter(_PlanFileDoc)
_PLAN: TypeAdapter[JsonObject] = TypeAdapter(dict[str, Value])


def _plan_of(text: str, key: str) -> JsonObject:
    told = validated(_SCHEMA, loads(text, what="the plan file"), what="the plan file")
    if told["psk"] != key:
        raise InvalidInput(f"its psk is {told['psk']!r:.80}; expected {key!r}")
    found = told["plan"]
    if isinstance(found, str):
        return validated(_PLAN, loads(found, what="its plan"), what="its plan")
    return found


def _check(plan: ExecutionPlan, params: "tuple[Parameter, ...]", catalog: Catalog) -> None:
    template = generalize(plan.to_dict(), params, schemas=catalog.input_schemas)
    bound = bind(template, {one.name: one.value for one in params})
    findings = [*check(plan, catalog), *check(decode(bound.plan, data=bound.data), catalog)]
    findings += check_params(plan, [one.name for one in params])
    if findings:
        raise InvalidInput("; ".join(map(str, findings[:5])))


def _with_placeholders(planned: Planned, catalog: Catalog) -> JsonObject | None:
    """Return a plan with `{{params.x}}` at each place that a parameter fills; None if it cannot."""
    try:
        template = generalize(planned.plan.to_dict(), planned.params, schemas=catalog.input_schemas)
    except BindingError:
        return None
    if template.pinned or template.refusal or template.perishable:
        return None
    body = as_object(plain(template.plan))
    for binding in template.bindings:
        if binding.inline or binding.path or binding.codec not in _WHOLE:
            return None
        _put(body, binding.at, placeholder(binding.param))
    return body


def _put(body: Json, at: Pointer, text: str) -> None:
    *above, last = at
    holder = value_at(body, tuple(above))
    if isinstance(holder, dict | list):
        holder[last] = text  # type: ignore[index] # a pointer into this very plan
