"""Looking at a failure, and trying again with what was learned: bounded, and never blindly."""

from semcache.reflection.attempts import Attempt, Entry, Failed, Verdict
from semcache.reflection.diagnosis import Diagnosis
from semcache.reflection.prompt import Prompt
from semcache.reflection.reflection import Reflection
from semcache.reflection.stop import Stop, stop_after_attempts, stop_after_seconds, stop_on

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
