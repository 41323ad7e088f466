"""Plots: match quality as plotly figures, for notebooks. Needs the extra `explore`.

Blue stands for right or the same plan, orange for wrong or another plan, gray for what was not
served; the pair can be told apart by every common kind of color vision (Okabe and Ito, 2008).
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from semcache.cache.plan_cache import PlanCache
from semcache.cache.result import Candidate, Found
from semcache.errors import InvalidInput
from semcache.explore import frames
from semcache.explore.replayed_lookup import ReplayedLookup
from semcache.explore.report import Report
from semcache.explore.score import Share
from semcache.explore.streams import check_count
from semcache.matching.evidence import Evidence
from semcache.matching.plan_groups import group_name
from semcache.matching.words.content import embedded_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

RIGHT, WRONG, QUIET = "#0072B2", "#D55E00", "#B5B5B5"
_SERIES = (
    "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#44AA99", "#999933", "#332288",
)  # fmt: skip
"""Colors of plans and reports: neither of the two that mean right and wrong."""
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "star", "x")
_STEPS = tuple(round(0.5 + 0.01 * i, 2) for i in range(50))
"""Thresholds that the explorer has."""
_WIDTH = 90  # characters of a hover line before it is cut


def score_distributions(report: Report) -> "Figure":
    """Return how near candidates with the same plan are, and those with another.

    Candidates of the semantic tier, of all lookups that got there. Where the two overlap, no
    threshold can tell them apart.
    """
    figure = _figure("How near are candidates with the same plan, and with another?")
    for same, name, color in ((True, "same plan", RIGHT), (False, "another plan", WRONG)):
        scores = [
            min(candidate.score, 1.0)
            for looked in report.lookups
            for candidate, is_same in looked.considered
            if is_same is same and candidate.tier == "semantic"
        ]
        figure.add_histogram(
            x=scores,
            xbins={"start": -0.21, "end": 1.01, "size": 0.02},
            name=f"{name} ({len(scores)})",
            marker_color=color,
            opacity=0.65,
        )
    figure.update_layout(barmode="overlay")
    threshold = report.setup.get("threshold")
    # Where risk decides, a threshold does not.
    if isinstance(threshold, int | float) and report.setup.get("max_wrong") is None:
        label = f"threshold {threshold:g}"
        figure.add_vline(
            x=threshold, line_dash="dash", annotation_text=label, annotation_position="top left"
        )
    return _labelled(figure, "cosine of the template texts", "candidates")


def precision_curves(*reports: Report) -> "Figure":
    """Return precision against hit ratio, one line a report, from the surest hits to all."""
    figure = _figure("How much is served, and how much of that is right?")
    for report, color in zip(reports, _cycled(len(reports)), strict=True):
        curve = report.curve()
        figure.add_scatter(
            x=[point.hit_ratio for point in curve],
            y=[point.precision for point in curve],
            customdata=[[point.hits, point.wrong, point.doubt] for point in curve],
            hovertemplate="%{customdata[0]} hits, %{customdata[1]} wrong<br>"
            "doubt up to %{customdata[2]:.4f}<extra></extra>",
            mode="lines+markers",
            marker={"size": 5, "color": color},
            line={"color": color},
            name=_named(report),
        )
    lowest = min((point.precision for report in reports for point in report.curve()), default=1.0)
    most = max((report.hit_share.value for report in reports), default=1.0)
    figure.update_xaxes(range=[0, min(1.02, max(most * 1.1, 0.05))], tickformat=".0%")
    figure.update_yaxes(range=[min(0.9, lowest - 0.02), 1.005], tickformat=".0%")
    return _labelled(figure, "rows served", "of them right")


def reliability(report: Report, *, bins: int | None = None) -> "Figure":
    """Return the risk that was foretold against the share that was wrong, with 95 % bounds.

    Points on the line are well calibrated; above it the cache is too sure of itself. `bins`: see
    `Report.reliability`.
    """
    figure = _figure("Does the risk come true?")
    told = report.reliability(bins)
    if not told:
        return _said(figure, "This replay's hits tell no risk; replay with max_wrong.")
    top = max(0.01, *(group.foretold * 1.1 for group in told))
    figure.add_scatter(
        x=[0, top], y=[0, top], mode="lines", line={"color": QUIET, "dash": "dash"}, name="as told"
    )
    figure.add_scatter(
        x=[group.foretold for group in told],
        y=[group.wrong.value for group in told],
        error_y={
            "array": [group.wrong.high - group.wrong.value for group in told],
            "arrayminus": [group.wrong.value - group.wrong.low for group in told],
        },
        customdata=[group.hits for group in told],
        hovertemplate="%{customdata} hits: %{x:.2%} told, %{y:.2%} wrong<extra></extra>",
        mode="markers",
        marker={"size": 10, "color": RIGHT},
        name="hits of about the same risk",
    )
    figure.update_xaxes(tickformat=".1%")
    figure.update_yaxes(tickformat=".1%", rangemode="tozero")
    return _labelled(figure, "mean risk told", "share that was wrong")


def gate_funnel(report: Report) -> "Figure":
    """Return what each gate refused, rightly and wrongly, as bars."""
    table = frames.gates(report)
    table = table[table[["rightly", "wrongly", "unknown"]].sum(axis=1) > 0]
    figure = _figure("What did each gate refuse?")
    names = {
        "rightly": ("another plan: rightly", RIGHT),
        "wrongly": ("the same plan: a lost hit", WRONG),
        "unknown": ("not known", QUIET),
    }
    for column, (name, color) in names.items():
        if table[column].sum():
            figure.add_bar(
                y=table["gate"], x=table[column], orientation="h", name=name, marker_color=color
            )
    figure.update_layout(barmode="stack")
    figure.update_yaxes(autorange="reversed")
    return _labelled(figure, "candidates refused", "")


def template_map(cache: PlanCache, *, tenant: str = "default") -> "Figure":
    """Return the tenant's templates in two dimensions, colored by plan; hover shows the words.

    The two directions in which the vectors differ most (principal components); the title says how
    much of the differences they show. Cost: one embedding a template that is not remembered.

    Raises:
        InvalidInput: the tenant has fewer than three entries.
    """
    entries = cache.entries(tenant=tenant)
    if len(entries) < 3:
        raise InvalidInput(f"tenant {tenant!r} has {len(entries)} entries; a map needs three")
    vectors = cache.embedder.embed([embedded_text(entry.template) for entry in entries])
    points, shown = _projected(np.asarray(vectors, np.float64))
    figure = _figure(f"Templates of {_cut(tenant, 40)} ({shown:.0%} of their differences shown)")
    groups: dict[str, list[int]] = {}
    for i, entry in enumerate(entries):
        groups.setdefault(group_name(entry.plan, given=True), []).append(i)
    ordered = sorted(groups.values(), key=len, reverse=True)
    for number, (group, color) in enumerate(zip(ordered, _cycled(len(ordered)), strict=True)):
        # Colors come round again after eight plans; the symbol then changes.
        symbol = _SYMBOLS[number // len(_SERIES) % len(_SYMBOLS)]
        figure.add_scatter(
            x=points[group, 0],
            y=points[group, 1],
            mode="markers",
            marker={
                "size": 11,
                "color": color,
                "symbol": symbol,
                "line": {"width": 1, "color": "white"},
            },
            text=[_cut(entries[i].template.text) for i in group],
            customdata=[_cut(entries[i].prompt) for i in group],
            hovertemplate="%{text}<br><i>%{customdata}</i><extra></extra>",
            name=_shortened(entries[group[0]].label),
        )
    figure.update_layout(
        showlegend=len(ordered) <= len(_SERIES),
        legend={"orientation": "v", "x": 1.01, "y": 1, "yanchor": "top"},
    )
    figure.update_xaxes(showticklabels=False, zeroline=False)
    figure.update_yaxes(showticklabels=False, zeroline=False)
    return _labelled(figure, "", "")


def threshold_explorer(report: Report) -> "Figure":
    """Return what each threshold would serve, with a slider: by similarity alone, and with gates.

    By similarity alone, the nearest candidate's plan is served and right if it is the same plan.
    With gates, the replay's own hits above the threshold are. A replay with a low threshold shows
    more; what was stored is that replay's throughout.
    """
    figure = _figure("What would a threshold serve?")
    names = ["similarity alone<br>(values aside)", "with gates<br>and binding"]
    told = [_served(report, threshold) for threshold in _STEPS]
    start = _STEPS.index(0.95)
    for i, (name, color) in enumerate((("right", RIGHT), ("wrong", WRONG))):
        bars = [told[start][0][i], told[start][1][i]]
        figure.add_bar(x=bars, y=names, orientation="h", name=name, marker_color=color, text=bars)
    steps = [
        {
            "method": "update",
            "label": f"{threshold:g}",
            "args": [
                {"x": [[both[0][i], both[1][i]] for i in (0, 1)]}
                | {"text": [[both[0][i], both[1][i]] for i in (0, 1)]},
                {"title.text": _explained(threshold, both)},
            ],
        }
        for threshold, both in zip(_STEPS, told, strict=True)
    ]
    slider = {"active": start, "steps": steps, "currentvalue": {"prefix": "threshold "}}
    figure.update_layout(
        barmode="stack",
        sliders=[{**slider, "pad": {"t": 55}}],
        title_text=_explained(_STEPS[start], told[start]),
    )
    figure.update_xaxes(range=[0, report.rows])
    figure.update_yaxes(autorange="reversed")
    return _labelled(figure, f"of {report.rows} rows", "")


def neighbors(found: Found) -> "Figure":
    """Return the entries that a lookup considered, nearest first, and what refused each.

    For a what-if that nobody counts: `neighbors(cache.lookup("…", what_if=True))`.
    """
    shown = sorted(found.trace.candidates, key=lambda candidate: -candidate.score)
    figure = _figure(f"{_cut(found.trace.prompt, 70)}: {'hit' if found else 'miss'}")
    if not shown:
        return _said(figure, "Nothing was considered.")
    figure.add_bar(
        # A number before the name keeps bars of equal templates apart.
        y=[f"{i}. {_explaining(candidate)} " for i, candidate in enumerate(shown, 1)],
        x=[candidate.score for candidate in shown],
        orientation="h",
        marker_color=[RIGHT if candidate.served else QUIET for candidate in shown],
        text=[f"{candidate.score:.3f}" for candidate in shown],
        textposition="outside",
        cliponaxis=False,
        hovertext=[candidate.entry for candidate in shown],
    )
    figure.update_layout(showlegend=False, height=170 + 46 * len(shown))
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_xaxes(range=[min(0, *(candidate.score for candidate in shown)), 1.1])
    return _labelled(figure, "cosine", "")


def learned_words(evidence: Evidence, *, count: int = 20) -> "Figure":
    """Return the differing words that were seen most, with what they went with."""
    title = "Which differing words went with the same plan?"
    return _learned(evidence, "word", title, "no differing word", count)


def learned_pairs(evidence: Evidence, *, count: int = 20) -> "Figure":
    """Return the words that were exchanged for one another most often, with what that went with."""
    title = "Which words may stand for one another?"
    return _learned(evidence, "pair", title, "no exchange of two words", count)


def _learned(evidence: Evidence, kind: str, title: str, nothing: str, count: int) -> "Figure":
    check_count("count", count)
    figure = _figure(title)
    table = frames.words(evidence)
    table = table[table["kind"] == kind]
    if table.empty:
        return _said(figure, f"Nothing was learned yet: {nothing} was labeled.")
    table = table.sort_values("seen", ascending=False).head(count)
    names = [_pair_name(key) if kind == "pair" else _cut(key, 30) for key in table["key"]]
    for column, name, color in (
        ("same", "the same plan", RIGHT),
        ("other", "another plan", WRONG),
    ):
        figure.add_bar(y=names, x=table[column], orientation="h", name=name, marker_color=color)
    figure.update_layout(barmode="stack", height=170 + 24 * len(table))
    figure.update_yaxes(autorange="reversed", automargin=True, type="category")
    whole = "times seen" if kind == "pair" else "times seen (one of n words counts 1/n)"
    return _labelled(figure, whole, "")


def _pair_name(key: str) -> str:
    return " ↔ ".join(_cut(word, 20) for word in key.split())


# What they share -----------------------------------------------------------------------------


def _figure(title: str) -> "Figure":
    graph: Any = frames.optional("plotly.graph_objects")
    figure = graph.Figure()
    figure.update_layout(
        template="plotly_white",
        title={"text": title, "x": 0.02, "xanchor": "left"},
        font={"size": 14},
        width=900,
        height=460,
        margin={"t": 90, "l": 70, "r": 30, "b": 60},
        legend={
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "traceorder": "normal",
        },
    )
    # Else numbers touch the bars, and the lowest of both axes each other.
    figure.update_xaxes(ticklabelstandoff=4)
    figure.update_yaxes(ticklabelstandoff=6)
    return figure


def _labelled(figure: "Figure", x: str, y: str) -> "Figure":
    figure.update_xaxes(title_text=x)
    figure.update_yaxes(title_text=y)
    return figure


def _said(figure: "Figure", text: str) -> "Figure":
    """Return a figure that says why it is empty."""
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.add_annotation(text=text, showarrow=False, font={"size": 16})
    return figure


def _cycled(count: int) -> list[str]:
    return [_SERIES[i % len(_SERIES)] for i in range(count)]


def _named(report: Report) -> str:
    return f"{_cut(report.name, 40)}, {'parameters given' if report.given else 'text only'}"


def _shortened(text: str) -> str:
    """Return the beginning and the end of a label: plans of one family often differ there."""
    return _cut(text if len(text) <= 32 else f"{text[:17]}…{text[-14:]}")


def _cut(text: str, width: int = _WIDTH) -> str:
    # plotly reads a small part of HTML in its texts: a slot such as <year> would vanish.
    text = text if len(text) <= width else f"{text[: width - 1]}…"
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _explaining(candidate: Candidate) -> str:
    """Return the template and, below it, tier and verdict."""
    refused = None if candidate.served else candidate.verdicts[-1]
    said = f"{refused.gate}: {_cut(refused.reason, 50)}" if refused else "served"
    below = f"<span style='font-size:11px'>{candidate.tier}, {said}</span>"
    return f"{_cut(candidate.template, 50)}<br>{below}"


def _projected(vectors: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> tuple[Any, float]:
    centered = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centered, full_matrices=False)
    total = float((sizes**2).sum())
    shown = float((sizes[:2] ** 2).sum()) / total if total else 1.0
    return left[:, :2] * sizes[:2], shown


def _served(report: Report, threshold: float) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return right and wrong by similarity alone, and right and wrong with gates."""
    alone = Counter(
        same
        for looked in report.lookups
        if (nearest := _nearest(looked)) is not None and nearest[0] > threshold
        for same in (nearest[1],)
    )
    gated = Counter(
        looked.outcome
        for looked in report.lookups
        if looked.hit and (looked.hit.tier != "semantic" or looked.hit.score > threshold)
    )
    return (alone[True], alone[False]), (gated["right"], gated["wrong"])


def _nearest(looked: ReplayedLookup) -> tuple[float, bool] | None:
    known = [(c.score, same) for c, same in looked.considered if same is not None]
    return max(known, default=None, key=lambda pair: pair[0])


def _explained(threshold: float, both: Sequence[tuple[int, int]]) -> str:
    parts = [
        f"{name} {Share(wrong, right + wrong).value:.1%} of {right + wrong} wrong"
        for name, (right, wrong) in zip(("alone", "with gates"), both, strict=True)
    ]
    return f"Threshold {threshold:g}: {'; '.join(parts)}"
