"""Settings: every knob, its default and its unit, read once at the door.

Explicit values win over the environment (`SEMCACHE_THRESHOLD=0.97`), the environment over a file
(`semcache.toml`), and the file over the defaults below. No other room reads the environment.
"""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Self, Union, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from semcache.errors import InvalidSettings
from semcache.file_errors import unreadable

PREFIX = "SEMCACHE_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set, with its default."""

    directory: Path | None = None
    """Where the cache is kept; None keeps it in memory. With a database: its snapshots."""
    database: str = field(default="", repr=False)
    """Connection string of the PostgreSQL that keeps the cache; empty: none. Never shown."""
    database_schema: str = "semcache"
    """Schema of the database that the cache has to itself."""
    database_search: str = "replica"
    """Who searches by meaning: `replica`, this process in a copy of its own, or the `server`."""
    database_lag_s: float = 1.0
    """Seconds within which changes by other processes are seen; 0: at once, a query a lookup."""
    database_pool: int = 8
    """Connections to the database that this process may have, beside the one that listens."""
    database_timeout_s: float = 5.0
    """Seconds that one statement may take in the database."""
    encryption_key: str = field(default="", repr=False)
    """32 bytes as base64 to encrypt with what is kept on disk; empty: it is not. Never shown."""
    threshold: float = 0.95
    """Cosine in [-1, 1] that a semantic candidate must exceed."""
    max_wrong: float | None = None
    """Highest share of hits that may be wrong, in (0, 1), in place of `threshold`; None: both."""
    explore: float = 0.0
    """Share of semantic hits, in [0, 1], whose prompts are planned all the same: their plans show
    how often hits are wrong. Each costs what a miss costs."""
    verify: str = "background"
    """When a verifier is asked, if one is given: in the `background`, for the next prompt of the
    kind, or `inline`, while the caller waits."""
    verify_from: float = 0.8
    """Cosine in [-1, 1] from which a candidate that is not served is shown to the verifier."""
    verify_waiting: int = 64
    """Candidates that may wait for the verifier; more are not shown to it."""
    neighbors: int = 16
    """How many nearest templates are tried on a lookup."""
    max_entries: int | None = 10_000
    """Entries a tenant may have before those worth least make room; None: no bound."""
    max_bytes: int | None = None
    """Bytes that the entries of a tenant may have, vectors included; None: no bound."""
    max_total_entries: int | None = None
    """Entries that all tenants may have; the tenant that has most makes room; None: no bound."""
    max_total_bytes: int | None = None
    """Bytes that the entries of all tenants may have; None: no bound."""
    ttl_s: float | None = 30 * 24 * 3600.0
    """Seconds from storing to expiry; None: never."""
    ttl_slides: str = "never"
    """Which hits make the TTL begin anew: `never` (none), `exact` (those of the template and schema
    tiers) or `always` (semantic ones too)."""
    frozen: bool = False
    """Whether the cache only serves: plans are looked up, and nothing is written anywhere."""
    flight_wait_s: float = 120.0
    """Seconds to wait for another thread or process that makes the same plan; then make it too."""
    flight_ttl_s: float = 10.0
    """Seconds after which a plan is made again whose maker died. Clocks of machines that share a
    store must agree much better than that."""
    timezone: str = "UTC"
    """Where days begin and end for words such as "yesterday": `UTC`, `Europe/Berlin`…"""
    max_prompt_chars: int = 20_000
    """Characters a prompt may have."""
    writes_from_semantic: bool = False
    """Whether a semantic hit may run operations with effect `write`."""
    embedder: str = ""
    """Name or path of a sentence-transformers model; empty: the packaged all-MiniLM-L6-v2."""
    embedder_threads: int = 1
    """Threads for one embedding; more is slower on a busy machine."""
    model: str = ""
    """Name of the language model behind normalizer and planner; empty: rules and catalog only."""
    base_url: str = field(default="", repr=False)
    """Base URL of an OpenAI-compatible server; empty: OpenAI's own. It may hold a password: never
    shown."""
    api_key: str = field(default="", repr=False)
    """Key for the model; read from `OPENAI_API_KEY` too. Never shown."""
    model_timeout_s: float = 60.0
    """Seconds that one call of the model may take."""
    plan_format: str = "routes"
    """Format of the plans that the model is asked for: `routes`, `tasks` or `program`."""
    steps_by_model: bool = False
    """Whether the model is asked to take a goal apart, for operations to be found step by step,
    before it is asked for a whole plan. One call more, and the plan is made of checked parts."""
    model_operations: int = 40
    """Operations that the model is shown at first: of a larger catalog, the most relevant."""
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Domain → its keywords, as `[domains]` of the file or as JSON has them: of a catalog that
    covers several, the model is shown what a goal is about. Operations without a keyword belong to
    all."""
    translations: Mapping[str, Mapping[str, str | int | float | bool]] = field(default_factory=dict)
    """Name of a parameter, or slot type → words of prompts → the value that plans have for them, as
    `[translations.state]` of the file or as JSON has them: `California = "CA"`."""
    model_retries: int = 3
    """How often a call of the model is repeated after 429, 5xx or a broken connection."""
    response_cache: bool = True
    """Whether answers of the model are remembered, by exactly what it was asked."""
    response_entries: int = 1000
    """Answers remembered; those used longest ago make room."""
    response_bytes: int = 50 * 2**20
    """Bytes that the answers remembered may have."""
    response_ttl_s: float | None = 3600.0
    """Seconds since its last use after which an answer is forgotten; None: never."""
    max_steps: int = 100
    """Nodes that one plan may visit."""
    timeout_s: float = 60.0
    """Seconds that one plan may run."""
    call_timeout_s: float = 30.0
    """Seconds that one operation may take."""
    max_output_bytes: int = 10 * 2**20
    """Bytes that one result may have."""
    reflection: bool = False
    """Whether a plan that fails is looked at, and tried again or made anew where that may help."""
    reflection_attempts: int = 3
    """Attempts at one execution, the first one counted."""
    reflection_delay_s: float = 0.0
    """Seconds before each further attempt."""
    run_trees: int = 100
    """Run trees that are kept to look at; those that began longest ago make room."""
    run_nodes: int = 10_000
    """Nodes that one run tree keeps; those that finished longest ago make room."""
    prompt_token_price: float = 0.0
    """Price of a million tokens sent to the model, in any currency; run trees count the cost."""
    completion_token_price: float = 0.0
    """Price of a million tokens that the model answers."""

    def __post_init__(self) -> None:
        for name in _RANGES:
            _check_range(name, getattr(self, name))
        for one in fields(self):
            _check_kind(one.name, getattr(self, one.name), one.default)
        if self.directory is not None and "\0" in str(self.directory):
            raise InvalidSettings(f"directory is {str(self.directory)!r}; a path holds no NUL")
        if self.ttl_slides not in SLIDES:
            expected = ", ".join(SLIDES)
            raise InvalidSettings(f"ttl_slides is {self.ttl_slides!r}; expected one of {expected}")
        if self.database_search not in _SEARCHES:
            raise InvalidSettings(
                f"database_search is {self.database_search!r}; expected {' or '.join(_SEARCHES)}"
            )
        if self.max_wrong is not None and not _is_share(self.max_wrong):
            raise InvalidSettings(
                f"max_wrong is {self.max_wrong!r}; expected a share between 0 and 1, or None"
            )

        _zone(self.timezone)
        _check_translations(self.translations)
        if self.verify not in VERIFYING:
            raise InvalidSettings(f"verify is {self.verify!r}; expected {' or '.join(VERIFYING)}")

    @property
    def zone(self) -> tzinfo:
        """The time zone named by `timezone`."""
        return _zone(self.timezone)

    @classmethod
    def load(
        cls,
        *,
        environ: Mapping[str, str] | None = None,
        file: Path | None = None,
        **explicit: object,
    ) -> Self:
        """Return settings from what is given, then `environ`, then the TOML `file`, then defaults.

        An explicit None means "not given" except for `directory`, whose absence means memory.

        Raises:
            InvalidSettings: a name that is no setting, a value of the wrong type or out of range,
                or a file that cannot be read.
        """
        environ = environ or {}
        chosen: dict[str, object] = {}
        chosen.update(_from_file(file) if file is not None else {})
        chosen.update(_from_environ(environ))
        chosen.update({k: v for k, v in explicit.items() if v is not None})
        hints = get_type_hints(cls)
        _known(chosen, hints)
        return cls(**{name: _typed(name, value, hints[name]) for name, value in chosen.items()})


SLIDES = ("never", "exact", "always")
"""What `ttl_slides` may be."""
_SEARCHES = ("replica", "server")

VERIFYING = ("background", "inline")
"""What `verify` may be."""

_RANGES: dict[str, tuple[float, float]] = {
    "threshold": (-1, 1),
    "database_lag_s": (0, 3600),
    "database_pool": (1, 1000),
    "database_timeout_s": (0.001, 3600),
    "explore": (0, 1),
    "verify_from": (-1, 1),
    "verify_waiting": (1, 10_000),
    "neighbors": (1, 1000),
    "max_entries": (1, 10**9),
    "max_bytes": (1, 2**50),
    "max_total_entries": (1, 10**9),
    "max_total_bytes": (1, 2**50),
    "flight_wait_s": (0, 86_400),
    "flight_ttl_s": (0.1, 3600),
    "ttl_s": (0.001, 10**10),
    "max_prompt_chars": (1, 10**6),
    "embedder_threads": (1, 256),
    "model_timeout_s": (0.001, 3600),
    "model_retries": (0, 20),
    "model_operations": (1, 10_000),
    "response_entries": (1, 10**9),
    "response_bytes": (1, 2**40),
    "response_ttl_s": (0.001, 10**10),
    "max_steps": (1, 10**6),
    "timeout_s": (0.001, 86_400),
    "call_timeout_s": (0.001, 86_400),
    "max_output_bytes": (1, 2**40),
    "reflection_attempts": (1, 100),
    "reflection_delay_s": (0, 3600),
    "run_trees": (1, 10**6),
    "run_nodes": (1, 10**7),
    "prompt_token_price": (0, 10**9),
    "completion_token_price": (0, 10**9),
}


_WHOLE = frozenset(
    "verify_waiting database_pool neighbors max_entries max_bytes max_total_entries "
    "max_total_bytes "
    "max_prompt_chars embedder_threads model_retries model_operations max_steps max_output_bytes "
    "response_entries response_bytes run_trees run_nodes reflection_attempts".split()
)
"""Settings that count something."""


_SECRET = frozenset(f.name for f in fields(Settings) if not f.repr)
"""Settings whose values are never shown."""


@cache
def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC  # known to every machine
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError) as error:
        raise InvalidSettings(
            f"timezone is {name!r}; expected a name of the IANA database such as 'Europe/Berlin' "
            "(install `tzdata` if this machine has none)"
        ) from error


def _check_range(name: str, value: object) -> None:
    low, high = _RANGES[name]
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int if name in _WHOLE else int | float):
        wanted = "a whole number" if name in _WHOLE else "a number"
        raise InvalidSettings(f"{name} is {value!r}; expected {wanted}")
    if not low <= value <= high:
        raise InvalidSettings(f"{name} is {value!r}; expected {low:g} to {high:g}")


def _check_kind(name: str, value: object, default: object) -> None:
    """Refuse what is no text, no path or neither true nor false where that is wanted."""
    for kind, expected in ((bool, "True or False"), (str, "text")):
        if isinstance(default, kind) and not isinstance(value, kind):
            found = f"of type {type(value).__name__}" if name in _SECRET else repr(value)
            raise InvalidSettings(f"{name} is {found}; expected {expected}")
    if name == "directory" and not isinstance(value, Path | None):
        raise InvalidSettings(f"directory is {value!r}; expected a Path, or None for memory")


def directory_of(path: object) -> Path | None:
    """Return the directory at `path`: text or a path; None stays None, for memory.

    Raises:
        InvalidSettings: it is neither.
    """
    if path is None or isinstance(path, str | Path):
        return None if path is None else Path(path)
    raise InvalidSettings(f"directory is {path!r}; expected a path, or None for memory")


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and 0 < value < 1


def _known(chosen: Mapping[str, object], hints: Mapping[str, object]) -> None:
    unknown = sorted(set(chosen) - set(hints))
    if unknown:
        raise InvalidSettings(f"unknown setting {unknown[0]!r}; known: {', '.join(sorted(hints))}")


def _from_environ(environ: Mapping[str, str]) -> dict[str, object]:
    names = {f.name for f in fields(Settings)}
    found: dict[str, object] = {
        key[len(PREFIX) :].lower(): value
        for key, value in environ.items()
        if key.startswith(PREFIX) and key[len(PREFIX) :].lower() in names and value != ""
    }
    if environ.get("OPENAI_API_KEY"):
        found.setdefault("api_key", environ["OPENAI_API_KEY"])
    return found


def _from_file(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(unreadable(file, error, expected="settings as TOML")) from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidSettings(f"{str(file)!r} is not TOML: {error}; expected settings") from error


def _typed(name: str, value: object, hint: Any) -> Any:  # noqa: ANN401 - as wide as the settings
    options = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    for option in options:
        kind = get_origin(option) or option
        if kind is type(None) and (value is None or value in ("none", "None")):
            return None
        reader = _TABLES.get(name) if kind is Mapping else _READ.get(kind)
        if reader is not None and (read := reader(value)) is not None:
            return read
    wanted = " or ".join(kind.__name__ for kind in options)
    found = f"of type {type(value).__name__}" if name in _SECRET else repr(value)
    raise InvalidSettings(f"{name} is {found}; expected {wanted}")


def _bool(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    return words.get(value.lower()) if isinstance(value, str) else None


def _int(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        return None
    return int(number) if number is not None and number.is_integer() else None


def _float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _path(value: object) -> Path | None:
    if not isinstance(value, str | Path):
        return None
    try:
        return Path(value).expanduser()
    except RuntimeError:  # "~nobody/x" names the home of a user that there is not
        return None


def _str(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _domains(value: object) -> Mapping[str, tuple[str, ...]] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if not isinstance(value, Mapping):
        return None
    found = {name: words for name, words in value.items() if isinstance(words, list | tuple)}
    if len(found) < len(value) or not all(isinstance(w, str) for ws in found.values() for w in ws):
        return None
    return {str(name): tuple(words) for name, words in found.items()}


def _translations(value: object) -> Mapping[str, Mapping[str, str | int | float | bool]] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if not isinstance(value, Mapping) or not all(isinstance(t, Mapping) for t in value.values()):
        return None
    return {name: dict(table) for name, table in value.items()}


def _check_translations(tables: object) -> None:
    """Refuse tables that are none, and words that two of them translate otherwise."""
    if not isinstance(tables, Mapping):
        raise InvalidSettings(f"translations is {tables!r}; expected name -> words -> value")
    told: dict[str, tuple[str, object]] = {}
    for name, table in tables.items():
        if not isinstance(name, str) or not name.strip() or not isinstance(table, Mapping):
            raise InvalidSettings(
                f"translations has {table!r} for {name!r}; expected words -> value for a name, "
                'such as {"state": {"California": "CA"}}'
            )
        for words, value in table.items():
            _check_translation(name, words, value)
            key = " ".join(words.casefold().split())
            other, known = told.setdefault(key, (name, value))
            if (type(known), known) != (type(value), value):
                raise InvalidSettings(
                    f"translations has {words!r} for {known!r} in {other!r} and for {value!r} in "
                    f"{name!r}; words stand for one value"
                )


def _check_translation(name: str, words: object, value: object) -> None:
    if not isinstance(words, str) or not any(map(str.isalnum, words)):
        raise InvalidSettings(f"translations of {name!r} has the words {words!r}; expected text")
    finite = not isinstance(value, float) or math.isfinite(value)
    if not isinstance(value, str | int | float | bool) or not finite:
        raise InvalidSettings(
            f"translations has {value!r} for {words!r} of {name!r}; expected text, a number, true "
            "or false"
        )


_TABLES = {"domains": _domains, "translations": _translations}
_READ = {bool: _bool, int: _int, float: _float, Path: _path, str: _str}
