"""Chat answers and embeddings from any server that speaks the OpenAI protocol."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from semcache.canonical import Json, JsonObject, as_list, as_object, dumps, loads, plain
from semcache.errors import (
    EmbeddingError,
    InvalidJson,
    InvalidSettings,
    ModelError,
    ModelRejected,
    ModelUnavailable,
)
from semcache.models.memo import VectorMemo
from semcache.models.openai_server import OpenAIServer
from semcache.ports import Completion, Message, Vectors

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletionMessageParam


class OpenAIModel:
    """A chat model behind `/chat/completions`. Safe from several threads.

    429, 408, 409, 5xx and broken connections are tried again by the `openai` client, with growing
    delays or those that `Retry-After` asks for.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout_s: float = 60,
        max_retries: int = 3,
        temperature: float | None = None,
        arguments: Mapping[str, Json] | None = None,
    ) -> None:
        """Keep what is asked for; nothing is imported or connected before the first `complete`.

        Args:
            model: Name of the model, as the server knows it.
            api_key: Needed by OpenAI itself; a compatible server may do without.
            base_url: Up to and with `/v1`; None: OpenAI itself.
            timeout_s: Seconds that one call may take, all its tries together.
            max_retries: Tries after the first.
            temperature: 0 for the likeliest answer; None: not sent, as some models take none.
            arguments: What else is sent with each request: `{"reasoning_effort": "low"}`.

        Raises:
            InvalidSettings: no model name, `base_url` is no http address, a number out of range, or
                an argument that is no JSON or has a place of its own.
        """
        self._model = _named(model)
        self._temperature = temperature
        self._arguments = _sendable(arguments or {})
        self._server = OpenAIServer(
            api_key=api_key, base_url=base_url, timeout_s=timeout_s, max_retries=max_retries
        )

    def __repr__(self) -> str:
        return f"OpenAIModel({self._model!r}, base_url={self._server.address!r})"

    @property
    def fingerprint(self) -> str:
        """Server, model, temperature and arguments; equal fingerprints answer alike."""
        name = f"openai/{self._server.address}/{self._model}/temperature={self._temperature}"
        return f"{name}/{dumps(self._arguments)}" if self._arguments else name

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Return the model's answer.

        Raises:
            ModelUnavailable: unreachable, overloaded, too late or not understood, after all tries.
            ModelRejected: the request or its key is not accepted, the model refuses, or the answer
                was cut off.
        """
        from openai import omit  # noqa: PLC0415 - takes half a second

        sent = [_message(message) for message in messages]
        temperature = omit if self._temperature is None else self._temperature

        async def asked(client: "AsyncOpenAI") -> str:
            answer = await client.chat.completions.with_raw_response.create(
                model=self._model,
                messages=sent,
                temperature=temperature,
                extra_body=self._arguments or None,
            )
            return answer.text

        return _completion(_object(self._server.ask(asked), self), self)

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._server.close()


class OpenAIEmbedder:
    """Embeds behind `/embeddings`; remembers the vectors of the latest texts.

    Safe from several threads. Retries as `OpenAIModel` does.
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        dimensions: int | None = None,
        timeout_s: float = 60,
        max_retries: int = 3,
        memo: int = 10_000,
        batch_size: int = 256,
    ) -> None:
        """Keep what is asked for; nothing is imported or connected before the first `embed`.

        Args:
            model: Name of the model, as the server knows it.
            api_key: Needed by OpenAI itself; a compatible server may do without.
            base_url: Up to and with `/v1`; None: OpenAI itself.
            dimensions: Length to shorten vectors to, for models that can; None: as they are.
            timeout_s: Seconds that one request may take, all its tries together.
            max_retries: Tries after the first.
            memo: How many texts keep their vector; 0 switches the memo off.
            batch_size: Texts in one request; OpenAI takes at most 2048.

        Raises:
            InvalidSettings: no model name, `base_url` is no http address, a number out of range.
        """
        if batch_size < 1 or memo < 0:
            raise InvalidSettings(
                f"batch_size is {batch_size!r} and memo is {memo!r}; expected at least 1 and 0"
            )
        self._model = _named(model)
        self._dimensions = dimensions
        self._batch_size = batch_size
        self._memo = VectorMemo(memo)
        self._server = OpenAIServer(
            api_key=api_key, base_url=base_url, timeout_s=timeout_s, max_retries=max_retries
        )

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._model!r}, base_url={self._server.address!r})"

    @property
    def fingerprint(self) -> str:
        """Server, model and dimensions; vectors of two fingerprints are never compared."""
        return (
            f"openai/{self._server.address}/{self._model}/{self._dimensions or 'full'}/normalized"
        )

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one L2-normalized float32 row a text, in order; shape `(len(texts), dim)`.

        No texts give shape `(0, 0)` and ask nobody.

        Raises:
            EmbeddingError: the server does not answer, refuses, or its answer cannot be used.
        """
        return self._memo.embed(texts, self._encode)

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._server.close()

    def _encode(self, texts: list[str]) -> Vectors:
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        batches = range(0, len(texts), self._batch_size)
        try:
            rows = [self._request(texts[at : at + self._batch_size]) for at in batches]
        except ModelError as error:
            raise EmbeddingError(f"{self!r} cannot embed: {error}") from error
        if len({part.shape[1] for part in rows}) > 1:
            raise EmbeddingError(f"{self!r} gave vectors of several lengths")
        return np.concatenate(rows)

    def _request(self, texts: list[str]) -> Vectors:
        from openai import omit  # noqa: PLC0415 - takes half a second

        async def asked(client: "AsyncOpenAI") -> str:
            answer = await client.embeddings.with_raw_response.create(
                model=self._model,
                input=texts,
                dimensions=omit if self._dimensions is None else self._dimensions,
                # The client's default, base64, is not understood by every compatible server.
                encoding_format="float",
            )
            return answer.text

        return _vectors(_object(self._server.ask(asked), self), len(texts), self)


def _message(message: Message) -> "ChatCompletionMessageParam":
    match message.role:
        case "system":
            return {"role": "system", "content": message.content}
        case "user":
            return {"role": "user", "content": message.content}
        case "assistant":
            return {"role": "assistant", "content": message.content}


# The client builds its objects without checking what came: anything can be missing in them. So the
# text of the answer is read here, only for what is needed, as compatible servers leave out much.
def _object(text: str, asked: object) -> JsonObject:
    try:
        answer = loads(text, what="the answer")
    except InvalidJson as error:
        raise ModelUnavailable(f"{asked!r} broke off or is no such server: {error}") from error
    if not isinstance(answer, dict):
        raise _unexpected(answer, asked)
    return answer


def _completion(answer: JsonObject, asked: OpenAIModel) -> Completion:
    match answer:
        case {"choices": [{"message": {"refusal": str(words)}}, *_]} if words:
            raise ModelRejected(f"{asked!r} refuses: {words!r}")
        case {"choices": [{"finish_reason": ("length" | "content_filter") as why}, *_]}:
            raise ModelRejected(
                f"the answer of {asked!r} was cut off ({why!r}); expected a whole one: "
                "ask for less, or use a model with a longer output"
            )
        case {"choices": [{"message": {"content": str(text)}}, *_]}:
            name = answer.get("model")
            return Completion(
                text=text,
                model=name if isinstance(name, str) else "",
                prompt_tokens=_tokens(answer, "prompt_tokens"),
                completion_tokens=_tokens(answer, "completion_tokens"),
            )
        case _:
            raise _unexpected(answer, asked)


def _tokens(answer: JsonObject, name: str) -> int:
    usage = answer.get("usage")
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) else 0


def _vectors(answer: JsonObject, count: int, asked: OpenAIEmbedder) -> Vectors:
    rows: dict[int, list[Json]] = {}
    for item in as_list(answer.get("data")):
        match item:
            case {"index": int(index), "embedding": list(numbers)}:
                rows[index] = numbers
    if sorted(rows) != list(range(count)):
        raise _unexpected(answer, asked)
    return _normalized([rows[i] for i in range(count)], asked)


def _normalized(rows: list[list[Json]], asked: OpenAIEmbedder) -> Vectors:
    try:
        vectors = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"{asked!r} gave what are not vectors: {error}") from error
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    if vectors.ndim != 2 or not np.isfinite(lengths).all() or not lengths.all():
        raise EmbeddingError(f"{asked!r} gave vectors that are empty, zero or not finite")
    normalized: Vectors = (vectors / lengths).astype(np.float32)
    return normalized


def _unexpected(answer: Json, asked: object) -> ModelUnavailable:
    return ModelUnavailable(
        f"{asked!r} answered {dumps(answer)[:200]!r}; expected what the OpenAI protocol has there"
    )


OWN_ARGUMENTS = frozenset({"messages", "model", "stream", "temperature"})
"""What a request says anyway."""


def _sendable(arguments: Mapping[str, Json]) -> JsonObject:
    own = sorted(OWN_ARGUMENTS & arguments.keys())
    if own:
        raise InvalidSettings(f"the arguments for the model hold {own[0]!r}; expected others")
    try:
        return as_object(plain(dict(arguments), what="the arguments for the model"))
    except InvalidJson as error:
        raise InvalidSettings(f"{error}; expected a JSON object") from error


def _named(model: str) -> str:
    if not model.strip():
        raise InvalidSettings(
            f"the model is named {model!r}; expected a name that the server knows"
        )
    return model
