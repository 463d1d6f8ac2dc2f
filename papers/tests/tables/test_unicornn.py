import pytest

from anharmonic_papers.tables.registry import table


@pytest.mark.parametrize(
    ("name", "row", "count"),
    [
        ("unicornn-psmnist", "unicornn-128", 35_338),
        ("unicornn-ncifar", "unicornn", 47_498),
        ("unicornn-ncifar", "lipschitz-rnn", 158_474),
    ],
)
def test_parameters_are_those_of_the_papers(name, row, count, parameters):
    found = table(name).row(row)
    assert parameters(found.run) == count
    assert found.parameters in (f"{round(count / 1000)}k", f"{count // 1000}k")


@pytest.mark.parametrize(
    ("name", "row", "count", "printed"),
    [
        ("unicornn-psmnist", "unicornn-256", 136_202, "135k"),
        ("unicornn-lorenz96", "f-8-unicornn", 9_545, "9k"),
    ],
)
def test_printed_counts_that_leave_out_a_vector_per_layer(name, row, count, printed, parameters):
    found = table(name).row(row)
    assert parameters(found.run) == count
    layers, units = (found.run.model_options[k] for k in ("num_layers", "hidden_size"))
    assert found.parameters == printed == f"{round((count - layers * units) / 1000)}k"


def test_indrnn_lacks_the_parameters_of_batch_normalisation(parameters):
    found = table("unicornn-psmnist").row("indrnn")
    count = parameters(found.run)
    assert count == 84_874
    assert found.parameters == "86k" == f"{round((count + 6 * 2 * 128) / 1000)}k"
    assert found.run.model_options["longest_dependency"] == 784


def test_both_learning_rates_of_noise_padded_cifar_are_offered():
    rows = [table("unicornn-ncifar").row(i) for i in ("unicornn", "unicornn-published-code")]
    assert [row.run.lr for row in rows] == [3.14e-2, 3.14e-3]
    assert [row.settings for row in rows] == ["paper", "published code"]
