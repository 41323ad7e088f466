"""Asking a person, as an operation: what any plan may call beside the operations of its domain.

`ask_user` has no answer of its own. Whoever runs the plan puts the answers behind it
(`Catalog.with_calls`); a question that has none yet stops the plan with `InputNeeded`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from semcache.canonical import Json, JsonObject
from semcache.catalog.operation import Operation
from semcache.errors import InputNeeded

ASK_USER = "ask_user"
"""Name of the operation that asks a person."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a plan needs to be told by a person."""

    topic: str
    """What is asked for, in few words: `page size`. The answer is given under this name."""
    text: str
    """The question, as a person reads it."""
    operation: str = ""
    """The operation that the answer goes to; empty if none alone."""
    input: str = ""
    """The property of its input that the answer becomes."""
    answer: JsonObject = field(default_factory=dict)
    """JSON Schema of the answer; empty takes any text."""

    @classmethod
    def of(cls, given: Mapping[str, Json], schema: JsonObject | None = None) -> "Question":
        """Return the question that an input of `ask_user` asks.

        `schema` is that of the property which the answer becomes: it says which answers will do.
        """
        said = {key: value for key, value in given.items() if isinstance(value, str)}
        topic = said.get("topic") or said.get("question", "")
        return cls(
            topic=topic,
            text=said.get("question") or _text(topic, schema or {}),
            operation=said.get("operation", ""),
            input=said.get("input", ""),
            answer=dict(schema or {}),
        )

    @property
    def given(self) -> JsonObject:
        """The input of `ask_user` that asks it."""
        told = {
            "topic": self.topic,
            "question": self.text,
            "operation": self.operation,
            "input": self.input,
        }
        return {key: value for key, value in told.items() if value}

    def to_json(self) -> JsonObject:
        """Return the question for whoever asks it: topic, text, and the schema of the answer."""
        return {"topic": self.topic, "text": self.text, "answer": self.answer}


@dataclass(frozen=True, slots=True)
class NeedsInput:
    """A run that waits for a person: what to ask them, and how it goes on."""

    token: str
    """What `SemCache.answer` is given; nobody can guess it."""
    questions: tuple[Question, ...]
    """What to ask, each once; at least one."""
    tenant: str = "default"
    expires_s: float | None = None
    """Epoch seconds after which nobody waits any more; None: it never ends."""

    @property
    def text(self) -> str:
        """The questions as a person reads them, a line each."""
        return "\n".join(question.text for question in self.questions)

    def to_json(self) -> JsonObject:
        """Return it as JSON."""
        return {
            "token": self.token,
            "questions": [question.to_json() for question in self.questions],
            "expires_s": self.expires_s,
        }


def _text(topic: str, schema: JsonObject) -> str:
    said = schema.get("description")
    hints = [said.strip().rstrip(".")] if isinstance(said, str) and said.strip() else []
    hints += _expected(schema)
    return f"Please provide: {topic}" + (f" ({'; '.join(hints)})" if hints else "")


_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "yes or no",
    "array": "several, with commas between",
}


def _expected(schema: JsonObject) -> list[str]:
    """Return what to tell a person about the answers that will do."""
    listed = schema.get("enum")
    if isinstance(listed, list):
        return ["one of " + ", ".join(map(str, listed))]
    kind = schema.get("type")
    said = _KINDS.get(kind, "") if isinstance(kind, str) else ""
    low, high = schema.get("minimum"), schema.get("maximum")
    if said and low is not None and high is not None:
        said += f" from {low} to {high}"
    return [said] if said else []


def _unanswered(given: JsonObject) -> object:
    topic = Question.of(given).topic
    raise InputNeeded(
        f"the plan asks for {topic!r} and nobody has answered; answer it, and run it on",
        question=given,
    )


def ask_user() -> Operation:
    """Return asking a person as an operation that reads; it gives the answer and nothing else.

    A plan names what is asked for and where the answer goes, and neither bounds nor defaults of
    that: a number of the schema in the plan would be taken for one of the prompt.
    """
    return Operation(
        ASK_USER,
        "Ask the person who made the request for something that only they know.",
        {
            "type": "object",
            "properties": {
                "topic": {"type": "string", "description": "What is asked for, in few words."},
                "question": {"type": "string", "description": "The question, if not the topic."},
                "operation": {"type": "string", "description": "Where the answer goes, if known."},
                "input": {"type": "string", "description": "The property that it becomes there."},
            },
            "required": ["topic"],
            "additionalProperties": False,
        },
        effect="read",
        call=_unanswered,
    )
