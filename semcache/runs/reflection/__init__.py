"""Looking at a failure, and trying again with what was learned: bounded, and never blindly."""

from semcache.runs.reflection.attempts import (
    Attempt,
    Failed,
    ReflectionEntry,
    RetryVerdict,
    Stop,
    stop_after_attempts,
    stop_after_seconds,
    stop_on,
)
from semcache.runs.reflection.diagnosis import Diagnosis
from semcache.runs.reflection.reflection import Prompt, Reflection

__all__ = [
    "Attempt",
    "Diagnosis",
    "Failed",
    "Prompt",
    "Reflection",
    "ReflectionEntry",
    "RetryVerdict",
    "Stop",
    "stop_after_attempts",
    "stop_after_seconds",
    "stop_on",
]
