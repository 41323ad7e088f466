"""semcache makes an execution plan once and reuses it for every prompt that means the same.

The names below are the public surface; they load when first used, so that `import semcache` costs
next to nothing and loads no model, index or client.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from semcache.aio import AsyncPlanCache, AsyncSemCache
    from semcache.cache.entries.writer import Stored
    from semcache.cache.plan_cache import PlanCache
    from semcache.cache.result import Found, Hit, Miss
    from semcache.catalog.builtin import NeedsInput, Question
    from semcache.catalog.catalog import Catalog
    from semcache.catalog.operation import Operation
    from semcache.errors import SemCacheError
    from semcache.prompts.parameter import Parameter
    from semcache.prompts.schema import PromptSchema
    from semcache.semcache import SemCache
    from semcache.semcache.answer import Answer
    from semcache.settings import Settings
    from semcache.sources.functions import catalog_from, operation

__version__ = "0.1.0"


def _refuse_namesake(beside: Path) -> None:
    """Raise where the other product of this import name is installed into the same folder.

    The two overwrite one another's files there; nothing could be trusted to be ours.
    """
    # By its file name: asking `importlib.metadata` would cost more than the rest of this import.
    found = next(beside.glob("semcache-*.dist-info"), None)
    if found is not None:
        raise ImportError(
            f"two products share the import name 'semcache': {found.name!r} lies beside "
            "'semcache-plans', which this is; uninstall both, then install the one that you want: "
            "`pip uninstall semcache semcache-plans`, `pip install semcache-plans`"
        )


_refuse_namesake(Path(__file__).parents[1])

_HOMES = {
    "Answer": "semcache.semcache.answer",
    "AsyncPlanCache": "semcache.aio",
    "AsyncSemCache": "semcache.aio",
    "Catalog": "semcache.catalog.catalog",
    "Found": "semcache.cache.result",
    "Hit": "semcache.cache.result",
    "Miss": "semcache.cache.result",
    "NeedsInput": "semcache.catalog.builtin",
    "Operation": "semcache.catalog.operation",
    "Parameter": "semcache.prompts.parameter",
    "PlanCache": "semcache.cache.plan_cache",
    "PromptSchema": "semcache.prompts.schema",
    "Question": "semcache.catalog.builtin",
    "SemCache": "semcache.semcache",
    "SemCacheError": "semcache.errors",
    "Settings": "semcache.settings",
    "Stored": "semcache.cache.entries.writer",
    "catalog_from": "semcache.sources.functions",
    "operation": "semcache.sources.functions",
}

__all__ = [
    "Answer",
    "AsyncPlanCache",
    "AsyncSemCache",
    "Catalog",
    "Found",
    "Hit",
    "Miss",
    "NeedsInput",
    "Operation",
    "Parameter",
    "PlanCache",
    "PromptSchema",
    "Question",
    "SemCache",
    "SemCacheError",
    "Settings",
    "Stored",
    "catalog_from",
    "operation",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'semcache' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
