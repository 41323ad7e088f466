"""`semcache ask` and `semcache explain`."""

import argparse
from typing import TYPE_CHECKING

from semcache.cache.found import Hit
from semcache.commands.opening import semcache_of
from semcache.commands.options import add_command, add_common, add_planning
from semcache.commands.output import print_json

if TYPE_CHECKING:
    from semcache.commands.options import Commands


def add(commands: "Commands") -> None:
    """Add the commands that take a prompt."""
    for name, run, says in (
        ("ask", _ask, "Answer a prompt; plan only if no plan fits."),
        ("explain", _explain, "Show why a prompt hits or misses."),
    ):
        options = add_command(commands, name, run, says)
        options.add_argument("text", help="the prompt, in one argument")
        add_common(options)
        add_planning(options)


def _ask(options: argparse.Namespace) -> int:
    with semcache_of(options) as semcache:
        answer = semcache.run(options.text, tenant=options.tenant)
    if options.json:
        print_json(answer.to_dict())
        return 0
    found = answer.found
    how = f"{found.tier} hit" if isinstance(found, Hit) else f"planned ({found.reason})"
    print(answer.text)
    print(f"{how}, {answer.seconds * 1000:.1f} ms")
    return 0


def _explain(options: argparse.Namespace) -> int:
    with semcache_of(options) as semcache:
        found = semcache.lookup(options.text, tenant=options.tenant)
    if options.json:
        print_json(found.to_dict())
    else:
        print(found.explain())
    return 0
