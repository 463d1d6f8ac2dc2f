"""The tables with many graphs against what is known of them."""

import pytest

from anharmonic.nn.registry import model_class
from anharmonic_papers.tables.registry import table


def parameters(row):
    model = model_class(row.run.model)(1, 1, **row.run.model_options)
    return sum(p.numel() for p in model.parameters())


def test_the_published_network_on_molecules_has_its_parameters():
    assert parameters(table("graphcon-zinc").row("graphcon-gcn")) == 97901


@pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
@pytest.mark.parametrize(
    "name", ["gcn", "gat", "gin", "graphsage", "gatedgcn-gates-not-normalised", "graphcon-gat"]
)
def test_networks_on_molecules_keep_to_the_budget_of_parameters(name):
    assert 90_000 < parameters(table("graphcon-zinc").row(name)) < 110_000


def test_alpha_and_gamma_are_the_printed_ones():
    printed = {
        "graphcon-ppi": {"graphcon-gcn": (0.242, 1.0), "graphcon-gat": (0.785, 1.0)},
        "graphcon-zinc": {"graphcon-gcn": (0.215, 1.115), "graphcon-gat": (1.475, 1.324)},
        "graphcon-mnist-superpixel": {"graphcon-gcn": (1.0, 0.76), "graphcon-gat": (0.76, 0.105)},
    }
    for name, rows in printed.items():
        for row, (damping, frequency) in rows.items():
            options = table(name).row(row).run.model_options
            assert options.get("damping", 1.0) == damping
            assert options.get("frequency", 1.0) == frequency
