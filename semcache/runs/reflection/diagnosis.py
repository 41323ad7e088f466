"""A model says what went wrong, and what to change."""

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from semcache.canonical import dumps, plain
from semcache.errors import InvalidJson, SemCacheError
from semcache.ports import Clock, Message, Model, Observer
from semcache.runs.dialog import Accepted, Dialog, Rejected, json_object
from semcache.runs.redaction import kept
from semcache.runs.reflection.attempts import Failed, RetryVerdict
from semcache.runs.run_context import told
from semcache.runs.texts import load
from semcache.schemas import faults

MAX_SENT = 20_000  # characters of a prompt that a diagnosis is shown


class Diagnosis(BaseModel):
    """What a model says of a failure."""

    model_config = ConfigDict(extra="ignore", strict=True)

    should_retry: bool = Field(alias="shouldRetry")
    reason: str = Field(min_length=1, max_length=2000)
    data: dict[str, object] | None = Field(default=None, alias="revisedPromptData")
    system: str | None = Field(default=None, alias="revisedSystemPrompt")


def diagnosed(
    failed: Failed, model: Model, *, attempts: int, observer: Observer, clock: Clock
) -> RetryVerdict:
    """Return what a model says; one that fails, or says nothing of use, ends it."""
    text = load("reflect", "semcache.runs")
    earlier = [f"{e.attempt}. {e.error}: {e.reason}" for e in failed.history]
    user = text.fill(
        "user",
        level=failed.level,
        name=failed.name,
        attempt=str(failed.attempt),
        attempts=str(attempts),
        error=dumps(kept(told(failed.error))),
        sent=dumps(kept(failed.sent, max_chars=MAX_SENT)),
        history="\n".join(earlier) or "None",
    )
    dialog = Dialog(model, "reflect", 2, observer=observer, clock=clock)
    try:
        said = dialog.ask(
            [Message("system", text.fill("system")), Message("user", user)],
            read=_diagnosis,
            retry=lambda errors: text.fill("retry", errors=errors),
        )
    except SemCacheError as error:
        return RetryVerdict(retry=False, reason=f"Reflection analysis failed: {told(error)}")
    if isinstance(said, Rejected):
        return RetryVerdict(
            retry=False, reason=f"Reflection analysis failed: {'; '.join(said.errors)}"
        )
    return said.value


def _diagnosis(text: str) -> Accepted[RetryVerdict] | Rejected[RetryVerdict]:
    try:
        said = Diagnosis.model_validate(json_object(text))
    except ValidationError as error:
        return Rejected(tuple(faults(error)))
    except InvalidJson as error:
        return Rejected((str(error),))
    data = {name: plain(value, what=name) for name, value in (said.data or {}).items()}
    system = said.system or ""
    return Accepted(
        RetryVerdict(retry=said.should_retry, reason=said.reason, data=data, system=system)
    )
