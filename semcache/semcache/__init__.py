"""SemCache: a prompt in, an answer out; and the parts of a run, from the prompt to the answer."""

from semcache.semcache.semcache import SemCache

__all__ = ["SemCache"]
