"""The page to look at a cache by: one file, and the policy that lets a browser run nothing else."""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from fastapi.responses import HTMLResponse


@cache
def page() -> tuple[str, str]:
    """Return the page, and its content security policy.

    The policy names script and style by their hashes, so that nothing which a prompt or plan might
    smuggle into the page would run, and lets the page talk to the server it came from alone.
    """
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; script-src {_hashes(text, 'script')}; "
        f"style-src {_hashes(text, 'style')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text, policy


def page_response() -> HTMLResponse:
    """Return the page as an answer."""
    text, policy = page()
    return HTMLResponse(text, headers={"Content-Security-Policy": policy})


def _hashes(text: str, tag: str) -> str:
    inner = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return " ".join(f"'sha256-{b64encode(sha256(i.encode()).digest()).decode()}'" for i in inner)
