"""
The adding problem
==================

Of two rows of numbers, one random and one of zeros with two ones, the sum of the two marked
numbers
is asked. Always answering 1 has an error of 0.167; to do better a network must carry a number
over the
sequence. The textbook test of memory, here with 100 steps.
"""

# %%
# The same training for both: 32 units, Adam at a rate of 0.01, gradients clipped at 1.
import matplotlib.pyplot as plt
import torch

import anharmonic as ah

torch.manual_seed(0)
T, B, STEPS = 100, 32, 400


def batch():
    x = torch.rand(T, B, 2)
    x[:, :, 1] = 0
    first, second = torch.randint(T // 2, (B,)), torch.randint(T // 2, T, (B,))
    x[first, torch.arange(B), 1] = x[second, torch.arange(B), 1] = 1
    return x, (x[:, :, 0] * x[:, :, 1]).sum(0, keepdim=True).T


def train(name, **options):
    model = ah.SequenceModel(
        name, input_size=2, output_size=1, hidden_size=32, readout="last", **options
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(STEPS):
        x, y = batch()
        loss = torch.nn.functional.mse_loss(model(x.transpose(0, 1)), y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


curves = {"LEM": train("LEM", dt=0.1), "LSTM": train("LSTM")}

# %%
# Means over 20 steps of training.
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for (name, losses), colour, dash in zip(
    curves.items(), ("#0072B2", "#D55E00"), ("-", "--"), strict=True
):
    smooth = losses.unfold(0, 20, 1).mean(1)
    axes.plot(range(20, STEPS + 1), smooth, dash, color=colour)
    axes.annotate(
        name, (STEPS, smooth[-1]), (4, 0), textcoords="offset points", color=colour, va="center"
    )
axes.axhline(0.167, color="black", lw=0.8, ls=":")
axes.annotate("always answering 1", (STEPS, 0.167), (-4, 4), textcoords="offset points", ha="right")
axes.set(xlabel="step of training", ylabel="mean squared error", yscale="log")
plt.show()
