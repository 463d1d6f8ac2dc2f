"""A user's graph: one `.npz` archive with features, edges and targets of nodes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anharmonic._checks import boolean, choice, listed, message, natural, require
from anharmonic._files import existing, replacing
from anharmonic.data.archive import load_archive
from anharmonic.data.base import Splits, counted, seeded_rng
from anharmonic.data.graphs.base import NodeData, NodeTask
from anharmonic.data.graphs.edges import Edges, coalesce, reciprocity, to_undirected
from anharmonic.data.parts import Indices, split_indices
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.readers import checked_digest
from anharmonic.data.sequences import Sequences, in_float32
from anharmonic.data.targets import maybe_classes, maybe_unknown, names_of
from anharmonic.ops.graph import Adjacency

_MASKS = {"train": ("train_mask",), "valid": ("valid_mask", "val_mask"), "test": ("test_mask",)}
_KEYS = ("x", "edge_index", "y", *(name for names in _MASKS.values() for name in names))


@dataclass(frozen=True)
class NodeGraph:
    """One graph as read from a file.

    Attributes:
        where: The file, for messages.
        x: float32 `[N, F]`, finite.
        edges: int64 `[2, E]`, every edge once, sources in row 0.
        y: Targets `[N]` or `[N, O]` as stored; None if not read.
        masks: bool `[N]` or `[N, number of splits]` by part; empty if the file has no split.
        repeated: Number of edges left out because another one is equal.
    """

    where: str
    x: NDArray[np.float32]
    edges: Edges
    y: NDArray[Any] | None
    masks: dict[str, NDArray[np.bool_]]
    repeated: int = 0

    @property
    def features(self) -> Sequences:
        """Return the features in the form that `Preprocessing` takes."""
        return Sequences(self.where, self.x, np.array([0, len(self.x)]))


def read_graph(path: Path | str, *, targets: bool = True) -> NodeGraph:
    """Read one graph from an archive written with `numpy.savez` or `save_graph`.

    Keys:
        x: Features of the nodes, real numbers `[N, F]`.
        edge_index: Whole numbers `[2, E]`, sources in row 0 and targets in row 1, in `[0, N)`;
            edges listed twice count once.
        y: Whole numbers or strings `[N]` (classes; whole numbers below 0 or empty text where not
            known), or numbers with a point `[N]` or `[N, O]` (values; NaN where not known, and a
            node with a NaN has no target).
        train_mask, valid_mask (or val_mask), test_mask: Optional, bool `[N]`, or
            `[N, number of splits]`.

    Args:
        path: The archive.
        targets: Whether to read `y` and the masks.

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If the file is not a valid archive, a key is unknown or missing, or arrays do
            not fit together. The message says what and where.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "mine.npz"
        >>> edges = np.array([[0, 1], [1, 2]])
        >>> np.savez(path, x=np.eye(3), edge_index=edges, y=np.array([0, 1, 0]))
        >>> read_graph(path).x.shape
        (3, 3)
    """
    path = existing(path)
    name = path.name
    advice = "save a torch_geometric Data with anharmonic.data.save_graph(path, data)"
    require(path.suffix.lower() == ".npz", "a graph's file", name, "an .npz archive", advice)
    arrays = load_archive(path)
    weights = sorted({"edge_weight", "edge_attr"} & set(arrays))
    advice = "leave them out, or train in your own loop"
    require(not weights, f"keys of {name}", listed(weights or _KEYS), "no data of edges", advice)
    for key in arrays:
        choice(f"key in {name}", key, _KEYS)
    needed = ("x", "edge_index", "y") if targets else ("x", "edge_index")
    advice = "write it with numpy.savez(file, x=..., edge_index=..., y=...)"
    require(set(needed) <= set(arrays), f"keys of {name}", sorted(arrays), listed(needed), advice)
    if not targets:
        arrays = {key: arrays[key] for key in needed}
    return _node_graph(name, arrays)


def _node_graph(name: str, arrays: dict[str, NDArray[Any]]) -> NodeGraph:
    """Return the graph of an archive's arrays, which must fit together."""
    x = _features(name, arrays["x"])
    edges = _edges(name, arrays["edge_index"], len(x))
    if "y" not in arrays:
        return NodeGraph(name, x, edges, None, {})
    y = arrays["y"]
    advice = "write classes as whole numbers or strings, values as numbers with a point"
    kind = y.dtype.kind
    require(kind in "biufUS", f"y in {name}", str(y.dtype), "numbers or strings", advice)
    advice = "give one target, or row of targets, for every node"
    fits = y.ndim in (1, 2) and len(y) == len(x)
    require(fits, f"y in {name}", list(y.shape), f"of {len(x)} rows, as x", advice)
    repeated = arrays["edge_index"].shape[1] - edges.shape[1]
    return NodeGraph(name, x, edges, y, _masks(name, arrays, len(x)), repeated)


