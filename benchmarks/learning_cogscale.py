"""Recurrent models at equal numbers of parameters on the fourteen small tasks of CogScale.

    pip install cogscale
    PYTHONHASHSEED=0 python benchmarks/bench.py learning_cogscale --missing

CogScale (Bendi-Ouis et al., 2026) generates 100 training, 20 validation and 100 test sequences of
a task, and asks for a prediction at some of their steps. Its score is an error rate or a mean
squared error. Every model is as wide as its parameters allow, readout included; a row says where
only the readout is counted. Networks train for 800 steps of 25 sequences at one rate for all, and
the step of best validation counts. A reservoir is not trained: a ridge regression reads its random
states at every step, and validation chooses the ridge, the scale of the input and, of an echo state
network, the leak.
"""

import bisect
import functools
import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

import anharmonic as ah
from harness.results import Cases, Options, Result, markdown_table, spread
from harness.speed import descent

PACKAGES = ("cogscale",)
SIZES, SEEDS = (1000, 10_000), range(5)
BATCH, RATE, CHECK_EVERY = 25, 1e-2, 20
STEPS = 800
MASK = -100.0
"""The target of a step at which nothing is asked."""
WIDEST = 300
"""Units of an echo state network of which only the readout is counted, at most."""
JUDGED = ("valid", "test")
RIDGES = (1e-6, 1e-4, 1e-2, 1.0)
Task = dict[str, Any]
Array = NDArray[Any]
OURS: dict[str, dict[str, Any]] = {
    "LEM": {"dt": 1.0},
    "CoRNN": {"dt": 0.5, "frequency": 3.0, "damping": 1.0},
    "UnICORNN": {"dt": 1.0, "num_layers": 2, "timescale_range": 2.0},
    "LinOSSNetwork": {"num_layers": 2},
    "NeuralOscillator": {"dt": 1.0},
    "MultiLayerNeuralOscillator": {"dt": 1.0},
    "SkewRNN": {},
    "ResonatorBank": {},
}
"""Options of our models: time steps so large that a single input counts, as these tasks ask. They
were compared on the validation parts of five tasks with a seed that is not reported."""
OTHERS = ("GRU", "LSTM")
UNTRAINED: dict[str, dict[str, Any]] = {
    "CoRNN": {"dt": 0.5, "frequency": 1.0, "damping": 1.0},
    "UnICORNN": {"dt": 1.0, "num_layers": 1, "timescale_range": 2.0},
    "ResonatorBank": {},
}
"""Our layers whose random states a ridge regression reads, with options that were compared on the
validation parts of all tasks with a seed that is not reported."""
READOUT = ", only its readout counted"
RESERVOIRS = ("ESN", f"ESN{READOUT}", *(f"untrained {name}{READOUT}" for name in UNTRAINED))
MODELS = (*OURS, *OTHERS, *RESERVOIRS)
CHOICES = {
    "ours, chosen by validation": tuple(OURS),
    "ours, trained or untrained, chosen by validation": (
        *OURS, *(name for name in RESERVOIRS if name.startswith("untrained"))
    ),
}  # fmt: skip
"""Of which models the one of best validation is taken for each task."""


def loss(output: Tensor, y: Tensor, category: str) -> Tensor:
    asked = (y != MASK).any(-1)
    output, y = output[asked], y[asked]
    if category == "classification":
        return functional.cross_entropy(output, y.argmax(-1))
    if category == "regression":
        return functional.mse_loss(output, y)
    return functional.binary_cross_entropy_with_logits(output, y)


def network(name: str, task: Task, hidden_size: int) -> nn.Module:
    inputs, outputs = task["X_train"].shape[-1], task["Y_train"].shape[-1]
    options = {"hidden_size": hidden_size, "readout": "all", **OURS.get(name, {})}
    return ah.SequenceModel(name, inputs, outputs, **options)


def widest(parameters: Callable[[int], int], budget: int) -> int:
    """The largest width with at most so many parameters."""
    high = 2
    while parameters(high) <= budget:
        high *= 2
    return bisect.bisect_right(range(high), budget, lo=2, key=parameters) - 1


def best(task: Task, made: list[dict[str, Array]], score: Any) -> Result:
    """The errors of the answers with the best validation."""
    errors = [
        {k: float(score(task[f"Y_{k}"], one[k], task["category"])) for k in JUDGED} for one in made
    ]
    return min([dict.fromkeys(JUDGED, float("inf")), *errors], key=lambda one: one["valid"])


def train(name: str, task: Task, budget: int, seed: int, score: Any) -> Result:
    """Parameters, and validation and test error of one training of a network."""

    def parameters(width: int) -> int:
        return sum(p.numel() for p in network(name, task, width).parameters())

    torch.manual_seed(seed)
    width = widest(parameters, budget)
    torch.manual_seed(seed)
    model = network(name, task, width)
    x, y = (torch.tensor(task[f"{k}_train"], dtype=torch.float32) for k in "XY")
    judged = {k: torch.tensor(task[f"X_{k}"], dtype=torch.float32) for k in JUDGED}
    descend = descent(model, RATE, STEPS)
    batches = (rows for _ in range(STEPS) for rows in torch.randperm(len(x)).split(BATCH))
    made = []
    for step, rows in enumerate(itertools.islice(batches, STEPS), start=1):
        model.train()
        descend(loss(model(x[rows]), y[rows], task["category"]))
        if step % CHECK_EVERY == 0:
            model.eval()
            with torch.no_grad():
                made.append({k: model(given).numpy() for k, given in judged.items()})
    return {"parameters": parameters(width), **best(task, made, score)}


