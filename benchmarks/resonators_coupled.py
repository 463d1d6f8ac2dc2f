"""Whether resonators that drive each other through tanh, as coRNN's do, make better features.

    OMP_NUM_THREADS=1 python benchmarks/resonators_coupled.py SETS [--only NAME ...] [--write]

``SETS`` is the folder that ``learning_sets.py`` wrote. 500 resonators are driven by u, by tanh(u),
or by tanh(u + W y), W normal with variance 1 / 500; the rest is as in ``ResonatorFeatures``, done
here in plain PyTorch. ``--write`` puts the table into docs/resonators.md.
"""

from __future__ import annotations

import argparse
import math
import platform
import statistics
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import RidgeClassifierCV
from sklearn.preprocessing import StandardScaler
from torch import Tensor

import anharmonic as ah
from anharmonic.ops.resonator import propagator, resonator_step
from resonators import load, write

K = 500
WAYS = {"u": (False, 0.0), "tanh(u)": (True, 0.0), "tanh(u + W y)": (True, 1.0)}
"""Whether tanh is taken, and how strong the coupling is."""


def responses(u: Tensor, bank: tuple[Tensor, Tensor], is_tanh: bool, coupling: Tensor) -> Tensor:
    """Y and z after every step for what drives each resonator: [T, N, K] to [T, N, 2, K]."""
    step = propagator(*bank)
    state = (torch.zeros_like(u[0]), torch.zeros_like(u[0]))
    found = u.new_empty(*u.shape[:2], 2, u.shape[2])
    for t, now in enumerate(u):
        drive = torch.tanh(now + state[0] @ coupling) if is_tanh else now
        state = resonator_step(drive, state, step)
        found[t, :, 0], found[t, :, 1] = state
    return found


def pooled(found: Tensor, lengths: Tensor, biases: Tensor, slow: Tensor) -> np.ndarray:
    """Share, longest run, mean position, largest and last value, [N, D]."""
    above = found.new_zeros(2, *found.shape[1:])
    run, longest, position = (torch.zeros_like(found[0]) for _ in range(3))
    largest, end = torch.full_like(found[0], -torch.inf), torch.zeros_like(found[0])
    for t, now in enumerate(found):
        runs = (t < lengths)[:, None, None]
        over = [(now > bias) & runs for bias in biases]
        above += torch.stack(over)
        run = (run + 1) * over[0]
        longest, position = torch.maximum(longest, run), position + t * over[0]
        largest = torch.where(runs, torch.maximum(largest, now), largest)
        end = torch.where(runs, now, end)
    n = lengths[:, None, None]
    where = torch.where(above[0] > 0, position / (above[0].clamp(min=1) * n), -1.0)
    parts = [*(above / n), longest / n, where[..., ::2], largest, end[..., slow]]
    return torch.cat([part.flatten(1) for part in parts], dim=1).numpy()


def accuracy(sets: dict, way: str, seed: int) -> float:
    """In percent on the test part."""
    series, parts = sets["train"][0] + sets["test"][0], len(sets["train"][0])
    rng, lengths = np.random.default_rng(seed), torch.tensor([len(one) for one in series])
    flat = np.concatenate(sets["train"][0])
    C, T = flat.shape[1], int(lengths.max())
    x = torch.zeros(T, len(series), 2 * C)
    for i, one in enumerate(series):
        scaled = (one - flat.mean(0)) / (flat.std(0) + 1e-8)
        changes = np.diff(scaled, axis=0, prepend=scaled[:1])
        x[: len(one), i] = torch.from_numpy(np.hstack([scaled, changes]))
    weight = torch.zeros(2 * C, K)
    for k in range(K):
        few = rng.choice(C, int(2 ** rng.uniform(0, math.log2(C))), replace=False)
        signs = torch.from_numpy(rng.choice([-1.0, 1.0], len(few))).float()
        weight[few + C * (2 * k >= K), k] = signs
    typical = float(np.median(lengths[:parts]))
    period = torch.from_numpy(np.exp(rng.uniform(math.log(2.5), math.log(typical), K))).float()
    q = torch.from_numpy(np.exp(rng.uniform(math.log(0.7), math.log(10), K))).float()
    is_tanh, strength = WAYS[way]
    coupling = torch.from_numpy(rng.normal(size=(K, K)) * strength / math.sqrt(K)).float()
    found = responses(x @ weight, (2 * math.pi / period, q), is_tanh, coupling)
    n = rng.integers(parts, size=1000)
    sample = found[torch.from_numpy(rng.integers(lengths[n].numpy())), torch.from_numpy(n)]
    at = torch.from_numpy(rng.integers(1000, size=(2, 2, K)))
    biases = sample.gather(0, at)
    features = pooled(found, lengths, biases, torch.nonzero(period >= 0.2 * typical)[:, 0])
    scaler = StandardScaler().fit(features[:parts])
    ridge = RidgeClassifierCV(alphas=np.logspace(-3, 3, 10))
    ridge.fit(scaler.transform(features[:parts]), sets["train"][1])
    right = ridge.predict(scaler.transform(features[parts:])) == sets["test"][1]
    return round(100 * float(right.mean()), 2)


def main() -> None:
    """Measures, prints and perhaps writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", help="names of sets")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn")  # fewer series than features
    paths = sorted(asked.sets.glob("*.npz"), key=lambda path: path.stat().st_size)
    found: dict[str, dict[str, list[float]]] = {way: {} for way in WAYS}
    for path in paths:
        if asked.only and path.stem not in asked.only:
            continue
        for way, by_set in found.items():
            with torch.no_grad():
                by_set[path.stem] = [accuracy(load(path), way, s) for s in range(asked.seeds)]
            print(path.stem, way, by_set[path.stem], flush=True)
    names = list(found["u"])
    lines = [f"| driven by | {' | '.join(names)} |", "| --- |" + " ---: |" * len(names)]
    lines += [
        f"| {way} | " + " | ".join(f"{statistics.fmean(by_set[n]):.1f}" for n in names) + " |"
        for way, by_set in found.items()
    ]
    lines += [
        "",
        f"Test accuracy in percent, mean of {asked.seeds} seeds, {K} resonators; "
        f"{platform.machine()}, anharmonic {ah.__version__}.",
    ]
    print("\n".join(lines))
    if asked.write:
        write("coupled", "\n".join(lines), found)


if __name__ == "__main__":
    main()
