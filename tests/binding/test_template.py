import json
from collections.abc import Callable

import pytest
from pydantic import TypeAdapter

from semcache import Parameter
from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.binding.template import PlanTemplate
from semcache.binding.template_schema import WrittenTemplate
from semcache.canonical import Json, JsonObject
from semcache.errors import BindingError
from semcache.prompts.mentions import Mention
from semcache.schemas import validated

Routes = Callable[..., JsonObject]
Say = Callable[..., Mention]
SCHEMA = TypeAdapter(WrittenTemplate)


def test_a_template_survives_json(routes: Routes, say: Say) -> None:
    template = generalize(
        routes({"customer": "Ada Lovelace", "t": "to {{params.x.y}}", "n": [1, {"a": 7}]}),
        [Parameter("customer", "Ada Lovelace", mention="Ada Lovelace"), Parameter("x", {"y": 3})],
        [say("Ada Lovelace", "customer", name="customer"), say("'Hi Ada Lovelace'", "quoted")],
    )
    said = json.loads(json.dumps(template.to_json()))
    again = PlanTemplate.of(validated(SCHEMA, said, what="the template"))
    assert again == template
    values: dict[str, Json] = {p.name: p.value for p in template.params}
    assert bind(again, values) == bind(template, values)


def test_a_plan_with_an_instant_frozen_for_now_is_refused_and_cannot_be_written(
    routes: Routes, say: Say
) -> None:
    plan = routes({"at": "2024-03-10T14:30"})
    template = generalize(plan, mentions=[say("30 minutes ago", "date", relative=True)])
    assert "14:30" in template.refusal
    with pytest.raises(BindingError, match="cannot be reused"):
        template.to_json()


def test_a_plan_that_looks_like_two_formats_is_read_as_the_same_one_everywhere() -> None:
    plan: JsonObject = {
        "tasks": [{"id": "task0", "input": {"year": 2024}}],
        "instructions": [{"seq_no": 0, "type": "assign", "parameters": {"year": 2024}}],
    }
    template = generalize(plan, [Parameter("year", 2024, mention="2024")])
    said = json.loads(json.dumps(template.to_json()))
    assert PlanTemplate.of(validated(SCHEMA, said, what="the template")).format == "tasks"
