"""A short comparison on two tasks that anybody can run: no download, minutes on a laptop."""

from __future__ import annotations

from typing import Any

from anharmonic.train import Run
from anharmonic_papers.tables.base import Row, Table, join
from anharmonic_papers.tables.runs import adding


def _digits(model: str, lr: float, **options: float) -> Row:
    run = Run(
        task="digits",
        model=model,
        model_options=dict(options),
        epochs=12,
        batch_size=32,
        lr=lr,
        lr_drop_epoch=9,
    )
    return Row(model.replace("CoRNN", "coRNN"), run=run, settings="ours")


def _adding(model: str, lr: float, note: str = "", **options: Any) -> Row:
    run = adding(model, 50, 8, lr, **options)
    return Row(model.replace("CoRNN", "coRNN"), run=run, settings="ours", note=note)


DIGITS = Table(
    id="demo-digits",
    title="digits",
    source="this package",
    task="handwritten digits, pixel by pixel",
    metric="accuracy",
    unit="%",
    rows=(
        _digits("CoRNN", 2e-2, hidden_size=64, dt=0.3, frequency=2.0, damping=4.0),
        _digits("UnICORNN", 4e-2, hidden_size=88, num_layers=2, dt=0.5, frequency=4.0),
        _digits("LEM", 2e-2, hidden_size=45),
        _digits("LSTM", 1e-2, hidden_size=45),
    ),
    note="12 epochs of 1257 images of 64 pixels.",
)

ADDING = Table(
    id="demo-adding",
    title="adding",
    source="this package",
    task="adding problem of length 50",
    metric="MSE",
    form=".2e",
    direction="lower",
    baseline=(0.167, "always predicting 1"),
    rows=(
        _adding("CoRNN", 2e-2, hidden_size=64, dt=0.15, frequency=4.0, damping=4.0),
        _adding(
            "UnICORNN",
            2e-2,
            "None of eight settings tried learned the task in so few steps.",
            hidden_size=88,
            num_layers=2,
            dt=1.0,
            frequency=0.05,
        ),
        _adding("LEM", 1e-2, hidden_size=45),
        _adding("LSTM", 1e-2, hidden_size=45),
    ),
    note="Length 50, 800 steps.",
)

DEMO = join(
    id="demo",
    title="Demo: four models on two short tasks",
    source="this package",
    parts=(DIGITS, ADDING),
    note=(
        "Not from the documents. All models have the same number of parameters within 10 %. Each "
        "model's learning rate and step come from a handful of tries by validation. One seed and "
        "a short training: this shows which model learns fast here, not which is best."
    ),
)

TABLES = (DEMO,)
