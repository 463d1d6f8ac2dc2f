"""Writes the files in ``tests/pins/data`` anew with the code as it is: the same models and runs.

Usage: OMP_NUM_THREADS=1 ANHARMONIC_DATA=... python tests/pins/make.py

``ANHARMONIC_DATA`` names the folder whose ``graph`` holds ``planetoid_cora.npz``. The files are
what users have on disk, so they are made anew only when a release breaks with them on purpose, and
then all of them, on one machine. Another model is a line in ``models.jsonl`` without its defaults,
and a file ``models/NUMBER-CLASS.safetensors`` with its inputs.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pinned
import torch
from pinned import Run, ah, fit, predict
from safetensors.torch import load_file, save_file

from anharmonic.data.registry import list_tasks, task_class, task_options
from anharmonic.nn.store import stored_class
from anharmonic.train.options import model_option_parameters


def main() -> None:
    """Writes everything."""
    torch.set_num_threads(1)
    _write_json(pinned.DATA / "fingerprint.json", pinned.fingerprint())
    _write_lines(pinned.DATA / "tables.jsonl", rows())
    _write_lines(pinned.DATA / "defaults.jsonl", defaults())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ah.StabilityWarning)
        _write_lines(
            pinned.DATA / "models.jsonl", [save(line) for line in pinned.read_lines("models.jsonl")]
        )
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
    runs = []
    for task in list_tasks():
        options = task_options(task)
        if task in ("file", "graph", "shards"):
            options["sha256"] = "0" * 64
        runs.append(Run(task, ah.list_models(task_class(task).kind)[0], task_options=options))
    for kind, task in partner.items():
        for model in ah.list_models(kind):
            known = model_option_parameters(model).items()
            options = {k: p.default for k, p in known if p.default is not p.empty}
            runs.append(Run(task, model, model_options=options))
    for run in runs:
        yield {"run": json.loads(run.to_json()), "hash": run.hash}


def save(line: dict[str, Any]) -> dict[str, Any]:
    """Saves a model as it starts, with what it computes of its inputs; its line, with defaults."""
    folder = pinned.DATA / "models" / line["folder"]
    kind, path = stored_class(line["folder"].partition("-")[2]), f"{folder}.safetensors"
    torch.manual_seed(line["seed"])
    ah.save_pretrained(kind(*line["sizes"], **line["options"]), folder)
    inputs = {name: x for name, x in load_file(path).items() if name.startswith("input.")}
    fresh = [inputs[name].clone() for name in sorted(inputs)]
    save_file(inputs | pinned.computed(ah.from_pretrained(folder), fresh), path)
    return line | {"defaults": kind(*line["sizes"], **line["required"]).config()}


def train() -> None:
    """Run folders, finished and interrupted after the first epoch, and predictions."""
    interrupted = {folder.name for folder in pinned.run_folders("interrupted")}
    runs = [Run(**line["run"]) for line in pinned.read_lines("finished/results.jsonl")]
    for kind in ("finished", "interrupted"):
        shutil.rmtree(pinned.DATA / kind)
    for run in runs:
        with pinned.counted_steps() as steps:
            fit(run, pinned.environment_for(run, pinned.DATA / "finished"))
        if run.folder_name not in interrupted:
            continue
        a_step_later = steps[0] // run.epochs + 1
        try:
            with pinned.counted_steps(stop_at=a_step_later):
                fit(run, pinned.environment_for(run, pinned.DATA / "interrupted"))
        except KeyboardInterrupt:
            continue
        raise RuntimeError(f"{run.folder_name} was not interrupted")
    (folder,) = (pinned.DATA / "finished").glob("file-*")
    found = predict(folder, pinned.NEW_WAVES)
    said = {"labels": found.labels, "class_names": found.class_names}
    _write_json(
        pinned.DATA / "predictions.json", said | {"values": np.asarray(found.values).tolist()}
    )


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    dumped = (json.dumps(line, sort_keys=True, separators=(",", ":")) for line in lines)
    path.write_text("".join(f"{line}\n" for line in dumped))


if __name__ == "__main__":
    main()
