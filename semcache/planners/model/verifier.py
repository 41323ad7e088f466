"""A language model that says whether a plan made for one prompt answers another."""

from semcache.canonical import JsonObject
from semcache.errors import InvalidInput
from semcache.ports import Clock, Message, Model, Observer, Verification
from semcache.runs.dialog import Accepted, Dialog, Rejected, json_object
from semcache.runs.texts import load, shown

ATTEMPTS = 2
"""Calls at most for one candidate."""


class ModelVerifier:
    """Asks a model, and believes only a plain yes or no. Satisfies `ports.Verifier`.

    Safe from several threads if the model is. Its words are evidence of nothing: a prompt or plan
    may try to talk it into a yes, so bring it where a wrong plan does little harm.
    """

    def __init__(
        self,
        model: Model,
        *,
        observer: Observer | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Keep what is asked for.

        Args:
            model: Who is asked.
            observer: Hears of each call.
            clock: Times the calls; None: the machine's own.
        """
        self._dialog = Dialog(model, "verify", ATTEMPTS, observer, clock)
        self._text = load("verify")

    def __repr__(self) -> str:
        return f"ModelVerifier({self._dialog.model.fingerprint}/{self._text.label})"

    def verify(self, question: Verification) -> bool | None:
        """Return the model's yes or no; None where it is unsure or says nothing that can be used.

        Raises:
            ModelError: the model cannot answer.
        """
        user = self._text.fill(
            "user",
            prompt=shown(question.prompt),
            planned=shown(question.planned),
            plan=shown(question.plan),
        )
        messages = [Message("system", self._text.fill("system")), Message("user", user)]
        result = self._dialog.ask(
            messages,
            read=_read,
            retry=lambda errors: self._text.fill("retry", errors=errors),
        )
        return None if isinstance(result, Rejected) else result.value


def _read(text: str) -> Accepted[bool | None] | Rejected[bool | None]:
    try:
        answer: JsonObject = json_object(text)
    except InvalidInput as error:
        return Rejected((str(error),))
    if answer.keys() != {"same"} or not isinstance(answer["same"], bool | None):
        return Rejected((f'expected {{"same": true}}, false or null; found {answer!r}',))
    return Accepted(answer["same"], text)
