"""Looking at a failure, and trying again with what was learned: bounded, and never blindly."""

from semcache.runs.reflection.attempts import (
    Attempt,
    Entry,
    Failed,
    Stop,
    Verdict,
    stop_after_attempts,
    stop_after_seconds,
    stop_on,
)
from semcache.runs.reflection.diagnosis import Diagnosis
from semcache.runs.reflection.reflection import Prompt, Reflection

__all__ = [
    "Attempt",
    "Diagnosis",
    "Entry",
    "Failed",
    "Prompt",
    "Reflection",
    "Stop",
    "Verdict",
    "stop_after_attempts",
    "stop_after_seconds",
    "stop_on",
]
