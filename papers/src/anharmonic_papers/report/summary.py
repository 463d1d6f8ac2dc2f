"""All experiments of the papers in one table, grouped by how our numbers compare."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import yaml

from anharmonic import pages
from anharmonic._checks import listed, require
from anharmonic.train import Result, write_atomically
from anharmonic_papers.report.compare import Line, compare
from anharmonic_papers.report.text import markdown_table
from anharmonic_papers.tables.base import Settings
from anharmonic_papers.tables.registry import list_tables, table

PROPOSED = {"CoRNN", "UnICORNN", "LEM", "GraphCON", "GradientGating"}
"""The models that the papers propose, whose rows are judged."""
State = Literal["matched", "below", "smaller budget", "no data", "measured", "not run"]
STATES: dict[State, str] = {
    "matched": "our best runs of the paper's models are as good as the paper reports, within a "
    "standard deviation over seeds",
    "below": "at least one of our results is worse than the paper's, although we trained for half "
    "of the paper's epochs or more",
    "smaller budget": "our results are worse, but we trained for less than half of the paper's "
    "epochs. Or we trained only a few rows of the paper's table",
    "no data": "the data set was not available",
    "measured": "the paper reports no number to compare with",
    "not run": "no result yet",
}
"""Descriptions of the states, in order of display."""
SETTINGS: dict[Settings, str] = {
    "paper": "the paper's settings",
    "published code": "the settings of the published code",
    "ours": "settings of our own",
}
JUDGED = (
    "We compare the papers' own models, in rows with a reported number. If we trained a model with "
    "several settings, its best result counts. Some reported numbers are the best of several "
    "trainings. There we compare with the mean of the paper's trainings. The "
    'column "rows matched" counts only trainings with the full settings of a row. Some rows of our '
    "own use fewer data, and their notes say so. "
    'The column "largest gap" names the row that is farthest below: reported → ours.'
)
MARKS = ("<!-- summary -->\n", "<!-- /summary -->")


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    Args:
        id: Name of its table or figure.
        data: The data that we lack; such an experiment has no table.
        why: Reason why our numbers are below the reported ones, on a smaller budget or missing.
    """

    id: str
    data: str = ""
    why: str = ""


@cache
def experiments() -> tuple[Experiment, ...]:
    """Return all experiments in the order of the papers."""
    path = Path(__file__).with_name("experiments.yaml")
    return tuple(Experiment(**entry) for entry in yaml.safe_load(path.read_text("utf-8")))


@dataclass(frozen=True)
class Entry:
    """The state of an experiment.

    Args:
        experiment: The experiment.
        state: One of ``STATES``.
        matched: How many of the papers' printed rows of their own models are matched, of how many
            that have a full run, and how many have none.
        gap: The row farthest below: its name, the reported number, ours, their unit, and the number
            of seeds if some are missing.
    """

    experiment: Experiment
    state: State
    matched: str = ""
    gap: str = ""
    settings: str = ""

    @property
    def why(self) -> str:
        """Why it is not matched, or with whose settings it is."""
        if self.state == "matched":
            return "; ".join(filter(None, (self.settings, self.experiment.why)))
        needs = f"needs {self.experiment.data}" if self.experiment.data else self.experiment.why
        return needs or ("no code yet" if self.state == "not run" else "")


def summary(results: Sequence[Result], figures: Collection[str]) -> list[Entry]:
    """Return one entry per experiment, grouped by state; ``figures`` names the measured ones."""
    tables = set(list_tables())
    found = [
        _judged(one, compare(table(one.id), results)) if one.id in tables
        else Entry(one, "measured" if one.id in figures else _absent(one))
        for one in experiments()
    ]  # fmt: skip
    return sorted(found, key=lambda entry: list(STATES).index(entry.state))


def _judged(one: Experiment, lines: Sequence[Line]) -> Entry:
    """Judge a table by its rows of the papers' own models with a printed number."""
    printed: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        row = line.row
        if row.run is not None and row.run.model in PROPOSED and row.value is not None:
            name = row.label.split(", ")[0].split(" (")[0]
            printed.setdefault((row.group, name), []).append(line)
    judged = {name: [ln for ln in group if ln.full] for name, group in printed.items()}
    judged = {name: group for name, group in judged.items() if group}
    if not judged:
        if not printed and any(line.ours for line in lines):
            return Entry(one, "measured")
        return Entry(one, "smaller budget" if any(ln.reduced for ln in lines) else _absent(one))
    below: dict[str, float] = {}
    after_less: dict[str, float] = {}
    settings: set[str] = set()
    seeds: list[tuple[int, int]] = []
    for (group, name), variants in judged.items():
        best = min(variants, key=_shortfall)
        full, wanted = best.full, len(best.row.seeds)
        assert full is not None
        ran = wanted - len(best.missing)
        settings.add(SETTINGS[best.row.settings])
        seeds += [(ran, wanted)] if best.missing else []
        if not _is_matched(best):
            place = f"{name}, {group}" if group else name
            done = f", {ran} of {wanted} seeds" * bool(best.missing)
            ours = f"{format(full.mean, full.part.form)} {full.part.unit or full.part.metric}{done}"
            all_short = all(_is_short(one, printed[group, name]) for one in variants)
            worse = after_less if all_short else below
            worse[f"{place}: {best.row.compared[0]} → {ours}"] = _shortfall(best)
    left = len(printed) - len(judged)
    count = f"{len(judged) - len(below) - len(after_less)} of {len(judged)}"
    if left:
        count += f", {left} more without a full run"
    worse = below or after_less
    if worse:
        gap = max(worse, key=lambda said: worse[said])
        return Entry(one, "below" if below else "smaller budget", count, gap)
    if left > len(judged):
        return Entry(one, "smaller budget", count)
    if seeds:
        count += ", as few as {} of {} seeds".format(*min(seeds))
    return Entry(one, "matched", count, settings=f"with {listed(sorted(settings))}")


