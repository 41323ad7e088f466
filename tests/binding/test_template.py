import json
from collections.abc import Callable

import pytest

from semcache import Parameter
from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.binding.template import PlanTemplate
from semcache.canonical import Json, JsonObject
from semcache.errors import BindingError
from semcache.prompts.mentions import Mention

Routes = Callable[..., JsonObject]
Say = Callable[..., Mention]


def test_a_template_survives_json(routes: Routes, say: Say) -> None:
    template = generalize(
        routes({"customer": "Ada Lovelace", "t": "to {{params.x.y}}", "n": [1, {"a": 7}]}),
        [Parameter("customer", "Ada Lovelace", mention="Ada Lovelace"), Parameter("x", {"y": 3})],
        [say("Ada Lovelace", "customer", name="customer"), say("'Hi Ada Lovelace'", "quoted")],
    )
    again = PlanTemplate.from_json(json.loads(json.dumps(template.to_json())))
    assert again == template
    values: dict[str, Json] = {p.name: p.value for p in template.params}
    assert bind(again, values) == bind(template, values)


@pytest.mark.parametrize("record", [{}, {"version": 2}, {"version": 1}, {"version": 1, "plan": []}])
def test_a_record_that_is_no_template_is_refused(record: JsonObject) -> None:
    with pytest.raises(BindingError) as caught:
        PlanTemplate.from_json(record)
    assert caught.value.reason == "format"
