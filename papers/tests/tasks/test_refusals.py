"""Arguments that tasks refuse, archives that are not there, and what they say."""

import math
import typing

import pytest

from anharmonic.data import list_tasks, task_class, task_options

TASKS = ["digits"]
TASKS += [name for name in list_tasks() if task_class(name).__module__.startswith("anharmonic_p")]


def wrong_values(name):
    """Values of another type than the option's, or outside every range of it."""
    hints = typing.get_type_hints(task_class(name).__init__)
    for option in task_options(name):
        kinds = typing.get_args(hints[option]) or (hints[option],)
        if bool in kinds:
            yield from ((option, 1), (option, "no"))
        elif int in kinds:
            yield from ((option, -1), (option, True), (option, "0"))
            if not any(word in option for word in ("split", "seed", "shift")):
                yield option, 0
        elif float in kinds and not option.endswith("dropout"):  # the model refuses that
            yield from ((option, math.nan), (option, "0.5"))
        elif float not in kinds:  # one of a few words
            yield option, "nothing"


@pytest.mark.parametrize("name", TASKS)
def test_every_option_refuses_what_is_none_of_its_values(name):
    for option, value in wrong_values(name):
        with pytest.raises((TypeError, ValueError), match=f"{option} must be"):
            task_class(name)(**{option: value})
            pytest.fail(f"{option}={value!r} is taken")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("texas", {"split": 10}, r"split must be in \[0, 9\]; got 10; choose a st"),
        ("minesweeper", {"split": 12}, r"split must be in \[0, 9\]; got 12; choose"),
        ("mnist-superpixels", {"train_size": 60000}, r"train_size must be in \[1, 55000\]"),
        ("synthetic-cora", {"homophily": 0.15}, r"homophily must be one of 0.0, 0.1, .*; got 0.15"),
        ("synthetic-cora", {"homophily": 1.5}, "homophily must be a finite number"),
        ("synthetic-cora", {"repeat": 4}, r"repeat must be in \[1, 3\]; got 4; choose"),
        ("noise-padded-cifar10", {"length": 31}, "length must be >= 32; got 31"),
        ("noise-padded-cifar10", {"test_size": 10001}, r"test_size must be in \[1, 10000\]"),
        ("lorenz96", {"forcing": 1e9}, r"forcing must be a finite number in \[-20, 20\]"),
        ("psmnist", {"permutation": "cornm"}, "did you mean 'cornn'"),
        ("smnist", {"pool": 3}, "pool must be 1, 2, 4, 7 or 14; got 3; choose"),
        ("smnist", {"shift": 4}, r"shift must be in \[0, 3\]; got 4; larger shifts"),
        ("smnist", {"valid_size": 60000}, r"valid_size must be in \[1, 59999\]; got 60000"),
        ("smnist", {"train_size": 60000}, r"train_size must be in \[1, 57000\]"),
        ("spoken-digits", {"test_speaker": "luca"}, "test_speaker must .* did you mean 'lucas'"),
        ("spoken-digits", {"valid_speaker": "yweweler"}, "test_speaker must be .*valid_speaker; g"),
        ("spoken-digits", {"train_size": 2431}, r"train_size must be in \[1, 2430\]; got 2431"),
        ("worms", {"last": 5, "random": 5}, "random must be None beside last"),
        ("worms", {"last": 901}, r"last must be in \[1, 900\]"),
        ("beijing-air", {"train_size": 400_000}, r"train_size must be in \[1, 306869\]; got 4000"),
        ("ptb-word", {"train_size": 10**6}, r"train_size must be in \[1, 929589\]"),
    ],
)
def test_a_value_out_of_range_is_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        task_class(name)(**options)


@pytest.mark.parametrize("name", ["cornell", "zinc-rebuilt"])
def test_an_archive_that_is_not_there_is_named_and_its_folder(name, tmp_path):
    archive = task_class(name).archive.name
    there = rf"{archive}.npz must exist; got no such file, .*ANHARMONIC_DATA .* holds gr"
    with pytest.raises(FileNotFoundError, match=there):
        task_class(name)(data_dir=tmp_path).splits()
