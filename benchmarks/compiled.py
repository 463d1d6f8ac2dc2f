"""Layers whose steps are compiled at their first call, beside their loops and ``nn.LSTM``.

A cell of one's own from the documentation and layers of this package without code of their own; the
cell's loop also under ``torch.compile``, 25 steps at a time.
"""

import functools
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

import anharmonic as ah
import memory
from anharmonic.nn import HiddenState, SequenceLayer, StepLayer
from harness import speed
from harness.results import Cases, Options, Result, caption, markdown_table
from harness.speed import LSTM, medians, training_step

SIZES = ((32, 128, 1000), (8, 32, 17_984))
"""Batch, hidden size and steps; as many inputs as neurons."""
CHUNK, ROUNDS = 25, 5
LONG = "memory of MinimalGate; B 1, H 32, T 1,000,000"


class MinimalGate(StepLayer):
    """h' = (1 - z) h + z tanh(V x + W (z h) + b), z = sigmoid(V_z x + W_z h + b_z)."""

    def __init__(self, input_size, hidden_size, num_layers=1, **options):
        super().__init__(input_size, hidden_size, num_layers, **options)
        self.make_parameters()

    def parameter_shapes(self, input_size):
        H = self.hidden_size
        return {"weight_ih": (2 * H, input_size), "W": (H, H), "W_z": (H, H), "bias": (2 * H,)}

    def step_function(self, u, state, w, dt):
        new, gate = u.chunk(2, dim=1)
        z = torch.sigmoid(gate + state.h @ w.W_z.T)
        return HiddenState(torch.lerp(state.h, torch.tanh(new + (z * state.h) @ w.W.T), z))


class Chunks(nn.Module):
    """The loop of a layer, 25 steps at a time, for ``torch.compile``."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.chunk = torch.compile(self._chunk)

    def _chunk(self, u: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        w, outputs = self.layer.layer_weights(), []
        for u_t in u.unbind(0):
            h = self.layer.step_function(u_t, HiddenState(h), w, 1.0).h
            outputs.append(h)
        return torch.stack(outputs), h

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        u = self.layer.drive(x, self.layer.layer_weights())
        h, outputs = x.new_zeros(x.shape[1], self.layer.hidden_size), []
        for part in u.split(CHUNK):
            output, h = self.chunk(part, h)
            outputs.append(output)
        return torch.cat(outputs), h


LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "MinimalGate": MinimalGate,
    "LinOSS": ah.LinOSS,
    "D-LinOSS": functools.partial(ah.LinOSS, scheme="implicit-explicit", damping=True),
    # As many states as a layer of this size.
    "LinOSSBlock": lambda size, states: ah.LinOSSBlock(size, states // 2),
    "SkewRNN": ah.SkewRNN,
}


def cases(options: Options) -> Cases:
    rounds, steps = (1, 1_000) if options.quick else (ROUNDS, 1_000_000)
    found: Cases = {}
    for name in LAYERS:
        for sizes in SIZES:
            batch, hidden, length = sizes
            given = (2, 4, 40) if options.quick else sizes
            case = f"{name}; B {batch}, H {hidden}, T {length:,}"
            found[case] = (speed.isolated, times, name, given, rounds)
    return found | {LONG: (speed.isolated, long_step, steps)}


def long_step(steps: int, policy: str = "chunked", hidden: int = 32) -> Result:
    """MB that one training step takes beyond its input, with the loss on the last state.

    Call it in a process of its own. A short step comes first and compiles the cell.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layer, x = MinimalGate(1, hidden, memory=policy), torch.randn(steps, 1, 1)

    def step(x: Tensor) -> None:
        layer.zero_grad()
        layer(x, output="none")[1].h.sum().backward()

    step(x[:64])
    return {"megabytes": memory.measured(lambda: step(x), [])["peak_mb"]}


def times(name: str, sizes: tuple[int, int, int], rounds: int) -> Result:
    """Return the median milliseconds of a training step on one thread, and of the first in seconds.

    The loss is on every output, because a gradient from the last one alone fades into denormal
    numbers, which slow down some layers more than others. Loops take two turns.
    """
    batch, hidden, steps = sizes
    torch.set_num_threads(1)
    torch.manual_seed(0)
    made = {way: LAYERS[name](hidden, hidden) for way in ("compiled", "loop")}
    made["loop"].load_state_dict(made["compiled"].state_dict())
    for way, layer in made.items():
        for part in layer.modules():
            if isinstance(part, SequenceLayer):
                part.compiled = "auto" if way == "compiled" else False
    if name == "MinimalGate" and steps < 5000:
        made["torch.compile"] = Chunks(made["loop"])
    made[LSTM] = nn.LSTM(hidden, hidden)
    x, first = torch.randn(steps, batch, hidden), {}
    turns = {way: training_step(layer, x, every=True) for way, layer in made.items()}
    for way, turn in turns.items():
        start = time.perf_counter()
        turn()
        first[way] = time.perf_counter() - start
    taken = medians(turns, rounds, warm_up=0, slow=("loop",))
    milliseconds = {way: 1e3 * seconds for way, seconds in taken.items()}
    return {"milliseconds": milliseconds, "first_seconds": first}


def tables(results: list[Result]) -> dict[str, str]:
    timed = [one for one in results if "milliseconds" in one]
    ways = list(dict.fromkeys(way for one in timed for way in one["milliseconds"]))
    rows = [["layer; batch, units, steps", *ways]]
    for one in timed:
        found = one["milliseconds"]
        rows.append([one["case"], *(f"{found[w]:,.0f}" if w in found else "" for w in ways)])
    about = caption(timed, "Milliseconds of a training step on one thread")
    return {"compiled": f"{markdown_table(rows)}\n\n{about}"}
