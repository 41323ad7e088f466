"""Every error that semcache raises.

SemCacheError
├── InvalidInput (ValueError)     what the caller handed in cannot be used
│   ├── InvalidPrompt             not text, blank, too long, NUL, lone surrogates
│   ├── InvalidParameter          a parameter without a name, or whose value is not JSON
│   ├── InvalidJson               NaN, a cycle, a key that is not text, too deep
│   ├── InvalidPlan               a plan that no engine could run; carries all findings
│   ├── InvalidOperation          a function or schema that cannot become an operation
│   ├── InvalidSettings           a setting out of range, unknown, or of the wrong type
│   ├── InvalidStream             a stream or log that cannot be replayed; names file and line
│   ├── UnknownTool               there is no introspection tool of that name
│   ├── UnknownLookup             a door keeps no lookup of that id for the tenant
│   └── InvalidVector             wrong dimension, wrong dtype, not finite
├── NotInRun                      a tool about the run that it is called in, called outside one
├── UnknownOperation              a catalog has no operation of that name
├── NormalizationError            no valid schema after all attempts
├── PlanningError                 no valid plan after all attempts
│   ├── NotActionable             the planner says that the catalog cannot do this
│   ├── Referred                  the planner would have to guess; carries the questions to ask
│   └── PlanSuspended             the plan failed lately; it is tried again after a delay
├── BindingError                  a plan template cannot take these values
├── ExecutionError                a plan stopped; carries the node
│   ├── OperationFailed           the operation raised (the cause is kept)
│   ├── OperationRefused          input or output breaks its schema, or a write without leave
│   ├── ExpressionError           a path or condition that cannot be read
│   ├── StepLimitExceeded         more steps than the budget
│   ├── DeadlineExceeded          no answer before the deadline
│   ├── OutputTooLarge            a result over the output bound
│   ├── InputNeeded               the plan asks a person, and nobody has answered yet
│   └── CompensationFailed        the plan stopped, and not all that it had done could be undone
├── StoreError                    the store cannot be read or written
│   ├── StoreUnavailable          locked, full, read-only, gone
│   ├── StoreCorrupt              bytes that are not what was written
│   ├── ForeignDirectory          a directory that is not ours
│   ├── ForeignDatabase           a schema of a database that is not ours
│   ├── WrongKey                  encrypted with another key, or with none where one is given
│   └── NewerFormat               written by a later semcache
├── IndexCorrupt                  a vector index file that cannot be trusted
├── EmbeddingError                an embedder that cannot answer
│   └── WeightsUnavailable        weights not installed, or not the ones expected
├── ModelError                    a model that cannot answer
│   ├── ModelUnavailable          unreachable, overloaded, too late: another try may work
│   └── ModelRejected             the request or its credentials are not accepted
├── SourceError                   a service that operations come from cannot be used
│   ├── SourceUnavailable         unreachable, dead, too late, or not speaking its protocol
│   └── SourceRejected            it answered with an error; carries status and excerpt
├── NotAllowed                    a caller of a door has no right to what it asks for
├── Busy                          too many calls of a tenant wait at a door already
└── MissingExtra (ImportError)    an optional package is not installed
"""

from collections.abc import Mapping, Sequence

from semcache.secrecy import without_known


class SemCacheError(Exception):
    """Root of everything that semcache raises on purpose.

    What it says shows no secret that this process was given, in any spelling: a message may quote
    what a server said, and that may quote what it was asked with.
    """

    def __str__(self) -> str:
        return without_known(super().__str__())

    def __repr__(self) -> str:
        return without_known(super().__repr__())


class InvalidInput(SemCacheError, ValueError):
    """What the caller handed in cannot be used; nothing was changed."""


class InvalidPrompt(InvalidInput):
    """The prompt is not text, blank, too long, or holds characters that cannot be stored."""


class InvalidParameter(InvalidInput):
    """A parameter without a name, given twice, or whose value is not JSON."""


class InvalidJson(InvalidInput):
    """A value that is not JSON: NaN, a cycle, a key that is not text, too deep."""


class InvalidPlan(InvalidInput):
    """A plan that no engine could run."""

    def __init__(self, message: str, findings: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)
        """Everything that is wrong with the plan, each as `path: what`."""


class InvalidOperation(InvalidInput):
    """A function or schema that cannot become an operation."""


class InvalidSettings(InvalidInput):
    """A setting that is out of range, unknown, or of the wrong type."""


class InvalidStream(InvalidInput):
    """A stream or log of prompts and plans that cannot be replayed; names file and line."""


class InvalidVector(InvalidInput):
    """A vector of the wrong dimension or dtype, or with values that are not finite."""


class UnknownTool(InvalidInput):
    """There is no introspection tool of that name."""


