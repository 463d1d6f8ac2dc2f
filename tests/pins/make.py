"""Writes the files in ``tests/pins/data`` with the code as it is.

Usage: OMP_NUM_THREADS=1 ANHARMONIC_DATA=... python tests/pins/make.py

``ANHARMONIC_DATA`` names the folder whose ``graph`` holds ``planetoid_cora.npz``. The files are
what users have on disk, so they are made anew only when a release breaks with them on purpose, and
then all of them, on one machine.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pinned import (
    DATA,
    NEW_WAVES,
    WAVES,
    Run,
    ah,
    computed,
    counted_steps,
    environment_for,
    fingerprint,
    fit,
    predict,
)
from safetensors.torch import save_file

from anharmonic.data.readers import file_digest
from anharmonic.data.registry import list_tasks, task_class, task_options
from anharmonic.nn.registry import list_models, model_class
from anharmonic.nn.store import stored_class
from anharmonic.train.options import model_option_parameters

STACK = {"num_layers": 2, "bidirectional": True}
LAYERS: dict[str, list[dict[str, Any]]] = {
    "CoRNN": [
        {"dt": 0.3, "frequency": 2.0, "damping": 0.7, "num_layers": 3},
        {"dt": 0.3, "scheme": "implicit", "bias": False, **STACK},
        {"trainable_dt": True, "trainable_frequency": True, "trainable_damping": True},
    ],
    "UnICORNN": [
        {"dt": [0.1, 0.2, 0.3, 0.4], "num_layers": 4, "skipped_layers": 2},
        {"frequency": 1.5, "trainable_timescales": False, "bias": False, **STACK},
    ],
    "LEM": [
        {"dt": 0.6, "num_layers": 3},
        {"dt": 0.3, "multiscale": False, "bias": False, **STACK},
        {"gate_floor": 0.25, "chrono_length": 20},
    ],
    "NeuralOscillator": [
        {"dt": 0.2, **STACK},
        {"scheme": "velocity-verlet", "activation": "sin", "bias": False},
    ],
    "MultiLayerNeuralOscillator": [
        {"dt": 0.2, "num_layers": 2, "hidden_sizes": [6, 4]},
        {"scheme": "velocity-verlet", "activation": "sin", "bias": False},
    ],
    "SkewRNN": [{"dt": 0.3, **STACK}],
    "RNN": [STACK],
    "LSTM": [STACK],
    "GRU": [STACK],
    "ChronoLSTM": [{"chrono_length": 20, **STACK}],
    "AntisymmetricRNN": [STACK],
    "GatedAntisymmetricRNN": [STACK],
    "ExpRNN": [STACK, {"initialisation": "henaff"}],
    "IndRNN": [{"longest_dependency": 20, **STACK}, {"activation": "tanh"}],
    "FastRNN": [STACK],
    "FastGRNN": [STACK],
    "LipschitzRNN": [STACK, {"scheme": "midpoint"}],
}
REVERSIBLE = ("UnICORNN", "MultiLayerNeuralOscillator")
CELLS = {"CoRNNCell": {"dt": 0.3}, "UnICORNNCell": {"dt": 0.3}, "LEMCell": {"dt": 0.6}}
SEQUENCE_MODELS: list[dict[str, Any]] = [
    {"layer": "LEM", "readout": "last", "dt": 0.6},
    {"layer": "CoRNN", "readout": "mean", "dt": 0.3, "bidirectional": True},
    {"layer": "LSTM", "readout": "all", "num_layers": 2},
]
ODES: list[dict[str, Any]] = [
    {"dynamics": "skew"},
    {"dynamics": "regular", "solver": "rk4", "step_size": 0.25},
    {"dynamics": "unrestricted", "matrix_activation": "tanh", "normalisation": "classification"},
]
GRAPHS: dict[str, list[dict[str, Any]]] = {
    "GraphCONNetwork": [
        {"trainable_frequency": True, "trainable_damping": True, "residual": "v2"},
        {"conv": "GAT", "heads": 2, "group_mean": True, "shared": False},
        {"conv": "Tran", "heads": 2, "dt": 0.5, "level": "graph", "pool": "mean"},
    ],
    "GradientGatingNetwork": [
        {"p": 1.5, "aggr": "mean", "separate_gate": True},
        {"conv": "SAGE", "neighbours": "out", "single_rate": True, "shared": False},
        {"conv": "GAT", "heads": 2, "rate_exponent": 2.0, "aggr": "max"},
    ],
    "PlainGNN": [
        {"conv": conv, "heads": 2, "shared": True} for conv in ("GCN", "GIN", "ResGated", "MLP")
    ]
    + [{"norm": "pair", "conv": "SAGE"}, {"jump": "cat"}],
    "GCNII": [{"alpha": 0.3}],
}

ADDING = {"length": 20, "valid_size": 30, "test_size": 30, "steps_per_epoch": 8}
CORA = {"epochs": 10, "lr": 0.01}
RUNS: list[dict[str, Any]] = [
    {
        "task": "file",
        "model": "LEM",
        "model_options": {"hidden_size": 4, "num_layers": 2, "dropout": 0.2, "dt": 0.5},
        "epochs": 3,
        "batch_size": 4,
        "lr": 0.1,
        "lr_drop_epoch": 2,
        "clip_norm": 1.0,
        "select": "last",
        "seed": 1,
    },
    {
        "task": "adding",
        "model": "CoRNN",
        "task_options": ADDING,
        "model_options": {"hidden_size": 6, "dt": 0.1, "bidirectional": True},
        "epochs": 3,
        "batch_size": 8,
        "lr": 0.01,
        "weight_decay": 0.001,
        "readout": "mean",
    },
    {
        "task": "digits",
        "model": "UnICORNN",
        "model_options": {"hidden_size": 8, "num_layers": 3, "dropout": 0.1, "dt": 0.2},
        "epochs": 3,
        "batch_size": 256,
        "lr": 0.02,
        "select": "last",
        "seed": 2,
    },
    {"task": "adding", "model": "LSTM", "task_options": ADDING, "epochs": 2, "patience": 1}
    | {"model_options": {"hidden_size": 4}},
    {"task": "breast-cancer", "model": "NeuralODE", "epochs": 2, "seed": 3}
    | {"model_options": {"hidden_size": 4, "width": 8}},
    {"task": "cora", "model": "GraphCON", **CORA}
    | {"model_options": {"hidden_size": 4, "num_layers": 3, "conv": "GAT", "dropout": 0.2}},
    {"task": "cora", "model": "GradientGating", **CORA, "select": "last"}
    | {"model_options": {"hidden_size": 4, "num_layers": 3, "conv": "SAGE"}},
]
INTERRUPTED = ("LEM", "UnICORNN", "GraphCON")


def main() -> None:
    """Writes everything."""
    torch.set_num_threads(1)
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir()
    _write_json(DATA / "fingerprint.json", fingerprint())
    _write_lines(DATA / "tables.jsonl", rows())
    _write_lines(DATA / "defaults.jsonl", defaults())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ah.StabilityWarning)
        save_models()
    save_data_files()
    train()


def rows() -> Iterator[dict[str, Any]]:
    """Every row that runs: its run, and the name of the run with each of its seeds."""
    from anharmonic_papers.tables import list_tables, table

    for name in sorted(list_tables()):
        for row in sorted(table(name).rows, key=lambda row: row.id):
            if row.run is not None:
                yield {
                    "table": name,
                    "row": row.id,
                    "run": json.loads(row.run.to_json()),
                    "split": row.split,
                    "hashes": [(run.seed, run.hash) for run in row.runs()],
                }


def defaults() -> Iterator[dict[str, Any]]:
    """Every task and every model with all its options written out, and the name of that run."""
    partner = {"sequence": "adding", "graph": "cora", "tabular": "breast-cancer"}
    for task in list_tasks():
        model = ah.list_models(task_class(task).kind)[0]
        options = task_options(task)
        if task in ("file", "graph"):
            options["sha256"] = "0" * 64
        run = Run(task, model, task_options=options)
        yield {"run": json.loads(run.to_json()), "hash": run.hash}
    for kind, task in partner.items():
        for model in ah.list_models(kind):
            known = model_option_parameters(model).items()
            options = {k: p.default for k, p in known if p.default is not p.empty}
            run = Run(task, model, model_options=options)
            yield {"run": json.loads(run.to_json()), "hash": run.hash}


def save_models() -> None:
    """One folder per class and choice of options, with inputs, outputs, gradients and defaults."""
    generator = torch.Generator().manual_seed(5)
    features = torch.randn(6, 3, generator=generator)
    sequence = torch.randn(5, 2, 3, generator=generator)
    # An isolated node, a loop, a double edge.
    edges = torch.tensor([[0, 1, 1, 2, 3, 3, 4, 2], [1, 0, 2, 1, 3, 4, 2, 1]])
    cases: list[tuple[type, tuple[Any, ...], dict[str, Any], list[torch.Tensor]]] = []
    for name, choices in LAYERS.items():
        cases += [(stored_class(name), (3, 4), options, [sequence]) for options in choices]
    for name, options in CELLS.items():
        cases.append((stored_class(name), (3, 4), options, [features]))
    for options in SEQUENCE_MODELS:
        layer = {k: v for k, v in options.items() if k != "layer"}
        x = sequence.transpose(0, 1).contiguous()
        lengths = torch.tensor([5, 3])
        case = (
            stored_class("SequenceModel"),
            (options["layer"], 3, 2),
            {"hidden_size": 4, **layer},
        )
        cases.append((*case, [x, lengths]))
    for options in ODES:
        cases.append((stored_class("NeuralODE"), (3,), {"width": 4, **options}, [features]))
        both = {"hidden_size": 3, "width": 4, **options}
        cases.append((stored_class("NeuralODENetwork"), (3, 2), both, [features]))
    for name, choices in GRAPHS.items():
        for options in choices:
            both = {"hidden_size": 4, "num_layers": 2, **options}
            cases.append((stored_class(name), (3, 2), both, [features, edges]))
    for name in REVERSIBLE:
        options = {"memory": "reversible", "num_layers": 2}
        cases.append((stored_class(name), (3, 4), options, [sequence]))
    # Later ones stand at the end: their number is their seed.
    for options in ({"q": (0.5, 4.0)}, {"trainable": False, "batch_first": True}):
        cases.append((stored_class("ResonatorBank"), (3, 4), options, [sequence]))
    kinds = ("sequence", "graph", "tabular")
    known = {model_class(name) for kind in kinds for name in list_models(kind)}
    missing = known - {kind for kind, *_ in cases}
    assert not missing, f"no case for {missing}"
    made = []
    for number, (kind, sizes, options, inputs) in enumerate(cases):
        torch.manual_seed(number)
        model = kind(*sizes, **options)
        folder = DATA / "models" / f"{number:02d}-{kind.__name__}"
        ah.save_pretrained(model, folder)
        fresh = [x.clone() for x in inputs]
        given = {f"input.{i}": x.clone() for i, x in enumerate(inputs)}
        save_file(given | computed(ah.from_pretrained(folder), fresh), f"{folder}.safetensors")
        required = {"hidden_size": 4} if kind.__name__ == "SequenceModel" else {}
        bare = kind(*sizes, **required)
        made.append(
            {
                "folder": folder.name,
                "seed": number,
                "sizes": sizes,
                "options": options,
                "required": required,
                "defaults": bare.config(),
            }
        )
    _write_lines(DATA / "models.jsonl", made)


def save_data_files() -> None:
    """Sequences of three kinds of wave, of several lengths, and three new ones."""
    rng = np.random.default_rng(9)
    kinds = rng.integers(0, 3, 48)
    time = np.arange(12)[None, :, None] * np.array([0.3, 0.5])
    waves = np.sin(time * (1 + kinds[:, None, None])) + 0.1 * rng.standard_normal((48, 12, 2))
    lengths = rng.integers(6, 13, 48)
    names = np.array(["slow", "middling", "fast"])[kinds]
    waves = waves.astype(np.float32)
    np.savez(WAVES, x=waves[:45], y=names[:45], lengths=lengths[:45])
    np.savez(NEW_WAVES, x=waves[45:], lengths=lengths[45:])


def train() -> None:
    """Run folders, finished and interrupted after the first epoch, and predictions."""
    for fields in RUNS:
        if fields["task"] == "file":
            fields = fields | {"task_options": {"sha256": file_digest(WAVES)}}
        run = Run(**fields)
        with counted_steps() as steps:
            fit(run, environment_for(run, DATA / "finished"))
        if run.model not in INTERRUPTED:
            continue
        a_step_later = steps[0] // run.epochs + 1
        try:
            with counted_steps(stop_at=a_step_later):
                fit(run, environment_for(run, DATA / "interrupted"))
        except KeyboardInterrupt:
            continue
        raise RuntimeError(f"{run.folder_name} was not interrupted")
    (folder,) = (DATA / "finished").glob("file-*")
    found = predict(folder, NEW_WAVES)
    said = {"labels": found.labels, "class_names": found.class_names}
    _write_json(DATA / "predictions.json", said | {"values": np.asarray(found.values).tolist()})


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    dumped = (json.dumps(line, sort_keys=True, separators=(",", ":")) for line in lines)
    path.write_text("".join(f"{line}\n" for line in dumped))


if __name__ == "__main__":
    main()
