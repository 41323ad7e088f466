"""A cross-encoder of sentence-transformers that says whether two prompts ask the same."""

import math
import threading
from typing import Protocol

from semcache.errors import InvalidSettings, ModelUnavailable
from semcache.ports import Verification
from semcache.process.imports import ensure_imported


class _Scores(Protocol):
    """What is used of `sentence_transformers.CrossEncoder`."""

    def predict(self, pair: tuple[str, str], /) -> float:
        """Return how much the two texts say the same."""


class CrossEncoderVerifier:
    """Compares the prompt with the one that the plan was made for. Satisfies `ports.Verifier`.

    Safe from several threads: the weights score one pair at a time.
    """

    def __init__(self, model: "str | _Scores", *, yes: float, no: float) -> None:
        """Keep what is asked for; weights are read when the first pair is scored.

        Args:
            model: Directory or hub name of a cross-encoder, or one that is loaded already.
            yes: Score from which the two ask the same; scales differ from model to model.
            no: Score under which they do not; between the two it abstains.

        Raises:
            InvalidSettings: `no` is over `yes`, or one is not a finite number.
        """
        if not (math.isfinite(yes) and math.isfinite(no) and no <= yes):
            raise InvalidSettings(f"yes is {yes!r} and no is {no!r}; expected no <= yes")
        self._model = model
        self._yes = yes
        self._no = no
        self._lock = threading.Lock()

    def verify(self, question: Verification) -> bool | None:
        """Return whether the prompts ask the same, None between the two scores.

        Raises:
            ModelUnavailable: the weights cannot be loaded, or give no finite score.
        """
        with self._lock:
            score = float(self._loaded().predict((question.prompt, question.planned)))
        if not math.isfinite(score):
            raise ModelUnavailable(f"the cross-encoder gave {score!r}; expected a finite score")
        if score >= self._yes:
            return True
        return False if score < self._no else None

    def _loaded(self) -> _Scores:
        if not isinstance(self._model, str):
            return self._model
        try:
            ensure_imported("sentence_transformers")
            from sentence_transformers import CrossEncoder  # noqa: PLC0415 - an extra, seconds long

            loaded: _Scores = CrossEncoder(self._model)
        except (ImportError, OSError, ValueError) as error:
            raise ModelUnavailable(
                f"the cross-encoder {self._model!r} cannot be loaded: {error}; give a directory "
                "with its weights"
            ) from error
        self._model = loaded
        return loaded
