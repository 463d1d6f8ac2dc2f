"""A stream in one step at a time gives the numbers of the whole sequence, in constant memory."""

import torch

import anharmonic as ah


def main() -> None:
    torch.manual_seed(0)
    layer = ah.CoRNN(input_size=1, hidden_size=16, dt=0.1)
    signal = torch.sin(torch.linspace(0, 20, 500)).reshape(500, 1, 1)

    whole, _ = layer(signal)

    state = None
    for x_t in signal:  # as a sensor would deliver it
        y_t, state = layer.step(x_t, state)

    print("largest difference:", (y_t - whole[-1]).abs().max().item())


if __name__ == "__main__":
    main()
