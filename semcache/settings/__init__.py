"""Settings: every knob, its default and its unit, read once at the door.

Explicit values win over the environment (`SEMCACHE_THRESHOLD=0.97`), the environment over a file
(`semcache.toml`), and the file over the defaults. No other room reads the environment.
"""

from semcache.settings.settings import Settings
from semcache.settings.values import PREFIX, directory_of

__all__ = ["PREFIX", "Settings", "directory_of"]