def reservoir(name: str, task: Task, budget: int, seed: int, score: Any) -> Result:
    """The same of a reservoir: fixed random units and a ridge regression at every step."""
    inputs, outputs = task["X_train"].shape[-1], task["Y_train"].shape[-1]
    echo, readout_only = name.startswith("ESN"), name.endswith(READOUT)

    def parameters(units: int) -> int:
        readout = outputs * (units + inputs + 1)
        return readout if readout_only else readout + units * (units + inputs)

    units = min(widest(parameters, budget), WIDEST)
    kind = name.removeprefix("untrained ").removesuffix(READOUT)
    drawn = _echo_states(inputs, units, seed) if echo else _layer_states(kind, inputs, units, seed)
    # Of several labels the score takes the sign for the answer.
    shift = 0.5 if task["category"] == "multi_classification" else 0.0
    asked = (task["Y_train"] != MASK).any(-1)
    made = []
    for states in drawn:
        features = {}
        for part in ("train", *JUDGED):
            x = task[f"X_{part}"].astype("f4")
            features[part] = np.concatenate([states(x), x, np.ones_like(x[..., :1])], axis=-1)
        x, y = features["train"][asked].astype("f8"), task["Y_train"][asked]
        gram, moment = x.T @ x, x.T @ (y - shift)
        for ridge in RIDGES:
            weight = np.linalg.solve(gram + ridge * np.eye(len(gram)), moment)
            made.append({k: features[k] @ weight for k in JUDGED})
    return {"parameters": parameters(units), **best(task, made, score)}


def _echo_states(inputs: int, units: int, seed: int) -> Iterator[Callable[[Array], Array]]:
    """Echo state networks with tanh: states [n, T, units] of inputs [n, T, inputs]."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((units, units)).astype("f4")
    matrix *= 0.9 / np.abs(np.linalg.eigvals(matrix)).max()
    entry = rng.uniform(-1, 1, (inputs, units)).astype("f4")
    for scale, leak in itertools.product((0.1, 1.0), (0.5, 1.0)):
        yield functools.partial(_echo, matrix=matrix, entry=scale * entry, leak=leak)


def _echo(x: Array, matrix: Array, entry: Array, leak: float) -> Array:
    found = [np.zeros((len(x), len(matrix)), "f4")]
    for x_t in x.swapaxes(0, 1):
        found.append((1 - leak) * found[-1] + leak * np.tanh(found[-1] @ matrix + x_t @ entry))
    return np.stack(found[1:], 1)


def _layer_states(name: str, inputs: int, units: int, seed: int) -> Iterator[Any]:
    """The same of one of our layers with random weights."""
    torch.manual_seed(seed)
    layer = getattr(ah, name)(inputs, units, batch_first=True, **UNTRAINED[name]).eval()
    for scale in (0.1, 1.0, 5.0):
        yield torch.no_grad()(lambda x, by=scale: layer(torch.from_numpy(by * x))[0].numpy())


def measure(name: str, model: str, size: int, seed: int) -> Result:
    import cogscale

    start = time.process_time()
    task = cogscale.build_task(name, "small", seed=seed)
    found = (reservoir if model in RESERVOIRS else train)(
        model, task, size, seed, cogscale.compute_score
    )
    seconds = round(time.process_time() - start, 1)
    key = {"task": name, "model": model, "size": size, "seed": seed}
    return key | found | {"seconds": seconds}


def cases(options: Options) -> Cases:
    if os.environ.get("PYTHONHASHSEED", "random") == "random":
        raise SystemExit("Set PYTHONHASHSEED=0: without, a task of CogScale differs between runs.")
    import cogscale

    torch.set_num_threads(1)
    keys = itertools.product(SEEDS[:1] if options.quick else SEEDS, SIZES, MODELS, cogscale.tasks)
    return {
        f"{name}, {model}, {size} parameters, seed {seed}": (measure, name, model, size, seed)
        for seed, size, model, name in keys
    }


def tables(results: list[Result]) -> dict[str, str]:
    """Mean error over the tasks of each model and size: mean and deviation over seeds."""
    by_key = {(x["model"], x["size"], x["seed"], x["task"]): x for x in results}
    sizes, seeds, tasks = (sorted({x[key] for x in results}) for key in ("size", "seed", "task"))

    def tested(names: tuple[str, ...], size: int, seed: int) -> list[float]:
        """Of each task, the test error at the best validation error of all models."""
        of_tasks = [[by_key.get((name, size, seed, task)) for name in names] for task in tasks]
        if not all(map(all, of_tasks)):
            return []
        return [min(found, key=lambda one: one["valid"])["test"] for found in of_tasks]

    rows: list[tuple[float, list[str]]] = []
    for model in (*MODELS, *CHOICES):
        names = CHOICES.get(model, (model,))
        values = [
            [statistics.fmean(of) for seed in seeds if (of := tested(names, size, seed))]
            for size in sizes
        ]
        means = [statistics.fmean(of) if of else float("inf") for of in values]
        cells = [spread(of, 3) if of else "-" for of in values]
        rows.append((statistics.fmean(means), [model, *cells]))
    head = ["model", *(f"{size:,} parameters" for size in sizes)]
    return {"cogscale": markdown_table([head, *(row for _, row in sorted(rows))])}
