"""Example 7: agents in a loop, and what each turn took.

    python notebooks/example_07_loops.py

Items of two kinds go to two agents, one after the other; every item is a node of one run tree, with
its time, its tokens and what it cost. Models are scripted and the clock stands still but for what
they are said to take, so that the output is the same each time. Offline.
"""

from semcache import SemCache, Settings
from semcache.catalog.catalog import Catalog
from semcache.ports import Completion
from semcache.runs.creation import agent
from semcache.runs.reflection import Prompt, Reflection
from semcache.runs.run_context import node
from semcache.testing import FakeClock, HashEmbedder, ScriptedModel

TICKETS = [
    ("bug", "The export button does nothing"),
    ("question", "How do I change my plan?"),
    ("bug", "Totals are wrong in March"),
    ("question", "Do you ship to Oslo?"),
]
ANSWERS = {"bug": "filed as a defect", "question": "answered from the handbook"}


def main() -> None:
    """Send each ticket to the agent of its kind, and show the tree."""
    clock = FakeClock()
    reflection = Reflection(clock=clock)
    models = {
        kind: ScriptedModel([Completion(said, "scripted", 120, 8)] * len(TICKETS))
        for kind, said in ANSWERS.items()
    }

    def ask(kind: str, text: str) -> str:
        clock.advance(0.25)  # what the model is said to take
        made = Prompt(f"Deal with this {kind}.", {"ticket": text})
        return reflection.ask(made, models[kind], read=str, name=f"ask about a {kind}")

    agents = Catalog([
        agent("bugs", "Deals with a bug.", lambda text: ask("bug", text)),
        agent("questions", "Deals with a question.", lambda text: ask("question", text)),
    ])  # fmt: skip
    prices = Settings(prompt_token_price=0.5, completion_token_price=2.0)
    with SemCache.open(
        catalog=agents, embedder=HashEmbedder(), clock=clock, settings=prices
    ) as semcache:

        def work() -> list[str]:
            done = []
            for number, (kind, text) in enumerate(TICKETS, start=1):
                with node(f"ticket {number}", given={"kind": kind, "text": text}) as ticket:
                    value = semcache.execute(plan(f"{kind}s", text)).value
                    ticket.gave(value)
                    done.append(str(value))
            return done

        semcache.workflow("tickets of the day", work)()
        run = semcache.runs.latest()
    if run is None or run.root is None:
        raise SystemExit("there is no run")
    print(run)
    took = {n.name: n.seconds for n in run if n.name.startswith("ticket ")}
    print("seconds of each ticket:", took)
    print("tokens:", run.root.prompt_tokens + run.root.completion_tokens)


def plan(operation: str, text: str) -> dict[str, object]:
    """Return the plan that hands one text to one agent."""
    return {
        "start_node": {"route": "ask"},
        "ask": {"operation": operation, "input": {"prompt": text}, "route": "end"},
        "end": {"completed": True, "vars": {"answer": "$.ask"}},
    }


if __name__ == "__main__":
    main()
