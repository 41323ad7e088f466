"""Looking at a program: its instructions, prepared for every check."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from semcache.canonical import Json, Pointer
from semcache.catalog.catalog import Catalog
from semcache.plans import document
from semcache.plans.program.document import GOALS, Instruction, ProgramPlan, goal
from semcache.plans.program.variables import Bound, Variable, variables


@dataclass(frozen=True, slots=True)
class ProgramAnalysis:
    """A program, prepared for being looked at."""

    plan: ProgramPlan
    catalog: Catalog | None
    steps: tuple[Instruction, ...]
    bound: Bound
    by_seq: Mapping[int, int]
    """`seq_no` → position of the first instruction that has it."""
    goal: str
    goals: Sequence[str]
    setters: Mapping[str, list[int]]
    """Variable → positions of the instructions that set it; -1 for set before the start."""

    @classmethod
    def at(
        cls,
        plan: ProgramPlan,
        catalog: Catalog | None,
        *,
        goals: Sequence[str] = GOALS,
        known: Iterable[str] = (),
    ) -> "ProgramAnalysis":
        """Return `plan` prepared; variables in `known` are set before the start."""
        steps = plan.instructions()
        setters: dict[str, list[int]] = {name: [-1] for name in known}
        for step in steps:
            for name in step.sets:
                setters.setdefault(name, []).append(step.index)
        by_seq = {step.seq: step.index for step in reversed(steps)}
        return cls(plan, catalog, steps, plan.bound, by_seq, goal(steps, goals), goals, setters)

    def variables(self, step: Instruction) -> Iterator[tuple[Pointer, Variable]]:
        """Yield each variable that an instruction reads, and where."""
        for name in step.read:
            yield from variables(step.parameters[name], (*step.inside, name), self.bound)

    def edges(self) -> dict[str, tuple[str, ...]]:
        """Return where each position leads; past the end is the position after the last."""
        return {str(step.index): tuple(map(str, self._after(step))) for step in self.steps}

    def _after(self, step: Instruction) -> list[int]:
        if self.goal and self.goal in step.sets:
            return []
        if not step.targets:
            return [step.index + 1]
        seqs = [step.parameters.get(name) for name in step.targets]
        return [self.by_seq[seq] for seq in seqs if isinstance(seq, int) and seq in self.by_seq]


def texts(value: Json, at: Pointer, bound: Bound) -> Iterator[tuple[Pointer, str]]:
    """Yield the program's own texts in `value`, with a gap where a value of the prompt stands."""
    for place, text in document.texts(value, at, bound.whole):
        for start, end in reversed(bound.spans.get(place, ())):
            text = text[:start] + "\0" + text[end:]  # noqa: PLW2901 - from its end on
        yield place, text