def known_classes(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which nodes have a class; whole numbers below 0 and empty text mean unknown.

    Example:
        >>> known_classes(np.array([2, -1])).tolist(), known_classes(np.array(["", "a"])).tolist()
        ([True, False], [False, True])
    """
    if y.dtype.kind in "US":
        return np.asarray(y != y.dtype.type())
    return y >= 0 if y.dtype.kind == "i" else np.ones(len(y), bool)


def node_values(where: str, y: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the values of the nodes, `[N, O]`, and which nodes have all; NaN means unknown.

    Example:
        >>> node_values("here", np.array([0.5, np.nan]))[1].tolist()
        [True, False]
    """
    advice = "write them as numbers with a point"
    require(y.dtype.kind in "biuf", f"y in {where}", str(y.dtype), "values", advice)
    values = in_float32(y.reshape(len(y), -1), where, what="target")
    bad = np.flatnonzero(np.isinf(values).any(1))
    advice = "rescale them, or write NaN for nodes without a value"
    came = "" if not len(bad) else f"{y[bad[0]]} at node {bad[0]} ({len(bad)} such nodes)"
    require(not len(bad), f"y in {where}", came, "finite in float32, or NaN", advice)
    return values, np.logical_and.reduce(~np.isnan(values), axis=1)


def node_inputs(
    graph: NodeGraph, preprocessing: Preprocessing, undirected: bool
) -> tuple[Tensor, Adjacency]:
    """Return the features and edges of a graph for predictions; targets are ignored.

    A warning names features that are far from those of training.
    """
    count = len(graph.x)
    edges = to_undirected(graph.edges, count) if undirected else graph.edges
    x = torch.from_numpy(preprocessing.transform(graph.features))
    if preprocessing.standardise:  # otherwise most are 0, and rare words say nothing about units
        preprocessing.warn_of(graph.features)
    return x, Adjacency(torch.from_numpy(edges), count)


def _array(value: Any) -> NDArray[Any]:
    if isinstance(value, Tensor):
        value = value.detach().to_dense().cpu()
        value = value.float() if value.dtype == torch.bfloat16 else value
    return np.asarray(value)


def save_graph(path: Path | str, data: Any) -> None:
    """Write a graph of PyTorch Geometric as an archive for `anharmonic train`.

    `.pt` files are not accepted, because they are pickles, which may run code.

    Args:
        path: The file, ending in .npz.
        data: A `torch_geometric.data.Data`, or anything with its attributes `x`, `edge_index`, `y`
            and, if there is a split, `train_mask`, `val_mask`, `test_mask`. Other attributes are
            dropped with a warning.

    Raises:
        ValueError: If `x`, `edge_index` or `y` is missing, or they do not fit together.

    Example:
        >>> import tempfile, torch
        >>> from types import SimpleNamespace
        >>> edges, y = torch.tensor([[0, 1], [1, 2]]), torch.tensor([0, 1, 1])
        >>> path = Path(tempfile.mkdtemp()) / "mine.npz"
        >>> save_graph(path, SimpleNamespace(x=torch.eye(3), edge_index=edges, y=y))
        >>> read_graph(path).edges.tolist()
        [[0, 1], [1, 2]]
    """
    target = Path(path)
    expected, advice = "a path that ends in .npz", "name it so"
    require(target.suffix == ".npz", "path", str(path), expected, advice)
    found = {key: getattr(data, key, None) for key in _KEYS}
    lacking = [key for key in ("x", "edge_index", "y") if found[key] is None]
    advice = "set them, e.g. data.x = torch.eye(data.num_nodes)"
    require(not lacking, "data", f"no {listed(lacking or ['x'])}", "x, edge_index and y", advice)
    others = sorted(set(data.keys()) - set(_KEYS)) if callable(getattr(data, "keys", None)) else []
    if others:
        text = message("a graph's file holds nodes and edges", listed(others), "these are left out")
        warnings.warn(text, stacklevel=2)
    arrays = {key: _array(value) for key, value in found.items() if value is not None}
    if arrays["y"].ndim == 2 and arrays["y"].shape[1] == 1:
        arrays["y"] = arrays["y"][:, 0]
    _node_graph("data", arrays)
    with replacing(target) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # numpy types all as bool


class GraphFileTask(NodeTask):
    """Your own graph from an `.npz` archive, for node classification or regression.

    Integer and string targets are classes (integers below 0 and empty text mean unknown); decimal
    numbers are values (a node with a NaN is unknown). The metric is accuracy in percent, or root
    mean squared error in units of `y`.

    Args:
        path: The archive, with keys as in `anharmonic.data.read_graph`.
        sha256: Expected `file_digest(path)`; another file is refused. None for no check.
        split: Number of the stored split, if masks have several columns.
        split_seed: Seed of the parts that the file does not define, in `[0, 2**32)`.
        undirected: Whether to add the reverse of every edge.
        standardise: Whether to scale every feature to mean 0 and standard deviation 1 over all
            nodes. "auto" does so unless more than half of all entries are 0, as for words or
            categories.
        scale_target: Whether to scale numeric targets to mean 0 and standard deviation 1 within the
            model. Metric and predictions keep the units of `y`.

    Shape:
        x `[N, F]`, y `[R]` classes or `[R, O]` values, rows `[R]`, no membership.

    Split: the masks of the file (without a validation mask, a fifth of the training nodes
    validates). Otherwise 60 % training, 20 % validation and 20 % test of the known nodes,
    stratified by class.

    Attributes:
        digest: `file_digest(path)`.
        preprocessing: The preprocessing of the features; `anharmonic predict` applies it to new
            graphs.

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If the file is damaged or inconsistent, or is not the file of `sha256`.

    Example:
        >>> import tempfile
        >>> path, rng = Path(tempfile.mkdtemp()) / "mine.npz", np.random.default_rng(0)
        >>> edges = rng.integers(0, 30, (2, 90))
        >>> np.savez(path, x=rng.random((30, 4)), edge_index=edges, y=["a", "b", "c"] * 10)
        >>> task = GraphFileTask(path)
        >>> task.sizes, task.class_names, task.input_size
        ({'train': 18, 'valid': 6, 'test': 6}, ('a', 'b', 'c'), 4)
    """

    name = "graph"
    licence = "yours"
    recommended: ClassVar[Mapping[str, Any]] = {"scale_target": True}

    def __init__(
        self,
        path: Path | str,
        sha256: str | None = None,
        split: int = 0,
        split_seed: int = 1234,
        undirected: bool = False,
        standardise: Literal["auto", "yes", "no"] = "auto",
        scale_target: bool = False,
    ) -> None:
        natural("split", split)
        self.undirected = boolean("undirected", undirected)
        choice("standardise", standardise, ("auto", "yes", "no"))
        boolean("scale_target", scale_target)
        self.path = existing(path)
        self.source = self.path.name
        self.digest = checked_digest(self.path, sha256)
        graph = read_graph(self.path)
        y, known = self._targets(graph)
        rng = seeded_rng("graph split", natural("split_seed", split_seed))
        labels = y if self.target == "class" else None
        rows = _split(graph, split, known, labels, rng)
        if labels is not None:
            _check_classes(graph.where, self.class_names, labels, rows)
        self.sizes = {part: len(mine) for part, mine in rows._asdict().items()}
        self.input_size = graph.x.shape[1]
        dense = bool(2 * np.count_nonzero(graph.x) > graph.x.size)
        scaled = dense if standardise == "auto" else standardise == "yes"
        self.preprocessing = Preprocessing.fit(graph.features, scaled, "error")
        if scale_target and self.target == "value":
            self.preprocessing = self.preprocessing.scaling(y[rows.train])
        x = self.preprocessing.transform(graph.features)
        units = self.preprocessing.target_units
        self._data = NodeData(x, graph.edges, y, rows, units)
        if not undirected and graph.edges.shape[1] and reciprocity(graph.edges) == 0:
            one_way = (
                f"Every edge in {graph.where} is stored in one direction only, so nodes get "
                "messages only from the sources of their edges; if edges have no direction, add "
                "--undirected."
            )
            self.hint = f"{self.hint} {one_way}".lstrip()
        if graph.repeated:
            once = f"Repeated edges count once ({graph.repeated} in {graph.where})."
            self.hint = f"{self.hint} {once}".lstrip()

    def _targets(self, graph: NodeGraph) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return class indices `[N]` or values `[N, O]`, and the nodes with a target."""
        y, name = np.asarray(graph.y), f"y in {graph.where}"
        if y.dtype.kind == "f":
            self.target, self.metric = "value", "rmse"
            values, known = node_values(graph.where, y)
            self.output_size = values.shape[1]
            advice = "for classes store whole numbers, -1 where the class is not known"
            self.hint = maybe_classes(values[known], graph.where, advice)
            some = int((~known & ~np.isnan(values).all(1)).sum())
            if some:
                unknown = f"Nodes with only some values count as unknown ({some} in {graph.where})."
                self.hint = f"{self.hint} {unknown}".lstrip()
            return values, known
        advice = "store one class per node, or values as numbers with a point"
        require(y.ndim == 1, name, list(y.shape), "[N] for classes", advice)
        self.target, self.metric = "class", "accuracy"
        known = known_classes(y)
        classes, numbers = names_of(y[known])
        advice = "add nodes of another class; whole numbers below 0 and empty text mean unknown"
        require(len(classes) > 1, f"classes of {name}", classes, "two or more", advice)
        self.class_names, self.output_size = tuple(classes), len(classes)
        self.hint = maybe_unknown(classes, graph.where)
        codes = np.full(len(y), -1, np.int64)
        codes[known] = numbers
        return codes, known

    def _read(self) -> NodeData:
        return self._data


def _features(name: str, x: NDArray[Any]) -> NDArray[np.float32]:
    where = f"x in {name}"
    came = f"{x.dtype} {list(x.shape)}"
    fits = x.dtype.kind in "fiub" and x.ndim == 2 and min(x.shape) > 0
    advice = "give every node one row of features; without any, numpy.eye(N)"
    require(fits, where, came, "an array of real numbers [N, F]", advice)
    x = in_float32(x, name, what="feature")
    bad = np.argwhere(~np.isfinite(x))
    if len(bad):
        row, column = bad[0].tolist()
        came = f"{x[row, column]} at node {row}, feature {column} ({len(bad)} such entries)"
        raise ValueError(message(f"{where} must be finite", came, "fill in or remove these"))
    return x


def _edges(name: str, edges: NDArray[Any], nodes: int) -> Edges:
    where = f"edge_index in {name}"
    fits = edges.dtype.kind in "iu" and edges.ndim == 2 and edges.shape[0] == 2
    advice = "store sources in row 0 and targets in row 1 (transpose a list of pairs)"
    require(fits, where, f"{edges.dtype} {list(edges.shape)}", "whole numbers [2, E]", advice)
    bad = np.flatnonzero(((edges < 0) | (edges >= nodes)).any(0))
    came = "" if not len(bad) else f"{edges[:, bad[0]].tolist()} at edge {bad[0]}"
    advice = "number the nodes from 0 in the order of the rows of x"
    require(not len(bad), where, came, f"numbers of nodes in [0, {nodes})", advice)
    return coalesce(edges, nodes)


def _masks(name: str, arrays: dict[str, NDArray[Any]], nodes: int) -> dict[str, NDArray[np.bool_]]:
    masks: dict[str, NDArray[np.bool_]] = {}
    for part, keys in _MASKS.items():
        here = [key for key in keys if key in arrays]
        require(len(here) < 2, f"keys of {name}", here, "only one of these", "remove the other")
        for key in here:
            mask = arrays[key]
            zero_one = mask.dtype.kind == "b" or (
                mask.dtype.kind in "iu" and bool(np.isin(mask, (0, 1)).all())
            )
            fits = zero_one and mask.ndim in (1, 2) and len(mask) == nodes
            came = f"{mask.dtype} {list(mask.shape)}"
            advice = "make it with numpy.isin(numpy.arange(N), numbers_of_the_nodes)"
            expected = f"bool [{nodes}], or one column for every split"
            require(fits, f"{key} in {name}", came, expected, advice)
            masks[part] = mask.astype(bool)
    both = not masks or {"train", "test"} <= set(masks)
    advice = "add the other, or leave all masks out"
    require(both, f"masks in {name}", sorted(masks), "train_mask and test_mask", advice)
    return masks


def _split(
    graph: NodeGraph,
    number: int,
    known: NDArray[np.bool_],
    labels: NDArray[Any] | None,
    rng: np.random.Generator,
) -> Splits[Indices]:
    """Return the rows of the parts, from the masks or random."""
    where = graph.where
    stored = max([mask.shape[1] for mask in graph.masks.values() if mask.ndim == 2], default=1)
    advice = "take other nodes with --split-seed, or store masks of several columns"
    expected = f"0 for {where}, which stores one split"
    require(number == 0 or stored > 1, "split", number, expected, advice)
    if not graph.masks:
        rows = np.flatnonzero(known)
        advice = "add nodes with a target"
        require(len(rows) >= 5, f"known nodes in {where}", len(rows), "five or more", advice)
        fifth = round(len(rows) / 5)
        return Splits(*_cut(rows, [len(rows) - 2 * fifth, fifth, fifth], labels, rng))
    parts: dict[str, Indices] = {}
    for part, mask in graph.masks.items():
        columns = 1 if mask.ndim == 1 else mask.shape[1]
        advice = f"pass --split 0 to {columns - 1}"
        require(mask.ndim == 1 or number < columns, "split", number, f"below {columns}", advice)
        parts[part] = np.flatnonzero(mask if mask.ndim == 1 else mask[:, number])
        unknown = parts[part][~known[parts[part]]]
        advice = "take them out of the mask, or give them a target"
        name = f"nodes without a target in the {part} mask of {where}"
        require(not len(unknown), name, unknown[:5].tolist(), "none", advice)
        require(len(parts[part]) > 0, f"the {part} mask of {where}", "no node", "one or more",
                "set it where nodes belong to that part")  # fmt: skip
    if "valid" not in parts:
        train = parts["train"]
        advice = "add training nodes, or a valid_mask"
        require(len(train) > 1, f"training nodes in {where}", len(train), "two or more", advice)
        fifth = max(1, round(len(train) / 5))
        cut = _cut(train, [len(train) - fifth, fifth], labels, rng)
        parts |= {"train": cut[0], "valid": cut[1]}
    every = np.concatenate(list(parts.values()))
    twice = np.flatnonzero(np.bincount(every) > 1)
    advice = "give every node to one part at most"
    came = f"{counted(len(twice), 'node')} in two parts, the first {twice[:1].tolist()}"
    require(not len(twice), f"masks in {where}", came, "disjoint", advice)
    return Splits(**parts)


def _cut(
    rows: Indices, sizes: Sequence[int], labels: NDArray[Any] | None, rng: np.random.Generator
) -> list[Indices]:
    mine = None if labels is None else labels[rows]
    return [np.sort(rows[part]) for part in split_indices(len(rows), sizes, rng, mine)]


def _check_classes(
    where: str, names: Sequence[str], labels: NDArray[Any], rows: Splits[Indices]
) -> None:
    taught = set(labels[rows.train].tolist())
    for part, mine in (("valid", rows.valid), ("test", rows.test)):
        extra = [names[i] for i in sorted(set(labels[mine].tolist()) - taught)]
        advice = "add training nodes of these classes, or take them out of the masks; if y holds "
        advice += "values, store them as numbers with a point"
        require(not extra, f"classes only in the {part} part of {where}", extra[:5], "none", advice)
