"""A model that remembers its answers."""

from collections.abc import Sequence

from semcache.canonical import Json
from semcache.ports import Completion, Message, Model, RememberingModel
from semcache.prompts.redaction import Redact
from semcache.responses.cache import Responses
from semcache.responses.key import ModelRequest, response_key


class CachedModel:
    """Any model, asked once for the same messages. Satisfies `ports.RememberingModel`.

    Its fingerprint is the model's own, so equal models share their answers. Safe from several
    threads if the model is; threads that ask the same at once make one call.
    """

    def __init__(
        self,
        model: Model,
        responses: Responses,
        *,
        group: str = "",
        ttl_s: float | None = None,
        redact: Redact | None = None,
    ) -> None:
        """Ask `model` what `responses` does not have.

        Args:
            model: Who is asked.
            responses: Where answers are kept; several models may share it.
            group: Label for `Responses.bust_group`; empty: the model's fingerprint.
            ttl_s: Seconds from its last use after which an answer is asked for anew; None: as
                `responses` has it.
            redact: Where it would change a message or the answer, nothing is kept; None: all is.
        """
        self._model = model
        self._responses = responses
        self._group = group
        self._ttl_s = ttl_s
        self._redact = redact

    def __repr__(self) -> str:
        return f"CachedModel({self._model!r})"

    @property
    def fingerprint(self) -> str:
        """The model's own."""
        return self._model.fingerprint

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Return the answer that is kept for `messages` (`cached`), else the model's.

        Raises:
            InvalidJson: a message is not valid Unicode.
            ModelUnavailable, ModelRejected: the model was asked and cannot answer; that is not
                kept.
        """
        return self._answer(messages, bypass=False)

    def fresh(self, messages: Sequence[Message]) -> Completion:
        """Return the model's answer whatever is kept, and keep it instead. Raises as `complete`."""
        return self._answer(messages, bypass=True)

    def forget(self, messages: Sequence[Message]) -> None:
        """Forget the answer to `messages`; a store that fails is passed over."""
        self._responses.forget(self._key(messages))
        if isinstance(self._model, RememberingModel):
            self._model.forget(messages)

    def _key(self, messages: Sequence[Message]) -> str:
        # The fingerprint names provider, model and sampling settings.
        return response_key(ModelRequest(model=self._model.fingerprint, messages=messages))

    def _answer(self, messages: Sequence[Message], *, bypass: bool) -> Completion:
        made: list[Completion] = []

        model = self._model
        complete = model.fresh if bypass and isinstance(model, RememberingModel) else model.complete
        if self._hides(*(message.content for message in messages)):
            return complete(messages)

        def make() -> Json:
            made.append(complete(messages))
            return _kept(made[0])

        response = self._responses.answer(
            self._key(messages),
            make,
            group=self._group or self.fingerprint,
            ttl_s=self._ttl_s,
            bypass=bypass,
            keep=lambda _: not self._hides(made[0].text),
        )
        known = made[0] if made else _completion(response.value)
        # None: of another shape, written by who knows whom.
        return self.fresh(messages) if known is None else known

    def _hides(self, *texts: str) -> bool:
        redact = self._redact
        return redact is not None and any(redact(text) != text for text in texts)


def _kept(completion: Completion) -> Json:
    return {
        "text": completion.text,
        "model": completion.model,
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
    }


def _completion(value: Json) -> Completion | None:
    match value:
        case {
            "text": str(text),
            "model": str(model),
            "prompt_tokens": int(asked),
            "completion_tokens": int(said),
        }:
            return Completion(text, model, asked, said, cached=True)
        case _:
            return None
