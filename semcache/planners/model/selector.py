"""A language model that says which of a few cached plans a prompt means."""

from collections.abc import Mapping, Sequence

from semcache.canonical import Json, JsonObject, leaves, pointer_text, spelled
from semcache.errors import InvalidInput
from semcache.ports import Choice, Clock, Message, Model, Observer, PlanOption
from semcache.prompts.redaction import Redact
from semcache.runs.dialog import Accepted, Dialog, Rejected, json_object
from semcache.runs.texts import load, shown

ATTEMPTS = 2
"""Calls at most for one prompt; each after the first is told what was wrong."""
MAX_COMMON = 2_000
"""Characters of what all plans share that are shown; what tells them apart is shown whole."""


class ModelSelector:
    """Asks a model for a number, or none, and for missing values. Satisfies `ports.Selector`.

    It is shown what the plans share once, and of each only what is its own: a short question, and
    an answer of a few tokens. Safe from several threads if the model is.
    """

    def __init__(
        self,
        model: Model,
        *,
        observer: Observer | None = None,
        clock: Clock | None = None,
        redact: Redact | None = None,
    ) -> None:
        """Keep what is asked for.

        Args:
            model: Who is asked.
            observer: Hears of each call.
            clock: Times the calls; None: the machine's own.
            redact: Leaves of what is wrong with an answer what may be logged; None: all.
        """
        self._dialog = Dialog(model, "select", ATTEMPTS, observer, clock, redact)
        self._text = load("select")

    def __repr__(self) -> str:
        return f"ModelSelector({self._dialog.model.fingerprint}/{self._text.label})"

    def select(self, prompt: str, options: Sequence[PlanOption]) -> Choice | None:
        """Return the plan that the model chose, with its missing values; None if it chose none.

        Raises:
            ModelError: the model cannot answer.
        """
        if not options:
            return None
        common, own = parted([option.plan for option in options])
        listed: list[Json] = []
        for number, (option, part) in enumerate(zip(options, own, strict=True), 1):
            wants: JsonObject = {"wants": dict(option.missing)} if option.missing else {}
            listed.append({"plan": number, "made_for": option.prompt, "has": dict(part), **wants})
        user = self._text.fill(
            "user",
            prompt=shown(prompt),
            common=spelled(dict(common))[:MAX_COMMON] if common else "nothing",
            options=shown(listed),
        )
        result = self._dialog.ask(
            [Message("system", self._text.fill("system")), Message("user", user)],
            read=lambda text: _read(text, options),
            retry=lambda errors: self._text.fill("retry", errors=errors),
        )
        return None if isinstance(result, Rejected) else result.value


def parted(
    plans: Sequence[JsonObject],
) -> tuple[Mapping[str, Json], Sequence[Mapping[str, Json]]]:
    """Return what all plans have at the same places, and of each plan what is its own."""
    flat = [{pointer_text(at): value for at, value in leaves(plan)} for plan in plans]
    first = flat[0]
    shared = {at for at in first if all(at in one and one[at] == first[at] for one in flat[1:])}
    if len(flat) == 1:
        return {}, flat
    own = [{at: value for at, value in one.items() if at not in shared} for one in flat]
    return {at: first[at] for at in first if at in shared}, own


def _read(
    text: str, options: Sequence[PlanOption]
) -> Accepted[Choice | None] | Rejected[Choice | None]:
    try:
        answer = json_object(text)
    except InvalidInput as error:
        return Rejected((str(error),))
    choice, values = answer.get("choice", ""), answer.get("values") or {}
    if not {"choice"} <= answer.keys() <= {"choice", "values"} or isinstance(choice, bool):
        return Rejected((f'expected {{"choice": NUMBER}}; found {answer!r:.200}',))
    if choice is None:
        return Accepted(None)
    if not isinstance(choice, int) or not 1 <= choice <= len(options):
        return Rejected((f"choice is {choice!r:.80}; expected 1 to {len(options)}, or null",))
    wanted = options[choice - 1].missing
    if not isinstance(values, dict) or values.keys() != wanted.keys():
        names = ", ".join(map(repr, wanted)) or "none"
        return Rejected((f"values is {values!r:.200}; plan {choice} wants: {names}",))
    return Accepted(Choice(choice - 1, values))
