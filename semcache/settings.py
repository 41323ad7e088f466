"""Settings: every knob, its default and its unit, read once at the door.

Explicit values win over the environment (`SEMCACHE_THRESHOLD=0.97`), the environment over a file
(`semcache.toml`), and the file over the defaults. No other room reads the environment.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import Field as Setting
from dataclasses import dataclass, field, fields
from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, Self, cast, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from semcache.errors import InvalidSettings
from semcache.files import unreadable
from semcache.schemas import Value
from semcache.secrecy import remember, remember_url

PREFIX = "SEMCACHE_"
"""What the name of a setting has before it in the environment."""


@cache
def zone_of(name: str) -> tzinfo:
    """Return the time zone of that name; InvalidSettings if this machine knows none."""
    if name == "UTC":
        return UTC  # known to every machine
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidSettings(
            f"timezone is {name!r}; expected a name of the IANA database such as 'Europe/Berlin' "
            "(install `tzdata` if this machine has none)"
        ) from error


def directory_of(path: object) -> Path | None:
    """Return the directory at `path`: text or a path; None stays None, for memory.

    Raises:
        InvalidSettings: it is neither.
    """
    if path is None or isinstance(path, str | Path):
        return None if path is None else Path(path)
    raise InvalidSettings(f"directory is {path!r}; expected a path, or None for memory")


def _at_home(path: Path) -> Path:
    if "\0" in str(path):
        raise InvalidSettings(f"directory is {str(path)!r}; a path holds no NUL")
    try:
        return path.expanduser()
    except RuntimeError as error:  # "~nobody/x" names the home of a user that there is not
        raise InvalidSettings(f"directory is {str(path)!r}; expected a path: {error}") from error


def _known_zone(name: str) -> str:
    zone_of(name)
    return name


Directory = Annotated[Path, AfterValidator(_at_home)]
TimeZone = Annotated[str, AfterValidator(_known_zone)]
Cosine = Annotated[float, Field(ge=-1, le=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0.001, le=86_400)]
Delay = Annotated[float, Field(ge=0, le=86_400)]
Lifetime = Annotated[float, Field(ge=0.001, le=10**10)]
Price = Annotated[float, Field(ge=0, le=10**9)]
Some = Annotated[int, Field(ge=1, le=1000)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Bytes = Annotated[int, Field(ge=1, le=2**50)]
Domains = Mapping[str, Annotated[tuple[str, ...], Field(strict=False)]]
Arguments = Mapping[str, Value]


def _of_one_value(
    tables: Mapping[str, Mapping[str, str | int | float | bool]],
) -> Mapping[str, Mapping[str, str | int | float | bool]]:
    """Return tables that translate no words otherwise than another one does."""
    told: dict[str, tuple[str, object]] = {}
    for name, table in tables.items():
        for words, value in table.items():
            if not name.strip() or not any(map(str.isalnum, words)):
                raise ValueError(f"has the words {words!r} for {name!r}; expected text for a name")
            key = " ".join(words.casefold().split())
            other, known = told.setdefault(key, (name, value))
            if (type(known), known) != (type(value), value):
                raise ValueError(
                    f"has {words!r} for {known!r} in {other!r} and for {value!r} in {name!r}; "
                    "words stand for one value"
                )
    return tables


Translations = Annotated[
    Mapping[str, Mapping[str, str | int | float | bool]], AfterValidator(_of_one_value)
]
"""Name of a parameter, or slot type → words of prompts → the value that plans have for them."""

_TABLES = {
    "domains": 'name -> keywords, such as {"github": ["issue", "pull request"]}',
    "model_arguments": 'a JSON object such as {"reasoning_effort": "low"}',
    "translations": "name -> words -> value (text, a number, true or false), such as "
    '{"state": {"California": "CA"}}',
}
"""Setting that is a table → what is expected of it; as text it is JSON."""


def from_environ(environ: Mapping[str, str], known: Mapping[str, object]) -> dict[str, object]:
    """Return what `environ` says of the `known` settings; what is empty says nothing.

    `OPENAI_API_KEY` is the `api_key` where no variable of ours is.
    """
    found: dict[str, object] = {
        key[len(PREFIX) :].lower(): value
        for key, value in environ.items()
        if key.startswith(PREFIX) and key[len(PREFIX) :].lower() in known and value != ""
    }
    if environ.get("OPENAI_API_KEY"):
        found.setdefault("api_key", environ["OPENAI_API_KEY"])
    return found


def from_file(file: Path) -> dict[str, object]:
    """Return what a TOML file says.

    Raises:
        InvalidSettings: it cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(unreadable(file, error, expected="settings as TOML")) from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidSettings(f"{str(file)!r} is not TOML: {error}; expected settings") from error


