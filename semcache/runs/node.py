"""One node of a run tree."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from semcache.canonical import Json, JsonObject
from semcache.events import NodeKind, NodeStatus


@dataclass(slots=True, eq=False)
class Node:
    """A run, or a step inside it. Changed by the tree that holds it, and by nobody else."""

    id: str
    run: str
    """Id of the run that it belongs to; its own for a run."""
    name: str
    kind: NodeKind
    started_s: float
    """Epoch seconds."""
    parent: "Node | None" = field(default=None, repr=False)
    depth: int = 0
    """0 for the root of the tree."""
    status: NodeStatus = "running"
    seconds: float | None = None
    """How long it took; None while it runs."""
    input: Json = None
    output: Json = None
    """What went in and came out, without secrets and cut to 2000 characters each."""
    error: str = ""
    """Class and message of what it raised; empty if it ended well, or runs."""
    notes: JsonObject = field(default_factory=dict)
    """What else is known of it: `tier`, `model`, `revised_by`…"""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    """Tokens spent in it and below it, those of pruned nodes too."""
    cost: float = 0.0
    """What the tokens cost, in the currency of the prices; 0 without prices."""
    model_calls: int = 0
    """Calls of a model in it and below it that were not answered from memory."""
    pruned: int = 0
    """How many nodes once stood below it and made room for others."""
    children: dict[str, "Node"] = field(default_factory=dict, repr=False)
    """Those that are still kept, by id, in the order in which they began."""

    @property
    def finished(self) -> bool:
        """Whether it has ended, well or not."""
        return self.status != "running"

    def above(self) -> Iterator["Node"]:
        """Yield its ancestors, nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def below(self) -> Iterator["Node"]:
        """Yield it and all below it, each before its children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children.values()))

    def to_dict(self) -> JsonObject:
        """Return what is known of it as JSON, without its children."""
        said: JsonObject = {
            "id": self.id,
            "parent": self.parent.id if self.parent is not None else None,
            "run": self.run,
            "name": self.name,
            "kind": self.kind,
            "status": self.status,
            "started_s": self.started_s,
            "seconds": self.seconds,
        }
        told: JsonObject = {
            "input": self.input,
            "output": self.output,
            "error": self.error,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": self.cost,
            "model_calls": self.model_calls,
            "pruned": self.pruned,
            "notes": dict(self.notes),
        }
        return {**said, **{name: value for name, value in told.items() if value}}
