"""`semcache ask`, `semcache answer` and `semcache explain`."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from semcache.cache.result import Hit
from semcache.commands.options import (
    add_command,
    add_common,
    add_planning,
    existing_cache_of,
    names_a_source,
    semcache_of,
)
from semcache.commands.output import ERROR, WAITING, print_json, print_run, say_error
from semcache.errors import InvalidInput, SemCacheError
from semcache.semcache import SemCache
from semcache.semcache.answer import Answer

if TYPE_CHECKING:
    from semcache.commands.options import Commands


def add(commands: "Commands") -> None:
    """Add the commands that take a prompt."""
    for name, run in (("ask", _ask), ("explain", _explain)):
        options = add_command(commands, name, run)
        if name == "ask":
            options.add_argument(
                "text",
                nargs="?",
                help="the prompt, in one argument; `-`: all of stdin; left out: each line of it",
            )
            options.add_argument(
                "--answer",
                action="append",
                default=[],
                metavar="TOPIC=TEXT",
                help="an answer to what the plan may ask you",
            )
            options.add_argument(
                "--tree", action="store_true", help="show what the run did, even if it failed"
            )
        else:
            options.add_argument("text", help="the prompt, in one argument")
        add_common(options)
        add_planning(options)
    options = add_command(commands, "answer", _answer)
    options.add_argument("token", help="the token that `ask` printed")
    options.add_argument("answer", nargs="+", metavar="TOPIC=TEXT", help="what you say")
    options.set_defaults(tree=False)
    add_common(options)
    add_planning(options)


def _ask(options: argparse.Namespace) -> int:
    with semcache_of(options) as semcache:
        if options.text is None:
            return _ask_each(options, semcache)
        text = sys.stdin.read().strip() if options.text == "-" else options.text
        return _asked(options, semcache, text)


def _ask_each(options: argparse.Namespace, semcache: SemCache) -> int:
    """Ask each line of stdin; an error is told, and the next one asked."""
    status, terminal = 0, sys.stdin.isatty()
    while True:
        if terminal:
            print("> ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            return status
        try:
            if line.strip():
                status = max(status, _asked(options, semcache, line.strip()))
        except SemCacheError as error:
            say_error(str(error))
            status = ERROR


def _asked(options: argparse.Namespace, semcache: SemCache, text: str) -> int:
    try:
        answer = semcache.run(text, tenant=options.tenant, answers=_said(options.answer))
    except SemCacheError:
        run = semcache.runs.latest(tenant=options.tenant)
        if options.tree and run is not None:
            print_run(run, to=sys.stderr)
        raise
    status = _shown(options, answer)
    if options.tree and not options.json:
        print_run(answer.run, to=sys.stdout)
    return status


def _answer(options: argparse.Namespace) -> int:
    with semcache_of(options) as semcache:
        said = _said(options.answer)
        return _shown(options, semcache.answer(options.token, said, tenant=options.tenant))


def _said(given: Sequence[str]) -> dict[str, object]:
    """Return topic → answer for texts such as `page size=10`."""
    said: dict[str, object] = {}
    for one in given:
        topic, equals, text = one.partition("=")
        if not (topic.strip() and equals):
            raise InvalidInput(f"{one!r} is no answer; expected TOPIC=TEXT, as in 'page size=10'")
        said[topic.strip()] = text
    return said


def _shown(options: argparse.Namespace, answer: Answer) -> int:
    if options.json:
        tree = {"tree": answer.run.to_dict()} if options.tree else {}
        print_json({**answer.to_dict(), **tree})
        return 0 if answer.needs is None else WAITING
    if answer.needs is not None:
        print(answer.needs.text)
        topics = " ".join(repr(f"{one.topic}=…") for one in answer.needs.questions)
        print(f"Answer within a day: semcache answer {answer.needs.token} {topics}")
        return WAITING
    found = answer.found
    how = f"{found.tier} hit" if isinstance(found, Hit) else f"planned ({found.reason})"
    print(answer.text)
    print(f"{how}, {answer.seconds * 1000:.1f} ms")
    return 0


def _explain(options: argparse.Namespace) -> int:
    if names_a_source(options):
        with semcache_of(options) as semcache:
            found = semcache.lookup(options.text, tenant=options.tenant, what_if=True)
    else:  # plans that were stored without operations are not judged by any
        with existing_cache_of(options) as cache:
            found = cache.lookup(options.text, tenant=options.tenant, what_if=True)
    if options.json:
        print_json(found.to_dict())
    else:
        print(found.explain())
    return 0
