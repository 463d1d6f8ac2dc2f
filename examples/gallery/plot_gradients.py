"""
How far back does a layer see?
==============================

The size of the gradient of the last output in the state k steps before, with the weights a
layer starts from.
What falls exponentially cannot be learned from far away.
"""

# %%
# Five layers, 64 units, 500 random samples; the median over eight sequences.
import matplotlib.pyplot as plt
import torch

import anharmonic as ah
from anharmonic.diagnostics import state_gradients

layers = {
    "tanh RNN": (lambda: torch.nn.RNN(1, 64), "#999999", ":"),
    "LSTM": (lambda: torch.nn.LSTM(1, 64), "#D55E00", "--"),
    "LEM": (lambda: ah.LEM(1, 64, dt=0.02), "#0072B2", "-"),
    "coRNN": (lambda: ah.CoRNN(1, 64, dt=0.02), "#009E73", "-."),
    "UnICORNN": (lambda: ah.UnICORNN(1, 64, dt=0.1), "#CC79A7", (0, (5, 1))),
}

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for name, (make, colour, dash) in layers.items():
    torch.manual_seed(0)
    sizes = state_gradients(make(), torch.randn(500, 8, 1)).median(1).values
    sizes = (sizes / sizes[0]).clamp(min=1e-12)
    axes.plot(sizes, color=colour, ls=dash)
    shown = int((sizes > 1e-11).nonzero().max())
    axes.annotate(
        name, (shown, sizes[shown]), (4, 0), textcoords="offset points", color=colour, va="center"
    )
axes.set(
    xlabel="steps back", ylabel="gradient, relative", yscale="log", ylim=(1e-11, 1e2), xlim=(0, 590)
)
plt.show()
