"""Settings of rows that no paper prints in so many words."""

import pytest

from anharmonic_papers.tables.registry import table


def test_models_of_others_know_the_length():
    options = table("cornn-adding").row("t-2000-fastrnn").run.model_options
    assert options["update_weight"] == 1 / 2000 and options["carry_weight"] == 1 - 1 / 2000
    assert table("unicornn-psmnist").row("indrnn").run.model_options["longest_dependency"] == 784


def test_adding_at_500_is_6000_steps_and_fitzhugh_nagumo_400_epochs_of_three_seeds():
    for row in table("cornn-adding").rows:
        if row.group == "T = 500" and row.run is not None:
            ours = row.run.schedule == "cosine"  # learned in fewer
            assert (row.run.epochs == 60 or ours) and row.run.epochs <= 60
            assert row.run.batch_size == 50
    assert table("cornn-adding").row("t-500-lem").run.model_options["dt"] == 0.0447
    for row in table("lem-fitzhugh-nagumo").rows:
        if row.run is not None and "published" not in row.label:
            assert (row.seeds, row.run.epochs, row.run.batch_size) == ((0, 1, 2), 400, 32)


def test_spoken_digits_are_heard_in_full_length():
    for row in table("spoken-digits").rows:
        frames = {"samples_per_step": 20} if row.group == "twenty samples a step" else {}
        if row.group == "" or frames:
            assert row.run.task_options == {"unit_rms": True} | frames


def test_the_demo_is_one_table_of_two_tasks_without_download():
    parts = [part.task for part in table("demo").parts]
    assert parts == ["handwritten digits, pixel by pixel", "adding problem of length 50"]
    assert [row.run.task for row in table("demo").rows] == ["digits"] * 4 + ["adding"] * 4
    assert table("demo").rows[2].id == "digits-lem"


# The two neural ODE experiments: one budget for all rows, three measures of the same runs.
NESTAAS = [table(name) for name in ("nestaas-regression", "nestaas-classification")]


@pytest.mark.parametrize("both", NESTAAS, ids=lambda t: t.id)
def test_rows_of_neural_odes_differ_in_dynamics_and_rate_alone(both):
    runs = {row.label: row.run for row in both.rows}
    assert list(runs) == ["Regular", "Unrestricted", "Skew Symmetric"]
    own = {"dynamics", "matrix_activation", "normalisation"}  # (Regular has no matrix)
    shared = [
        (
            run.epochs,
            run.batch_size,
            run.task_options,
            {k: v for k, v in run.model_options.items() if k not in own},
        )
        for run in runs.values()
    ]
    assert shared == 3 * [shared[0]]
    assert {run.lr for run in runs.values()} <= {0.01, 0.003}
    assert [part.measure for part in both.parts] == ["valid", "nfe", "adjoint_score"]
    assert all(part.quartiles and part.direction == "lower" for part in both.parts)
    assert len({row.run.hash for row in both.rows}) == 3
    assert {row.seeds for row in both.rows} == {tuple(range(20))}


def test_classification_bounds_the_matrix():
    for row in NESTAAS[1].rows:
        bounded = row.run.model_options.get("matrix_activation") == "tanh"
        assert bounded == (row.label != "Regular")
