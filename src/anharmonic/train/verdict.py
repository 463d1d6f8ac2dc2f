"""Findings of a comparison, in words and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from anharmonic import pages
from anharmonic._checks import listed
from anharmonic.data.base import counted
from anharmonic.data.metrics import LOG_LOSSES, PERCENT, decimals
from anharmonic.data.own import FileTask
from anharmonic.data.registry import OWN_DATA
from anharmonic.train import folder as folders
from anharmonic.train.notices import has_learned, interval
from anharmonic.train.standings import Comparison, Spread, Standing


def unit(metric: str) -> str:
    r"""Return the unit of a metric, preceded by a non-breaking space.

    Example:
        >>> unit("accuracy"), unit("mse")
        ('\xa0%', '')
    """
    return "\N{NO-BREAK SPACE}%" if metric in PERCENT else ""


def shown(spread: Spread | float, metric: str, answers: int | None = None) -> str:
    """Format a mean and standard deviation with as many digits as `answers` targets justify.

    Example:
        >>> shown(Spread(97.333, 1.16), "accuracy"), shown(Spread(0.012345, None), "mse")
        ('97.3 ± 1.2', '0.0123')
    """
    if isinstance(spread, float):
        spread = Spread(spread, None)
    percent = f".{decimals(answers)}f"
    form, form_of_deviation = (percent, percent) if unit(metric) else (".3g", ".2g")
    if spread.deviation is None:
        return f"{spread.mean:{form}}"
    return f"{spread.mean:{form}} ± {spread.deviation:{form_of_deviation}}"


def learned(comparison: Comparison, standing: Standing, spread: float = 0.0) -> bool:
    """Whether a model beats the baseline on the test data by more than its spread."""
    if comparison.trivial is None:
        return True
    metric, higher = comparison.metric, comparison.higher_is_better
    test = standing.test
    return has_learned(test.mean, comparison.trivial, metric, higher, test.deviation or spread)


def sentences(comparison: Comparison) -> list[str]:
    """Return the findings; the first sentence names the best model, its value and the baseline."""
    best, *others = comparison.standings
    metric, title = comparison.metric, comparison.plan.title
    count = comparison.answers
    reached = _value(best.test, metric, count)
    if metric != "accuracy":
        reached = f"{metric} {reached}"
    constant = baseline = ""
    if comparison.trivial is not None:
        gives = f"gives {_value(comparison.trivial, metric, count)}"
        constant = f"{trivial_words(comparison)} {gives}"
        baseline = f"; the baseline, {trivial_words(comparison)}, {gives}"
    if not learned(comparison, best) and not any(learned(comparison, one) for one in others):
        return [
            f"No model did better on {title} than the baseline: {constant}, and {best.model} "
            f"reached {reached}.",
            "More epochs, another lr or more data may change that.",
        ]
    equal = [one.model for one in others if _shows_the_same(comparison, best, one)]
    validated = comparison.judged_by == "validation"
    place = ""
    if equal:
        place = f", and so did {listed(equal)}"
    elif others and not validated:
        place = f", the best of {len(comparison.standings)} models"
    said = [f"{best.model} reached {reached} on the test data of {title}{place}{baseline}."]
    if others and validated and not equal:
        said.append(f"Of {len(comparison.standings)} models it has the best validation score.")
    single = interval(best.results[0]) if len(best.results) == 1 else None
    doubts = []
    if single is not None and learned(comparison, best):
        if not learned(comparison, best, best.test.mean - single[0]):
            doubts = [f"But {single[2]} cannot show that it is better than the baseline."]
    said += [*doubts, *_comparisons(comparison, best, others, bool(doubts))]
    if others and comparison.judged_by == "test":
        task = comparison.plan.task
        said.append(
            "There is no validation set, so models are ranked by test score. The best score is "
            "therefore optimistic."
        )
        if isinstance(task, FileTask):
            advice = "--folds 5" if task.can_fold(5) else "--valid-share 0.15"
            said.append(f"Use {advice} for a fair ranking.")
    if comparison.failures:
        said.append(f"{counted(len(comparison.failures), 'training')} failed, see below.")
    if comparison.elsewhere:
        counts = f"{comparison.elsewhere} of {len(comparison.plan.rows)} trainings"
        said.append(f"Another process trains {counts}. Repeat the command when it has ended.")
    return said


def _comparisons(
    comparison: Comparison, best: Standing, others: Sequence[Standing], doubtful: bool
) -> list[str]:
    metric, said, count = comparison.metric, [], comparison.answers
    sign = 1 if comparison.higher_is_better else -1
    able = [one for one in others if learned(comparison, one)]
    same = [one.model for one in able if _shows_the_same(comparison, best, one)]
    others_shown = [one for one in able if one.model not in same]
    higher = [one for one in others_shown if sign * (one.test.mean - best.test.mean) > 0]
    near = [one.model for one in others_shown if _overlap(best.test, one.test)]
    alike = list(near)
    if higher:
        top = max(higher, key=lambda one: sign * one.test.mean)
        text = f"{top.model} reached {_value(top.test, metric, count)} on the test data"
        if top.model in near:
            text += ", but the difference is within the standard deviations"
            alike.remove(top.model)
        said.append(f"{text}." if top.model in near else f"But {text}.")
    if alike:
        verb = "difference from {} is" if len(alike) == 1 else "differences from {} are"
        said.append(f"The {verb.format(listed(alike))} within the standard deviations.")
    named = [*near, *(one.model for one in higher), *same]
    far = [one for one in able if one.model not in named]
    if far:
        reached = [f"{one.model} {_value(one.test, metric, count)}" for one in far]
        known = comparison.trivial is not None and not doubtful
        who = "Better than the baseline" if known else "Others"
        said.append(f"{who}: {listed(reached)}.")
    stuck = [one for one in (best, *others) if not learned(comparison, one)]
    if stuck:
        reached = [f"{one.model} ({_value(one.test, metric, count)})" for one in stuck]
        said.append(f"{listed(reached)} did no better than the baseline.")
    if others and best.test.deviation is None:
        said.append("With one run of each model, part of a difference may be luck.")
    return said


def _shows_the_same(comparison: Comparison, best: Standing, other: Standing) -> bool:
    """Whether the displayed numbers of two models are equal."""
    first, second = (
        _value(one.test.mean, comparison.metric, comparison.answers) for one in (best, other)
    )
    return first == second


def _value(spread: Spread | float, metric: str, answers: int | None) -> str:
    return f"{shown(spread, metric, answers)}{unit(metric)}"


def _overlap(first: Spread, second: Spread) -> bool:
    if first.deviation is None or second.deviation is None:
        return False
    return abs(first.mean - second.mean) <= first.deviation + second.deviation


def trivial_words(comparison: Comparison) -> str:
    """Describe the baseline in words."""
    task = comparison.plan.task
    if task.target == "class":
        what = "shares of the classes" if task.metric in LOG_LOSSES else "most frequent class"
        return f"always answering the {what}"
    if task.target == "labels":
        return "always answering each label's more frequent value"
    if task.horizon:
        again = " or season" if task.seasonal is not None else ""
        if task.quantiles:
            return f"the last value{again} plus quantiles of the changes since then"
        return f"repeating the last value{again}"
    return f"always answering the {'median' if task.metric == 'mae' else 'mean'}"


HEAD = ("model", "test", "validation", "parameters", "seconds")


def table(comparison: Comparison) -> list[list[str]]:
    """Return rows of strings: the ranked models, then the baseline."""
    metric, count = comparison.metric, comparison.answers
    equal = len(_counts(comparison)) == 1
    rows = []
    for one in comparison.standings:
        name = one.model if equal else f"{one.model} ({counted(len(one.results), 'run')})"
        valid = "–" if one.valid is None else shown(one.valid, metric, count)
        parameters = f"{one.results[0].parameters:,}"
        seconds = f"{one.seconds:.0f}" if one.seconds >= 10 else f"{one.seconds:.1f}"
        rows.append([name, shown(one.test, metric, count), valid, parameters, seconds])
    if comparison.trivial is not None:
        rows.append(["(baseline)", shown(comparison.trivial, metric, count), "", "", ""])
    return rows


def about(comparison: Comparison) -> str:
    """Describe the numbers of the table."""
    counts = _counts(comparison)
    runs = " to ".join(map(str, counts))
    spread = f"mean ± standard deviation of {runs} runs" if counts != [1] else "one run each"
    percent = " in percent" if unit(comparison.metric) else ""
    way = "higher" if comparison.higher_is_better else "lower"
    order = "sorted by validation score"
    if comparison.judged_by == "test":
        order = "sorted by test score, because there is no validation set"
    return f"{comparison.metric}{percent}, {way} is better; {spread}; {order}"


def _counts(comparison: Comparison) -> list[int]:
    """Return the range of the number of runs per model, or the number if all are equal."""
    counts = {len(standing.results) for standing in comparison.standings}
    return sorted({min(counts), max(counts)})


def predict_command(comparison: Comparison) -> str:
    """Return the command that predicts with the best model; "" if it has no saved run."""
    run, environment = comparison.standings[0].representative.run, comparison.plan.environment
    folder = folders.run_folder(run, environment)
    if run.task not in OWN_DATA or not folder.is_dir():
        return ""
    return folders.predict_command(folder, environment.file)


def report(comparison: Comparison) -> str:
    """Return a summary and the table, as text for the terminal.

    Args:
        comparison: The comparison.

    Example:
        >>> import tempfile
        >>> from anharmonic.train import RunEnvironment, compare
        >>> from pathlib import Path
        >>> folder = Path(tempfile.mkdtemp())
        >>> environment = RunEnvironment(out=folder, progress=False)
        >>> options = {"given": {"epochs": 1, "model_options": {"hidden_size": 4}}, "seeds": [0]}
        >>> found = compare("digits", environment, models=["GRU"], say=lambda text: None, **options)
        >>> "GRU" in report(found)
        True
    """
    shown = pages.grid(HEAD, table(comparison), fixed=HEAD)
    failed = [f"failed: {text}" for text in comparison.failures]
    command = predict_command(comparison)
    best = comparison.standings[0].model
    use = ["", f"To predict with the best model, {best}:"] if command else []
    lines = pages.text(" ".join(sentences(comparison)), "", shown, about(comparison), *failed, *use)
    return f"{lines}\n  {command}" if command else lines
