"""Prompt and schema to plan by a language model that reads the catalog."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.binding.generalize.placeholders import placeholders
from semcache.binding.template import PlanTemplate
from semcache.canonical import Json, JsonObject, as_object, with_texts
from semcache.catalog.operation import Operation
from semcache.errors import BindingError, InvalidInput, NotActionable, PlanningError
from semcache.planners.model.relevant import Relevant
from semcache.planners.model.verification import doubts
from semcache.plans.codec import check, decode, not_actionable, spelled
from semcache.plans.document import ExecutionPlan
from semcache.plans.program import KEYS, ProgramPlan
from semcache.plans.tasks import check_params
from semcache.ports import Clock, Message, Model, Observer, Planned, PlanRequest
from semcache.prompts.parameter import Parameter, by_name
from semcache.prompts.redaction import Redact
from semcache.prompts.schema import STRUCTURE, PromptSchema
from semcache.runs.dialog import Accepted, Dialog, Rejected, json_object
from semcache.runs.texts import PromptText, load, shown

ATTEMPTS = 3
"""Calls at most for one prompt; each after the first is told what was wrong."""
WIDENED = 4
"""How many times as many operations are shown once a model says that those it saw cannot do it."""
REFUSAL = "not_actionable"
"""Key of an answer that says why the request cannot be planned, or not be taken apart."""


class ModelPlanner:
    """Asks a model for a plan, and takes only one that passes the checks with its own values.

    A value of the prompt that the plan neither has as a placeholder nor as a literal that can be
    bound is held against it; a plan that keeps it so through all attempts is taken in the end, for
    the cache then serves it to no other value. Safe from several threads if the model is. Satisfies
    `ports.Planner`.
    """

    def __init__(
        self,
        model: Model,
        *,
        plan_format: str = "routes",
        relevant: Relevant | None = None,
        observer: Observer | None = None,
        clock: Clock | None = None,
        redact: Redact | None = None,
    ) -> None:
        """Keep what is asked for.

        Args:
            model: Who is asked.
            plan_format: Format of the plans; its instructions are the text `format_<name>`.
            relevant: Chooses the operations that the model is shown; None: all of them.
            observer: Hears of each call.
            clock: Times the calls; None: the machine's own.
            redact: Leaves of what is wrong with an answer what may be logged; None: all.

        Raises:
            InvalidSettings: the format has no instructions.
        """
        self._dialog = Dialog(model, "plan", ATTEMPTS, observer, clock, redact)
        self._plan_format = plan_format
        self._relevant = relevant
        # Models write a program as StackVM's document does: a list, with no object around it.
        self._listed = KEYS[0] if plan_format == ProgramPlan.format else ""
        self._text = load("plan")
        self._format_text = load(f"format_{plan_format}")

    def __repr__(self) -> str:
        return f"ModelPlanner({self.name!r})"

    @property
    def name(self) -> str:
        """Which planner this is: its model and the versions of its prompt texts."""
        fingerprint = self._dialog.model.fingerprint
        return f"{fingerprint}/{self._text.label}/{self._format_text.label}"

    def plan(self, request: PlanRequest) -> Planned:
        """Return a plan that passes `plans.codec` against the catalog with the prompt's values.

        Raises:
            NotActionable: the model says that the catalog cannot do this, its plan does nothing, or
                the catalog is empty.
            PlanningError: no valid plan after all attempts.
            InvalidParameter: two parameters of the request differ only in spelling.
            ModelError: the model cannot answer.
        """
        if not request.catalog:
            raise NotActionable("the catalog is empty; expected at least one operation")
        first = self._chosen(request, widened=1)
        try:
            return self._planned(request, first)
        except NotActionable:
            # What can do it may have been among the operations that were left out.
            wider = self._chosen(request, widened=WIDENED)
            if len(wider) == len(first):
                raise
            return self._planned(request, wider)

    def _chosen(self, request: PlanRequest, *, widened: int) -> tuple[Operation, ...]:
        if self._relevant is None:
            return tuple(request.catalog)
        return self._relevant.find(request.prompt, request.catalog, widened=widened)

    def _planned(self, request: PlanRequest, operations: Sequence[Operation]) -> Planned:
        params = _parameters(request)
        if request.failure:
            # The plan that failed came from the answer to this: whoever asks without the failure,
            # once that is forgotten, must not get it again.
            before = replace(request, failure="")
            self._dialog.forget(self._messages(before, params, operations))
        result = self._dialog.ask(
            self._messages(request, params, operations),
            read=lambda text: self._read(text, params, request),
            retry=lambda errors: self._text.fill("retry", errors=errors),
            fresh=bool(request.failure),
        )
        if isinstance(result, Rejected):
            raise PlanningError(
                f"no valid plan for {request.prompt[:80]!r} after {ATTEMPTS} "
                f"attempt(s): {'; '.join(result.errors)}"
            )
        return Planned(plan=result.value, params=params, planner=self.name)

    def _messages(
        self, request: PlanRequest, params: Sequence[Parameter], operations: Sequence[Operation]
    ) -> list[Message]:
        # The catalog goes first: providers charge less for a beginning that they have seen before.
        system = self._text.fill(
            "system",
            format=self._format_text.fill("format"),
            operations=shown(described(operations)),
        )
        values: JsonObject = {parameter.name: parameter.value for parameter in params}
        user = self._text.fill(
            "user",
            schema=shown(request.schema.to_json()) if request.schema else "unknown",
            params=shown(values) if values else "none",
            example=f"\n{self._example(request)}\n" if request.example else "",
            prompt=shown(request.prompt),
            **circumstances(self._text, request),
        )
        return [Message("system", system), Message("user", user)]

    def _example(self, request: PlanRequest) -> str:
        """Return what the model is told of a plan near by; nothing of one in another format."""
        near = request.example
        if near is None or decode(near.plan).format != self._plan_format:
            return ""
        return self._text.fill("example", prompt=shown(near.prompt), plan=shown(near.plan))

    def _read(
        self, text: str, params: Sequence[Parameter], request: PlanRequest
    ) -> Accepted[ExecutionPlan] | Rejected[ExecutionPlan]:
        catalog = request.catalog
        try:
            found = json_object(text, listed=self._listed)
            _refuse_if_not_actionable(found)
            plan = spelled(decode(with_structure(found, request.schema)), catalog)
            self._check_format(plan)
            template = generalize(plan.to_dict(), params, schemas=catalog.input_schemas)
            bound = bind(template, {parameter.name: parameter.value for parameter in params})
        except (InvalidInput, BindingError) as error:
            return Rejected((str(error),))
        # As it will be stored, and as it will run: some faults show in one of them only.
        findings = [*check(plan, catalog), *check(decode(bound.plan, data=bound.data), catalog)]
        findings += check_params(plan, [parameter.name for parameter in params])
        if findings:
            return Rejected(tuple(dict.fromkeys(map(str, findings))))
        _refuse_if_idle(plan)
        said = doubts(request.prompt, plan, catalog, params)
        if said.grave:
            return Rejected((*said.grave, *said.light))
        unused = (*_unused(template, params), *said.light)
        return Rejected(unused, usable=plan) if unused else Accepted(plan)

    def _check_format(self, plan: ExecutionPlan) -> None:
        if plan.format != self._plan_format:
            raise InvalidInput(
                f"the plan is not in the format {self._plan_format!r}; "
                f"its keys are {', '.join(map(repr, plan.to_dict()))}"
            )


def _parameters(request: PlanRequest) -> tuple[Parameter, ...]:
    if request.params or request.schema is None:
        return by_name(request.params)
    return request.schema.parameters()


def with_structure(plan: JsonObject, schema: PromptSchema | None) -> JsonObject:
    """Return a plan in which placeholders for what shapes a schema are written out.

    `{{params.amount.aggregate}}` is `sum` for every prompt that has the schema, for `sum` is in its
    identity; as a parameter it would be a value that no words carry. By the document of OneMCP.
    """
    if schema is None:
        return plan
    known = dict(_structure(schema))
    return {
        key: with_texts(value, lambda text: _written_out(text, known))
        for key, value in plan.items()
    }


def _structure(schema: PromptSchema) -> Iterator[tuple[str, Json]]:
    for name, value in schema.params.items():
        if name in {"sort_by", "order"}:
            yield name, value
        for member in STRUCTURE & as_object(value).keys():
            yield f"{name}.{member}", as_object(value)[member]


def _written_out(text: str, known: Mapping[str, Json]) -> Json:
    found = placeholders(text)
    if len(found) == 1 and (found[0].start, found[0].end) == (0, len(text)):
        return known.get(found[0].name, text)
    for one in reversed(found):
        if one.name in known:
            text = f"{text[: one.start]}{known[one.name]}{text[one.end :]}"
    return text


def circumstances(text: PromptText, request: PlanRequest) -> dict[str, str]:
    """Return what a model is told of the last failure and of the domain; each may be empty."""
    failure = text.fill("failure", error=request.failure) if request.failure else ""
    grounding = ""
    if request.grounding:
        grounding = text.fill("grounding", grounding=shown(request.grounding.to_json()))
    told = {"failure": failure, "grounding": grounding}
    return {name: f"\n{said}\n" if said else "" for name, said in told.items()}


def described(operations: Sequence[Operation]) -> list[Json]:
    """Return operations as a model is shown them."""
    return [
        {
            "name": operation.name,
            "summary": operation.summary,
            "effect": operation.effect,
            "input_schema": operation.input_schema,
            "output_schema": operation.output_schema or "unknown",
        }
        for operation in operations
    ]


def _refuse_if_not_actionable(found: JsonObject) -> None:
    """Raise if the answer is a refusal: in our own form, or in orra's (specs/orra.md, D1)."""
    said = found.get(REFUSAL)
    why = said if isinstance(said, str) and said else not_actionable(decode(found))
    if why is not None:
        raise NotActionable(f"the catalog cannot do this: {why}")


