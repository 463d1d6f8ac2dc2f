from dataclasses import replace

import pytest

from anharmonic.train.run import Run
from anharmonic_papers.tables.base import Row, Table


@pytest.fixture
def run():
    return Run("adding", "LEM", {"length": 500}, {"hidden_size": 8}, epochs=4, batch_size=50)


@pytest.fixture
def table(run):
    return Table(
        id="test-table",
        title="A <b>title</b> & more",
        source="Document, Table 1",
        metric="MSE",
        unit="x 1e-2",
        scale=100.0,
        form=".3f",
        direction="lower",
        baseline=(16.7, "always predicting 1"),
        rows=(
            Row("LEM", reported="0.2", spread="0.05", parameters="1k", run=run, seeds=(0, 1, 2)),
            Row("CoRNN", reported="0.4", run=replace(run, model="CoRNN"), settings="ours"),
            Row("expRNN", reported="2.3", outcome="learns slowly"),
        ),
        note="A note | with a bar.",
    )
