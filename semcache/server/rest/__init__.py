"""The REST door, and a page to look at a cache by."""

from importlib.util import find_spec

from semcache.errors import MissingExtra

if find_spec("fastapi") is None or find_spec("uvicorn") is None:
    raise MissingExtra("the REST door needs `pip install 'semcache-plans[serve]'`")