def typed(chosen: Mapping[str, object], known: Mapping[str, Setting[Any]]) -> dict[str, Any]:
    """Return `chosen` with each value in the type of its setting; texts are read.

    Raises:
        InvalidSettings: a name that is no setting, or a value that its setting cannot have.
    """
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        raise InvalidSettings(f"unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return {name: _typed(known[name], value) for name, value in chosen.items()}


def _typed(one: Setting[Any], value: object) -> object:
    if not isinstance(value, str):
        return checked(one, value)
    if value in ("none", "None") and NoneType in get_args(one.type):
        return None
    if one.name not in _TABLES:
        return checked(one, value, read=True)
    try:
        return checked(one, json.loads(value))
    except ValueError:
        return checked(one, value)


def checked(one: Setting[Any], value: object, *, read: bool = False) -> object:
    """Return a `value` that the setting can have; `read`: from its text.

    Raises:
        InvalidSettings: it is of another type, out of range, or none of the choices.
    """
    adapter = _adapter(one)
    try:
        return adapter.validate_strings(value) if read else adapter.validate_python(value)
    except ValidationError as error:
        found = error.errors()[0]
        if one.name in _TABLES:
            raise InvalidSettings(_no_table(one.name, found, value)) from None
        if found["type"] == "value_error":  # ours, which says what it found
            raise InvalidSettings(_said(found)) from None
        expected = found["msg"].removeprefix("Input should be ")
        if found["type"].startswith(("greater_than", "less_than")):
            expected = _range(adapter) or expected
        shown = repr(value) if one.repr else f"of type {type(value).__name__}"
        raise InvalidSettings(f"{one.name} is {shown}; expected {expected}") from None


def _no_table(name: str, found: ErrorDetails, value: object) -> str:
    if name == "translations" and found["type"] == "value_error":  # ours, which says what it found
        return f"{name} {_said(found)}"
    how = "is" if found["input"] is value else "has"
    return f"{name} {how} {found['input']!r}; expected {_TABLES[name]}"


def _said(found: ErrorDetails) -> str:
    return found["msg"].removeprefix("Value error, ")


@cache
def _adapter(one: Setting[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(
        cast("type[Any]", one.type), config=ConfigDict(strict=True, allow_inf_nan=False)
    )


def _range(adapter: TypeAdapter[Any]) -> str:
    """Return the range of a number, both ends in it; empty if an end is open or stands outside."""
    schema = adapter.json_schema()
    for each in (schema, *schema.get("anyOf", ())):
        if "minimum" in each and "maximum" in each:
            return f"{each['minimum']:g} to {each['maximum']:g}"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set, with its default."""

    directory: Directory | None = None
    """Where the cache is kept; None keeps it in memory. With a database: its snapshots."""
    database: str = field(default="", repr=False)
    """Connection string of the PostgreSQL that keeps the cache; empty: none. Never shown."""
    database_schema: str = "semcache"
    """Schema of the database that the cache has to itself."""
    database_search: Literal["replica", "server"] = "replica"
    """Who searches by meaning: `replica`, this process in a copy of its own, or the `server`."""
    database_lag_s: Delay = 1.0
    """Seconds within which changes by other processes are seen; 0: at once, a query a lookup."""
    database_pool: Some = 8
    """Connections to the database that this process may have, beside the one that listens."""
    database_timeout_s: Seconds = 5.0
    """Seconds that one statement may take in the database."""
    encryption_key: str = field(default="", repr=False)
    """32 bytes as base64 to encrypt with what is kept on disk; empty: it is not. Never shown."""
    threshold: Cosine = 0.95
    """Cosine in [-1, 1] that a semantic candidate must exceed, in the unit of all-MiniLM-L6-v2."""
    max_wrong: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Highest share of hits that may be wrong, in (0, 1), in place of `threshold`; None: both."""
    explore: Share = 0.0
    """Share of hits, in [0, 1], whose prompts are planned all the same: their plans show how often
    hits are wrong. Each costs what a miss costs."""
    verify: Literal["background", "inline"] = "background"
    """When a verifier is asked, if one is given: in the `background`, for the next prompt of the
    kind, or `inline`, while the caller waits."""
    verify_from: Cosine = 0.8
    """Cosine in [-1, 1] from which a candidate that is not served is shown to the verifier."""
    verify_waiting: Count = 64
    """Candidates that may wait for the verifier; more are not shown to it."""
    neighbors: Some = 16
    """How many nearest templates are tried on a lookup."""
    max_entries: Count | None = 10_000
    """Entries a tenant may have before those worth least make room; None: no bound."""
    max_bytes: Bytes | None = None
    """Bytes that the entries of a tenant may have, vectors included; None: no bound."""
    max_total_entries: Count | None = None
    """Entries that all tenants may have; the tenant that has most makes room; None: no bound."""
    max_total_bytes: Bytes | None = None
    """Bytes that the entries of all tenants may have; None: no bound."""
    ttl_s: Lifetime | None = 30 * 24 * 3600.0
    """Seconds from storing to expiry; None: never."""
    ttl_slides: Literal["never", "exact", "always"] = "never"
    """Which hits make the TTL begin anew: `never` (none), `exact` (those of the template and schema
    tiers) or `always` (semantic ones too)."""
    frozen: bool = False
    """Whether the cache only serves: plans are looked up, and nothing is written anywhere."""
    flight_wait_s: Delay = 120.0
    """Seconds to wait for another thread or process that makes the same plan; then make it too."""
    flight_ttl_s: Annotated[float, Field(ge=0.1, le=3600)] = 10.0
    """Seconds after which a plan is made again whose maker died. Clocks of machines that share a
    store must agree much better than that."""
    timezone: TimeZone = "UTC"
    """Where days begin and end for words such as "yesterday": `UTC`, `Europe/Berlin`…"""
    max_prompt_chars: Annotated[int, Field(ge=1, le=10**6)] = 20_000
    """Characters a prompt may have."""
    writes_from_semantic: bool = False
    """Whether a semantic hit may run operations with effect `write`."""
    embedder: str = ""
    """Name or path of a sentence-transformers model; empty: the weights that ship."""
    embedder_difference: Directory | None = None
    """Folder with what `semcache train` learned for the default embedder; None: `embedder` in
    `directory`. Where none is, or one that cannot be used, the plain embedder serves."""
    warm_up: Literal["never", "background", "before"] = "never"
    """When embedder and tenants are loaded: `before` the cache is opened, in the `background` from
    then on, or `never`, which is by the first lookup or store that needs them."""
    embedder_threads: Annotated[int, Field(ge=1, le=256)] = 1
    """Threads for one embedding; more is slower on a busy machine."""
    model: str = ""
    """Name of the language model behind normalizer and planner; empty: rules and catalog only."""
    base_url: str = field(default="", repr=False)
    """Base URL of an OpenAI-compatible server; empty: OpenAI's own. It may hold a password: never
    shown."""
    api_key: str = field(default="", repr=False)
    """Key for the model; read from `OPENAI_API_KEY` too. Never shown."""
    model_timeout_s: Seconds = 60.0
    """Seconds that one call of the model may take, all its tries together."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Temperature in [0, 2] that the model is asked with; None: not sent, as some take none."""
    model_arguments: Arguments = field(default_factory=dict)
    """What else is sent with each call of the model, as `[model_arguments]` of the file or as JSON
    has it: `reasoning_effort = "low"`."""
    plan_format: Literal["routes", "tasks", "program"] = "routes"
    """Format of the plans that the model is asked for: `routes`, `tasks` or `program`."""
    plan_files: str = ""
    """Folder of OneMCP's plan files (`plans/<key>.json`): plans are taken from it before any is
    made, and new ones written to it; empty: none."""
    selection: bool = True
    """Whether the model, if there is one, is asked on a miss which of a few near plans is meant,
    before it is asked for a new one. It ends for a tenant whose audits speak against it."""
    steps_by_model: bool = False
    """Whether the model is asked to take a goal apart, for operations to be found step by step,
    before it is asked for a whole plan. One call more, and the plan is made of checked parts."""
    model_operations: Annotated[int, Field(ge=1, le=10_000)] = 40
    """Operations that the model is shown at first: of a larger catalog, the most relevant."""
    domains: Domains = field(default_factory=dict)
    """Domain → its keywords, as `[domains]` of the file or as JSON has them: of a catalog that
    covers several, the model is shown what a goal is about. Operations without a keyword belong to
    all."""
    translations: Translations = field(default_factory=dict)
    """Name of a parameter, or slot type → words of prompts → the value that plans have for them, as
    `[translations.state]` of the file or as JSON has them: `California = "CA"`."""
    model_retries: Annotated[int, Field(ge=0, le=20)] = 3
    """How often a call of the model is repeated after 429, 5xx or a broken connection."""
    response_cache: bool = True
    """Whether answers of the model are remembered, by exactly what it was asked."""
    response_entries: Count = 1000
    """Answers remembered; those used longest ago make room."""
    response_bytes: Bytes = 50 * 2**20
    """Bytes that the answers remembered may have."""
    response_ttl_s: Lifetime | None = 3600.0
    """Seconds since its last use after which an answer is forgotten; None: never."""
    max_steps: Annotated[int, Field(ge=1, le=10**6)] = 100
    """Nodes that one plan may visit."""
    timeout_s: Seconds = 60.0
    """Seconds that one plan may run."""
    call_timeout_s: Seconds = 30.0
    """Seconds that one operation may take."""
    max_output_bytes: Bytes = 10 * 2**20
    """Bytes that one result may have."""
    reflection: bool = False
    """Whether a plan that fails is looked at, and tried again or made anew where that may help."""
    reflection_attempts: Annotated[int, Field(ge=1, le=100)] = 3
    """Attempts at one execution, the first one counted."""
    reflection_delay_s: Delay = 0.0
    """Seconds before each further attempt."""
    run_trees: Count = 100
    """Run trees that are kept to look at; those that began longest ago make room."""
    run_nodes: Count = 10_000
    """Nodes that one run tree keeps; those that finished longest ago make room."""
    prompt_token_price: Price = 0.0
    """Price of a million tokens sent to the model, in any currency; run trees count the cost."""
    completion_token_price: Price = 0.0
    """Price of a million tokens that the model answers."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not one.default:  # what checks a value takes longer to make than to use
                checked(one, value)
        remember(self.api_key, self.encryption_key)
        remember_url(self.base_url)
        remember_url(self.database)

    @property
    def zone(self) -> tzinfo:
        """The time zone named by `timezone`."""
        return zone_of(self.timezone)

    @classmethod
    def load(
        cls,
        *,
        environ: Mapping[str, str] | None = None,
        file: Path | None = None,
        **explicit: object,
    ) -> Self:
        """Return settings from what is given, then `environ`, then the TOML `file`, then defaults.

        An explicit None means "not given"; the word "none" turns off what may be None.

        Raises:
            InvalidSettings: a name that is no setting, a value of the wrong type or out of range,
                or a file that cannot be read.
        """
        known = {one.name: one for one in fields(cls)}
        chosen: dict[str, object] = {
            **from_environ(environ or {}, known),
            **{name: value for name, value in explicit.items() if value is not None},
        }
        told = typed(chosen, known)
        if file is None:
            return cls(**told)
        try:
            written = typed(from_file(file), known)
            cls(**written)  # by itself: the rest must not hide what is wrong in it
        except InvalidSettings as error:
            name, why = repr(str(file)), str(error)
            raise InvalidSettings(why if name in why else f"in {name}, {why}") from error
        return cls(**{**written, **told})
