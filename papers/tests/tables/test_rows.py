"""Settings of rows that no paper prints in so many words."""

from anharmonic_papers.tables.registry import table


def test_models_of_others_know_the_length():
    options = table("cornn-adding").row("t-2000-fastrnn").run.model_options
    assert options["update_weight"] == 1 / 2000 and options["carry_weight"] == 1 - 1 / 2000
    assert table("unicornn-psmnist").row("indrnn").run.model_options["longest_dependency"] == 784


def test_adding_at_500_is_6000_steps():
    for row in table("cornn-adding").rows:
        if row.group == "T = 500" and row.run is not None:
            ours = row.run.schedule == "cosine"  # learned in fewer
            assert (row.run.epochs == 60 or ours) and row.run.epochs <= 60
            assert row.run.batch_size == 50
    assert table("cornn-adding").row("t-500-lem").run.model_options["dt"] == 0.0447


def test_fitzhugh_nagumo_runs_three_seeds_of_400_epochs():
    rows = [row for row in table("lem-fitzhugh-nagumo").rows if "published" not in row.label]
    for row in rows:
        if row.run is not None:
            assert row.seeds == (0, 1, 2)
            assert (row.run.epochs, row.run.batch_size) == (400, 32)


def test_the_demo_is_one_table_of_two_tasks_without_download():
    parts = [part.task for part in table("demo").parts]
    assert parts == ["handwritten digits, pixel by pixel", "adding problem of length 50"]
    assert [row.run.task for row in table("demo").rows] == ["digits"] * 4 + ["adding"] * 4
    assert table("demo").rows[2].id == "digits-lem"


def test_spoken_digits_are_heard_in_full_length():
    for row in table("spoken-digits").rows:
        frames = {"samples_per_step": 20} if row.group == "twenty samples a step" else {}
        if row.group == "" or frames:
            assert row.run.task_options == {"unit_rms": True} | frames
