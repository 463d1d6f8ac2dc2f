import inspect

import numpy as np
import pytest

from anharmonic.data import StreamTask, write_shards
from anharmonic.data.registry import (
    OWN_DATA,
    describe_tasks,
    list_tasks,
    make_task,
    task_class,
    task_options,
)
from anharmonic.nn.registry import argument_descriptions

pytestmark = pytest.mark.papers
NAMES = """
    adding lorenz96 fitzhugh-nagumo digits smnist psmnist noise-padded-cifar10 spoken-digits imdb
    ptb-char ptb-word watch-imu worms cora
    citeseer pubmed texas wisconsin cornell cornell-old film chameleon squirrel chameleon-filtered
    squirrel-filtered synthetic-cora tolokers minesweeper
    chameleon-traffic squirrel-traffic zinc-rebuilt mnist-superpixels breast-cancer beijing-air
    file graph shards
""".split()


@pytest.mark.parametrize("name", NAMES)
def test_the_name_given_is_the_class_built_and_its_options_are_documented(name, tmp_path):
    file = tmp_path / "mine.npz" if name in OWN_DATA else None
    graph = {"edge_index": np.zeros((2, 1), int)} if name == "graph" else {}
    np.savez(tmp_path / "mine.npz", x=np.ones((9, 2)), y=np.arange(9) % 2, **graph)
    if name == "shards":
        one = np.ones((9, 2, 1)), np.arange(9) % 2
        file = write_shards(tmp_path, {"train": [one], "test": [one]})
    task, kind = make_task(name, {}, data_dir=tmp_path, file=file), task_class(name)
    assert type(task) is kind and task.name == name
    assert set(task.sizes) == {"train", "valid", "test"}
    assert task.source and task.licence
    named = task.target == "class" and not isinstance(task, StreamTask)  # whose classes are words
    assert len(task.class_names) == (task.output_size if named else 0)
    described = argument_descriptions(kind)
    if kind.options_class is not None:
        described |= argument_descriptions(kind.options_class)
    assert described.keys() >= set(task_options(name))
    if kind.kind == "graph" and name not in OWN_DATA:
        assert task.readout in ("node", "graph") and task.metric_scale > 0
        assert min(task.sizes.values()) > 0
        text = "\n".join(inspect.cleandoc(base.__doc__ or "") for base in kind.__mro__)
        assert not [part for part in ("Shape", "Metric", "Split") if f"\n{part}" not in text]


@pytest.mark.parametrize(
    ("module", "name"),
    [("mnist", "smnist"), ("signals", "spoken-digits"), ("cifar", "noise-padded-cifar10")],
)
def test_progress_reaches_the_download(module, name, tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(
        f"anharmonic_papers.tasks.{module}.load_arrays",
        lambda source, folder, *, progress: shown.append(progress),
    )
    for progress in (True, False):
        with pytest.raises(TypeError):  # no arrays are loaded
            make_task(name, data_dir=tmp_path, progress=progress).splits()
    assert shown == [True, False]


def test_describe_reads_no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("ANHARMONIC_DATA", str(tmp_path))
    infos = {info.name: info for info in describe_tasks()}
    assert sorted(infos) == sorted(list_tasks()) == sorted(NAMES)
    assert infos["smnist"].sizes == {"train": 57000, "valid": 3000, "test": 10000}
    for name, samples, target in (
        ("smnist", "sequences", "one of 10 classes per sequence"),
        ("lorenz96", "sequences", "5 values per step"),
        ("adding", "sequences", "1 value per sequence"),
        ("cora", "nodes", "one of 7 classes per node"),
        ("zinc-rebuilt", "graphs", "1 value per graph"),
    ):
        assert (infos[name].samples, infos[name].target) == (samples, target)
    assert infos["smnist"].input == "1 number per step"
    assert infos["cora"].input == "1433 numbers per node"
    assert infos["file"].sizes == infos["graph"].sizes == infos["shards"].sizes == {}
    assert all(info.summary.endswith(".") for info in infos.values())
    assert list(tmp_path.iterdir()) == []