def _refuse_if_idle(plan: ExecutionPlan) -> None:
    """Raise if a routes plan calls nothing: that is how OneMCP's planner says that it cannot help.

    Such a plan is one constant text, so it would also be wrong to keep it for other prompts.
    """
    if plan.format == "routes" and not plan.operations():
        raise NotActionable(f"the catalog cannot do this: {_last_words(plan.to_dict())}")


def _last_words(nodes: JsonObject) -> str:
    for node in nodes.values():
        match node:
            case {"completed": True, "vars": {"answer": str(why)} | {"message": str(why)}}:
                return why
    return "the plan calls no operation"


def _unused(template: PlanTemplate, params: Sequence[Parameter]) -> tuple[str, ...]:
    """Return what to tell the model about each value that another request could not replace.

    A value pinned because an equal one stands elsewhere in the plan has its placeholder already.
    """
    bound = {binding.param for binding in template.bindings}
    named = {parameter.name: parameter for parameter in params}
    pins = {pin.param: pin for pin in template.pinned if pin.param in named}
    return tuple(
        f"Parameter {name!r} ({named[name].value!r}) is not used as '{{{{params.{name}}}}}', so "
        f"the plan would be wrong for any other value ({pin.why})"
        for name, pin in pins.items()
        if name not in bound
    )
