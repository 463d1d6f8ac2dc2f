"""Two short comparisons that anybody can run: no download, minutes on a laptop."""

from __future__ import annotations

from anharmonic.experiments.base import Row, Table
from anharmonic.experiments.runs import adding
from anharmonic.training.run import Run

EQUAL = (
    "Not from the documents. All models have about the same number of parameters (within 10 %); "
    "one seed, so small differences mean nothing."
)


def _digits(model: str, lr: float, **options: float) -> Run:
    return Run(
        task="digits", model=model, model_options=dict(options), epochs=30, batch_size=32, lr=lr
    )


def _sum(model: str, lr: float, **options: float) -> Run:
    return adding(model, 100, 20, lr, batch_size=50, **options)


DIGITS = Table(
    id="demo-digits",
    title="Demo: handwritten digits, pixel by pixel",
    source="this package",
    task="digits",
    metric="accuracy",
    unit="%",
    rows=(
        Row("coRNN", run=_digits("CoRNN", 1e-2, hidden_size=64), settings="ours"),
        Row(
            "UnICORNN", run=_digits("UnICORNN", 1e-2, hidden_size=88, num_layers=2), settings="ours"
        ),
        Row("LEM", run=_digits("LEM", 1e-2, hidden_size=45), settings="ours"),
        Row("LSTM", run=_digits("LSTM", 1e-2, hidden_size=45), settings="ours"),
    ),
    note=EQUAL,
)

ADDING = Table(
    id="demo-adding",
    title="Demo: adding problem of length 100",
    source="this package",
    task="adding problem",
    metric="MSE",
    form=".2e",
    direction="lower",
    baseline=(0.167, "always predicting 1"),
    rows=(
        Row("coRNN", run=_sum("CoRNN", 2e-2, hidden_size=64), settings="ours"),
        Row("UnICORNN", run=_sum("UnICORNN", 1e-2, hidden_size=88, num_layers=2), settings="ours"),
        Row("LEM", run=_sum("LEM", 1e-2, hidden_size=45), settings="ours"),
        Row("LSTM", run=_sum("LSTM", 1e-2, hidden_size=45), settings="ours"),
    ),
    note=EQUAL,
)

TABLES = (DIGITS, ADDING)