def _absent(one: Experiment) -> State:
    """Return the state of an experiment without results."""
    return "no data" if one.data else "not run"


def _is_short(line: Line, variants: Iterable[Line]) -> bool:
    """Whether settings of our own have less than half of the epochs of the paper's variants."""
    epochs = [one.row.run.epochs for one in variants if one.row.run and one.row.settings != "ours"]
    ours = line.row.run if line.row.settings == "ours" else None
    return bool(epochs) and ours is not None and 2 * ours.epochs < min(epochs)


def _shortfall(line: Line) -> float:
    """Return how much worse ours is, relative to the reported number; below 0 if better."""
    assert line.full is not None
    theirs = float(line.row.compared[0])
    worse = line.full.mean - theirs
    return (worse if line.full.part.direction == "lower" else -worse) / abs(theirs)


def _is_matched(line: Line) -> bool:
    """Whether ours, rounded like the reported number, is as good or within one deviation."""
    assert line.full is not None
    low, high = line.full.interval if len(line.full.values) > 2 else (line.full.mean,) * 2
    printed, deviation = line.row.compared
    spread = max(float(deviation or 0), (high - low) / 2)
    last_digit = float(f"1e{Decimal(printed).as_tuple().exponent}")  # 0.001 of 2.0e-2
    return _shortfall(line) * abs(float(printed)) <= max(spread, last_digit / 2)


def terminal(entries: Sequence[Entry]) -> str:
    """Return the summary as plain text: the groups, and a line per experiment below."""
    parts: list[Any] = [counts(entries), ""]
    for state, mine in by_state(entries).items():
        if state == "below":
            parts += [f"{len(mine)} {state} ({STATES[state]}):"]
            parts += [pages.bullets([_line(entry) for entry in mine])]
        else:
            names = ", ".join(entry.experiment.id for entry in mine)
            own = f"; {_own_settings(mine)}" * (state == "matched")
            parts += [f"{len(mine)} {state} ({STATES[state]}{own}): {names}."]
    return pages.text(*parts)


def by_state(entries: Sequence[Entry]) -> dict[State, list[Entry]]:
    """Return the entries by state, without empty states."""
    found = {state: [entry for entry in entries if entry.state == state] for state in STATES}
    return {state: mine for state, mine in found.items() if mine}


def _line(entry: Entry) -> str:
    """Return an entry as a line: ``name (2 of 3 rows; row: reported → ours): why``."""
    matched, comma, rest = entry.matched.partition(", ")
    found = "; ".join(filter(None, (f"{matched} rows{comma}{rest}" * bool(matched), entry.gap)))
    name = f"{entry.experiment.id} ({found})" if found else entry.experiment.id
    return ": ".join(filter(None, (name, entry.why)))


def markdown(entries: Sequence[Entry], links: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the summary as a Markdown page, with links to the results of experiments by name."""
    out = ["# Reported and ours", "", counts(entries), ""]
    out += ["An experiment has the first of these states that fits:", ""]
    out += [f"- {state}: {meaning}." for state, meaning in STATES.items()]
    out += ["", JUDGED, ""]
    names = (entry.experiment.id for entry in entries)
    linked = (f"[{name}]({links[name]})" if name in links else name for name in names)
    head = ("experiment", "state", "rows matched", "largest gap", "why")
    rows = [
        (name, e.state, e.matched, e.gap, e.why) for name, e in zip(linked, entries, strict=True)
    ]
    return "\n".join([*out, markdown_table(head, rows)]) + "\n"


def short(entries: Sequence[Entry], details: str = "papers/docs/results.md") -> str:
    """Return the summary in at most ten lines for a README, without the names of experiments."""
    out = [f"{counts(entries)} [All results, with the reason for each gap]({details}):", ""]
    for state, mine in by_state(entries).items():
        if state != "measured":
            own = f" {_own_settings(mine)}." * (state == "matched")
            out.append(f"- **{len(mine)} {state}**: {STATES[state]}.{own}")
    return "\n".join(out) + "\n"


def _own_settings(matched: Sequence[Entry]) -> str:
    """Say how many experiments are matched with settings of our own for at least some rows."""
    number = sum(SETTINGS["ours"] in entry.settings for entry in matched)
    return f"{number} of these experiments use settings of our own"


def counts(entries: Sequence[Entry]) -> str:
    """Return in words how many experiments can be compared and how many match."""
    measured = sum(entry.state == "measured" for entry in entries)
    matched = sum(entry.state == "matched" for entry in entries)
    return (
        f"The papers report {len(entries)} experiments. For {measured} of these they print no "
        f"number to compare with. We matched {matched} of the other {len(entries) - measured}."
    )


def put_into(path: Path, text: str) -> None:
    """Replace the text between the lines ``MARKS`` of a file."""
    content = path.read_text(encoding="utf-8")
    before, mark, rest = content.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    require(
        bool(mark and end), str(path), "a file without them",
        f"a file with the lines {MARKS[0].strip()} and {MARKS[1]}", "add them where it is to stand",
    )  # fmt: skip
    write_atomically(path, f"{before}{mark}{text}{end}{after}")