class UnknownLookup(InvalidInput):
    """A door keeps no lookup of that id for the tenant: never given, or too long ago."""


class NotInRun(SemCacheError):
    """A tool about the run that it is called in was called outside one."""


class UnknownOperation(SemCacheError):
    """A catalog has no operation of that name."""


class NormalizationError(SemCacheError):
    """No valid schema came out of all attempts."""

    def __init__(self, message: str, *, answer: str = "") -> None:
        super().__init__(message)
        self.answer = answer
        """The last answer of the model, as it came; empty if there was none."""


class PlanningError(SemCacheError):
    """No valid plan came out of all attempts."""


class NotActionable(PlanningError):
    """The planner says that the catalog cannot do what was asked."""


class Referred(PlanningError):
    """The planner would have to guess: which operation is meant, or what a value is."""

    def __init__(self, message: str, *, questions: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.questions = tuple(questions)
        """What to ask the person, in words; with the answers in the prompt it can be planned."""


class PlanSuspended(PlanningError):
    """The plan for this prompt failed lately and is not tried again yet."""

    def __init__(self, message: str, *, retry_at_s: float) -> None:
        super().__init__(message)
        self.retry_at_s = retry_at_s
        """Epoch seconds after which the plan is tried again."""


class BindingError(SemCacheError):
    """A plan template cannot take these values."""

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        """Code for what stood in the way: `missing`, `pinned`, `type`… (see `binding.bind`)."""


class ExecutionError(SemCacheError):
    """A plan stopped before it had an answer."""

    def __init__(self, message: str, *, node: str = "") -> None:
        super().__init__(message)
        self.node = node
        """Id of the node that was being executed; empty before the first."""


class OperationFailed(ExecutionError):
    """The operation raised; the cause is kept."""


class OperationRefused(ExecutionError):
    """The operation was not called: its input breaks its schema, or it writes without leave."""


class ExpressionError(ExecutionError):
    """A path or condition of the plan cannot be read."""


class StepLimitExceeded(ExecutionError):
    """The plan took more steps than its budget."""


class DeadlineExceeded(ExecutionError):
    """The plan had no answer before its deadline."""


class OutputTooLarge(ExecutionError):
    """A result is over the output bound."""


class InputNeeded(ExecutionError):
    """The plan asks a person something, and nobody has answered yet."""

    def __init__(
        self, message: str, *, question: Mapping[str, object] | None = None, node: str = ""
    ) -> None:
        super().__init__(message, node=node)
        self.question = dict(question or {})
        """The input of `ask_user` that asks it."""


class CompensationFailed(ExecutionError):
    """The plan stopped, and not all that it had done could be undone; the cause says why."""


class StoreError(SemCacheError):
    """The store cannot be read or written."""


class StoreUnavailable(StoreError):
    """The store is locked, full, read-only or gone; another try may work."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing
        """Whether it may answer again although nobody changes anything."""


class StoreCorrupt(StoreError):
    """Bytes in the store are not what was written."""


class ForeignDirectory(StoreError):
    """A directory that holds something that semcache did not write."""


class ForeignDatabase(StoreError):
    """A schema of a database that holds tables that semcache did not make."""


class WrongKey(StoreError):
    """A store that the given key does not open: another one, or none, was used to write it."""


class NewerFormat(StoreError):
    """A directory or database that a later version of semcache wrote."""


class IndexCorrupt(SemCacheError):
    """A vector index file that cannot be trusted; it is rebuilt from the store."""


class EmbeddingError(SemCacheError):
    """The embedder cannot answer."""


class WeightsUnavailable(EmbeddingError):
    """Weights are not installed, or are not the ones expected."""


class ModelError(SemCacheError):
    """The model cannot answer."""

    def __init__(self, message: str, *, status: int | None = None, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; None where there was none."""
        self.code = code
        """What the server called it: `insufficient_quota`, `timeout`…; empty if it did not say."""


class ModelUnavailable(ModelError):
    """The model is unreachable, overloaded or too late; another try may work."""


class ModelRejected(ModelError):
    """The model does not accept the request or its credentials; another try will not work."""


class SourceError(SemCacheError):
    """A service that operations come from cannot be used."""


class SourceUnavailable(SourceError):
    """The service is unreachable, dead, too late, or does not speak its protocol."""


class SourceRejected(SourceError):
    """The service answered with an error."""

    def __init__(self, message: str, *, status: int | None = None, excerpt: str = "") -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; None where the protocol has none."""
        self.excerpt = excerpt
        """The beginning of what the service said."""


class NotAllowed(SemCacheError):
    """A caller of a door has no right to what it asks for."""


class Busy(SemCacheError):
    """Too many calls of the tenant wait at a door already; another try may work."""


class MissingExtra(SemCacheError, ImportError):
    """An optional package is not installed; the message names the extra that brings it."""
