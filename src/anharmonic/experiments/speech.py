"""Raw speech, one sample at a time: a table of this package, not of the documents."""

from __future__ import annotations

from typing import Any

from anharmonic.experiments.base import Row, Table
from anharmonic.training.run import Run


def _spoken(label: str, model: str, lr: float, **options: Any) -> Row:
    run = Run(
        task="spoken-digits",
        model=model,
        model_options=dict(options),
        epochs=30,
        batch_size=32,
        lr=lr,
        lr_drop_epoch=25,
        clip_norm=1.0,
    )
    return Row(label, run=run, settings="ours")


SPOKEN_DIGITS = Table(
    id="spoken-digits",
    title="Spoken digits, raw audio",
    source="this package",
    task="spoken digits at 8 kHz, sample by sample, 1148 to 18,262 steps",
    metric="accuracy",
    unit="%",
    baseline=(10.0, "guessing"),
    rows=(
        _spoken("coRNN", "CoRNN", 5e-3, hidden_size=88, dt=0.05, frequency=20.0, damping=1.0),
        _spoken("UnICORNN", "UnICORNN", 1e-2, hidden_size=88, num_layers=3, dt=0.4, frequency=1.0),
        _spoken("LEM", "LEM", 5e-3, hidden_size=62),
        _spoken("LSTM", "LSTM", 5e-3, hidden_size=62),
    ),
    note=(
        "Not from the documents, which have no raw audio. No features, no windows: each step reads "
        "one sample. All models have the same number of parameters within 10 %; their settings "
        "are ours."
    ),
)

TABLES = (SPOKEN_DIGITS,)
