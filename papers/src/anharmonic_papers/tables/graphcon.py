"""The tables of the thesis's (T) chapter 7: GraphCON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from anharmonic.train import Range, with_settings
from anharmonic_papers.tables.base import Row, Table
from anharmonic_papers.tables.graphs import SPACES, TEN, depth_run, node_run, tuned

_FIXED = "Ten fixed splits, one run each."
_CORNELL = (
    "Cornell is the faulty file of the time (features and labels of Texas), as in the documents."
)


def _searched(label: str, task: str, model: str, conv: str, **more: Any) -> Row:
    """A row on the ten splits whose settings are searched for."""
    options = more.pop("options", {})
    return Row(
        label,
        run=node_run(task, model, conv, **options),
        seeds=TEN,
        split="split",
        search={k: v for k, v in SPACES[model].items() if k not in options},
        settings="ours",
        **more,
    )


def _published(task: str, hidden: int, layers: int, lr: float, decay: float, residual: str) -> Any:
    """GraphCON-GCN of the published code: residual terms, dropout 0.3 on both states."""
    return node_run(
        task,
        "GraphCON",
        "GCN",
        epochs=1500,
        patience=100,
        lr=lr,
        weight_decay=decay,
        hidden_size=hidden,
        num_layers=layers,
        frequency=0.0,
        damping=0.0,
        residual=residual,
        dropout=0.3,
        input_dropout=0.3,
    )


_ZERO = {"frequency": 0.0, "damping": 0.0}
_CODE = {
    "texas": (256, 2, 1.55e-3, 8.549327e-4, "v2"),
    "wisconsin": (64, 2, 3.56e-3, 8.1266192e-3, "v2"),
    "cornell-old": (256, 1, 7.21e-3, 1.2708787e-3, "v1"),
}
_CODE_NOTE = (
    "As the published code runs: residual terms in the coupling and dropout 0.3. There the test "
    "accuracy at the lowest validation loss counts, here that at the best validation accuracy; its "
    "initial weights are uniform in +-1/sqrt(hidden), ours PyTorch's."
)


def _heterophilic(group: str, task: str, numbers: dict[str, tuple[str, str]]) -> tuple[Row, ...]:
    def printed(label: str) -> dict[str, Any]:
        reported, spread = numbers[label]
        return {"group": group, "reported": reported, "spread": spread}

    others = ("GPRGNN", "H2GCN", "Geom-GCN")
    return (
        *(Row(label, **printed(label)) for label in others),
        _searched("GCNII", task, "GCNII", "", **printed("GCNII")),
        _searched(
            "PairNorm", task, "PlainGNN", "GCN", options={"norm": "pair"}, **printed("PairNorm")
        ),
        _searched("GraphSAGE", task, "PlainGNN", "SAGE", **printed("GraphSAGE")),
        _searched("MLP", task, "PlainGNN", "MLP", **printed("MLP")),
        _searched("GAT", task, "PlainGNN", "GAT", **printed("GAT")),
        _searched(
            "GraphCON-GAT", task, "GraphCON", "GAT", options=_ZERO, **printed("GraphCON-GAT")
        ),
        _searched("GCN", task, "PlainGNN", "GCN", **printed("GCN")),
        _searched(
            "GraphCON-GCN", task, "GraphCON", "GCN", options=_ZERO, **printed("GraphCON-GCN")
        ),
        Row(
            "GraphCON-GCN (published code)",
            run=_published(task, *_CODE[task]),
            seeds=TEN,
            split="split",
            settings="published code",
            note=_CODE_NOTE,
            **printed("GraphCON-GCN"),
        ),
    )


_HETEROPHILIC = {
    "Texas": {
        "GPRGNN": ("78.4", "4.4"), "H2GCN": ("84.9", "7.2"), "GCNII": ("77.6", "3.8"),
        "Geom-GCN": ("66.8", "2.7"), "PairNorm": ("60.3", "4.3"), "GraphSAGE": ("82.4", "6.1"),
        "MLP": ("80.8", "4.8"), "GAT": ("52.2", "6.6"), "GraphCON-GAT": ("82.2", "4.7"),
        "GCN": ("55.1", "5.2"), "GraphCON-GCN": ("85.4", "4.2"),
    },
    "Wisconsin": {
        "GPRGNN": ("82.9", "4.2"), "H2GCN": ("87.7", "5.0"), "GCNII": ("80.4", "3.4"),
        "Geom-GCN": ("64.5", "3.7"), "PairNorm": ("48.4", "6.1"), "GraphSAGE": ("81.2", "5.6"),
        "MLP": ("85.3", "3.3"), "GAT": ("49.4", "4.1"), "GraphCON-GAT": ("85.7", "3.6"),
        "GCN": ("51.8", "3.1"), "GraphCON-GCN": ("87.8", "3.3"),
    },
    "Cornell": {
        "GPRGNN": ("80.3", "8.1"), "H2GCN": ("82.7", "5.3"), "GCNII": ("77.9", "3.8"),
        "Geom-GCN": ("60.5", "3.7"), "PairNorm": ("58.9", "3.2"), "GraphSAGE": ("76.0", "5.0"),
        "MLP": ("81.9", "6.4"), "GAT": ("61.9", "5.1"), "GraphCON-GAT": ("83.2", "7.0"),
        "GCN": ("60.5", "5.3"), "GraphCON-GCN": ("84.3", "4.8"),
    },
}  # fmt: skip

HETEROPHILIC = Table(
    id="graphcon-heterophilic",
    title="Heterophilic graphs, GraphCON",
    source="thesis Table 7.2",
    task="transductive node classification",
    metric="accuracy",
    unit="%",
    form=".1f",
    rows=(
        *_heterophilic("Texas", "texas", _HETEROPHILIC["Texas"]),
        *_heterophilic("Wisconsin", "wisconsin", _HETEROPHILIC["Wisconsin"]),
        *_heterophilic("Cornell", "cornell-old", _HETEROPHILIC["Cornell"]),
    ),
    note=f"{_FIXED} {_CORNELL} γ = α = 0, as printed.",
)

_SPLITS = "Largest connected component, random splits as in the documents, one run each."


def _homophilic(group: str, task: str, numbers: dict[str, tuple[str, str]]) -> tuple[Row, ...]:
    names = {
        "GAT": ("PlainGNN", "GAT"),
        "GraphCON-GAT": ("GraphCON", "GAT"),
        "GCN": ("PlainGNN", "GCN"),
        "GraphCON-GCN": ("GraphCON", "GCN"),
        "GraphCON-Tran": ("GraphCON", "Tran"),
        "GraphSage-mean": ("PlainGNN", "SAGE"),
    }
    rows = []
    for label, (reported, spread) in numbers.items():
        printed: dict[str, Any] = {"group": group, "reported": reported, "spread": spread}
        if label not in names:
            rows.append(Row(label, **printed))
            continue
        model, conv = names[label]
        run = replace(node_run(task, model, conv), task_options={"split": "random"})
        row = Row(
            label,
            run=run,
            seeds=(0, 1, 2, 3, 4),
            split="split_number",
            search=SPACES[model],
            settings="ours",
            **printed,
        )
        rows.append(row)
        if model == "GraphCON":
            search = {**row.search, "dt": Range(0.1, 1.0), "damping": Range(0.0, 1.5)}
            other = with_settings(run, {"dt": 0.3})
            rows.append(replace(row, label=f"{label}, dt and α searched", run=other, search=search))
    return tuple(rows)


_HOMOPHILIC = {
    "Cora": {
        "GAT-ppr": ("81.6", "0.3"), "MoNet": ("81.3", "1.3"), "GraphSage-mean": ("79.2", "7.7"),
        "GraphSage-maxpool": ("76.6", "1.9"), "CGNN": ("81.4", "1.6"), "GDE": ("78.7", "2.2"),
        "GCN": ("81.5", "1.3"), "GraphCON-GCN": ("81.9", "1.7"), "GAT": ("81.8", "1.3"),
        "GraphCON-GAT": ("83.2", "1.4"), "GRAND": ("83.6", "1.0"), "GraphCON-Tran": ("84.2", "1.3"),
    },
    "Citeseer": {
        "GAT-ppr": ("68.5", "0.2"), "MoNet": ("71.2", "2.0"), "GraphSage-mean": ("71.6", "1.9"),
        "GraphSage-maxpool": ("67.5", "2.3"), "CGNN": ("66.9", "1.8"), "GDE": ("71.8", "1.1"),
        "GCN": ("71.9", "1.9"), "GraphCON-GCN": ("72.9", "2.1"), "GAT": ("71.4", "1.9"),
        "GraphCON-GAT": ("73.2", "1.8"), "GRAND": ("73.4", "0.5"), "GraphCON-Tran": ("74.2", "1.7"),
    },
    "Pubmed": {
        "GAT-ppr": ("76.7", "0.3"), "MoNet": ("78.6", "2.3"), "GraphSage-mean": ("77.4", "2.2"),
        "GraphSage-maxpool": ("76.1", "2.3"), "CGNN": ("66.6", "4.4"), "GDE": ("73.9", "3.7"),
        "GCN": ("77.8", "2.9"), "GraphCON-GCN": ("78.8", "2.6"), "GAT": ("78.7", "2.3"),
        "GraphCON-GAT": ("79.5", "1.8"), "GRAND": ("78.8", "1.7"), "GraphCON-Tran": ("79.4", "1.3"),
    },
}  # fmt: skip

HOMOPHILIC = Table(
    id="graphcon-homophilic",
    title="Homophilic graphs, GraphCON",
    source="thesis Table 7.1",
    task="transductive node classification",
    metric="accuracy",
    unit="%",
    form=".1f",
    rows=tuple(
        row
        for group, task in (("Cora", "cora"), ("Citeseer", "citeseer"), ("Pubmed", "pubmed"))
        for row in _homophilic(group, task, _HOMOPHILIC[group])
    ),
    note=(
        f"{_SPLITS} The documents have 5 splits with 20 initialisations each; ours 5 splits with "
        "one. γ = α = dt = 1, as printed; every layer is then exactly that of the plain network "
        "with one shared convolution, so rows with dt and α searched stand beside. The published "
        "code for GraphCON-Tran is another model (source terms, learned mixing, no activation) "
        "and takes the test accuracy at the best of many integration times beyond the one trained "
        "for; ours is the documents' equation."
    ),
)

_DROP_EDGE = "The reported numbers are those of GCN with DropEdge; ours is a plain GCN."

DEPTH = Table(
    id="graphcon-depth-cora",
    title="Depth on Cora, GraphCON",
    source="thesis Table 7.9",
    task="semi-supervised node classification, public split",
    metric="accuracy",
    unit="%",
    form=".1f",
    rows=tuple(
        Row(
            label,
            f"{layers} layers",
            reported=reported,
            run=depth_run(model, layers, **options),
            seeds=(0, 1, 2),
            settings="ours",
            note=note,
        )
        for layers, ours, theirs in (
            (2, "82.20", "82.80"), (4, "82.78", "82.00"), (8, "83.53", "75.80"),
            (16, "84.85", "75.70"), (32, "82.95", "62.50"), (64, "82.12", "49.50"),
        )
        for label, model, options, reported, note in (
            ("GCN", "PlainGNN", {}, theirs, _DROP_EDGE),
            ("GraphCON-GCN", "GraphCON", {}, ours, ""),
            ("GraphCON-GCN, dt = 0.3", "GraphCON", {"dt": 0.3}, ours, ""),
        )
    ),
    note=(
        "The documents print no settings; ours are the same at every depth. γ = α = 1; with dt = 1 "
        "too, every layer is exactly that of the plain network with one shared convolution."
    ),
)  # fmt: skip

TABLES = (tuned(HOMOPHILIC), tuned(HETEROPHILIC), DEPTH)
