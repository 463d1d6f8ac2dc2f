"""Runs that several tables share."""

from __future__ import annotations

from typing import Any

from anharmonic.train import Run

PERMUTATION_NOTE = (
    "All models read the pixels in the order of this document's published code; the codes of the "
    "documents use different ones."
)
NOISE_NOTE = (
    "The noise is standard normal and shared by all images, as in the published code; the "
    "documents say uniform."
)
READOUT_NOTE = (
    "Readouts start as PyTorch's linear layers do; those of the published code start with Kaiming "
    "normal weights{}."
)
AFFINE_NOTE = (
    "The published code draws the initial weights as for three separate affine maps of input, "
    "position and velocity; ours as for one of all three, as in its other tasks."
)
LAST_EPOCH_NOTE = (
    "coRNN's published code tests the weights of the last epoch; ours are those of the best "
    "validation epoch, as the documents say."
)

STEPS = {"smnist": 784, "psmnist": 784, "noise-padded-cifar10": 1000}
"""Length of the image tasks' sequences."""

TASK_OPTIONS: dict[tuple[str, str], dict[str, Any]] = {
    ("psmnist", "cornn"): {"permutation": "cornn"},
    ("noise-padded-cifar10", "cornn"): {"valid_size": 3000},
}
"""By task and document: where a document's published code differs from the task's defaults."""


def image_run(
    task: str,
    document: str,
    model: str,
    lr: float,
    batch_size: int,
    *,
    epochs: int = 120,
    lr_drop_epoch: int = 100,
    clip_norm: float | None = None,
    **options: Any,
) -> Run:
    """A run on an image task; 100 epochs and 20 at a tenth of the rate unless said otherwise.

    Args:
        task: The task.
        document: Whose split and permutation: "cornn", "unicornn" or "lem".
        model: The model.
        lr: Learning rate.
        batch_size: Sequences per step.
        epochs: Epochs in all.
        lr_drop_epoch: Epochs before the drop.
        clip_norm: Largest norm of the gradient.
        **options: The model's options.
    """
    return Run(
        task=task,
        model=model,
        task_options=TASK_OPTIONS.get((task, document), {}),
        model_options=options,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        lr_drop_epoch=lr_drop_epoch,
        clip_norm=clip_norm,
    )


def baseline(task: str, document: str, model: str, hidden_size: int, **options: Any) -> Run:
    """A model of others on an image task; no document prints its settings but the size: ours.

    Args:
        task: The task.
        document: As in ``image_run``.
        model: The model.
        hidden_size: Units.
        **options: The model's other options.
    """
    options = {"hidden_size": hidden_size, **for_length(model, STEPS[task]), **options}
    return image_run(task, document, model, 1.0e-3, 128, clip_norm=1.0, **options)


def adding_baseline(model: str, length: int, epochs: int) -> Run:
    """A model of others with 128 units on the adding problem; all other settings are ours.

    Args:
        model: The model.
        length: Length T of the sequences.
        epochs: Hundreds of steps.
    """
    options = {"hidden_size": 128, **for_length(model, length)}
    return adding(model, length, epochs, 1.0e-3, 1.0, **options)


def for_length(model: str, length: int) -> dict[str, Any]:
    """What a model of others is told of the length of its sequences; ours.

    Args:
        model: The model.
        length: Steps of a sequence.
    """
    told: dict[str, dict[str, Any]] = {
        "ChronoLSTM": {"chrono_length": length},
        "IndRNN": {"longest_dependency": length},
        "FastRNN": {"update_weight": 1 / length, "carry_weight": 1 - 1 / length},
        "AntisymmetricRNN": {"dt": 0.03, "diffusion": 0.01},
        "GatedAntisymmetricRNN": {"dt": 0.03, "diffusion": 0.01},
        "LipschitzRNN": {"dt": 0.03, "diffusion": 0.001},
    }
    return told.get(model, {})


def cornn_mnist(task: str, document: str, hidden_size: int) -> Run:
    """The documents' coRNN on the pixels of MNIST.

    Args:
        task: "smnist" or "psmnist".
        document: As in ``image_run``.
        hidden_size: 128 or 256.
    """
    lr, dt, gamma, epsilon = {
        ("smnist", 128): (3.5e-3, 5.3e-2, 1.7, 4.0),
        ("smnist", 256): (2.1e-3, 4.2e-2, 2.7, 4.7),
        ("psmnist", 128): (3.7e-3, 8.3e-2, 0.13, 4.1),
        ("psmnist", 256): (5.4e-3, 7.6e-2, 0.4, 8.0),
    }[task, hidden_size]
    options: dict[str, Any] = {"dt": dt, "frequency": gamma, "damping": epsilon}
    return image_run(task, document, "CoRNN", lr, 120, hidden_size=hidden_size, **options)


def cornn_ncifar(document: str) -> Run:
    """The documents' coRNN on noise-padded CIFAR-10.

    Args:
        document: As in ``image_run``.
    """
    options: dict[str, Any] = {"dt": 3.4e-2, "frequency": 1.3, "damping": 12.7}
    task = "noise-padded-cifar10"
    return image_run(task, document, "CoRNN", 7.5e-3, 100, hidden_size=128, **options)


def adding(
    model: str,
    length: int,
    epochs: int,
    lr: float,
    clip_norm: float | None = None,
    batch_size: int = 50,
    **options: Any,
) -> Run:
    """A run on the adding problem; an epoch is 100 steps.

    Args:
        model: The model.
        length: Length T of the sequences.
        epochs: Hundreds of steps.
        lr: Learning rate.
        clip_norm: Largest norm of the gradient.
        batch_size: Sequences per step.
        **options: The model's options.
    """
    return Run(
        task="adding",
        model=model,
        task_options={"length": length},
        model_options=options,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        clip_norm=clip_norm,
    )


def cornn_adding(length: int, epochs: int) -> Run:
    """The documents' coRNN on the adding problem, tuned at T = 5000.

    Args:
        length: Length T of the sequences.
        epochs: Hundreds of steps.
    """
    options: dict[str, Any] = {"dt": 1.6e-2, "frequency": 94.5, "damping": 9.5}
    return adding("CoRNN", length, epochs, 2.0e-2, hidden_size=128, **options)


def lorenz96(model: str, forcing: float, lr: float = 1.0e-2, **options: Any) -> Run:
    """A run on Lorenz 96; only the models' sizes are printed, all else is ours.

    Args:
        model: The model.
        forcing: F.
        lr: Learning rate.
        **options: The model's options.
    """
    return Run(
        task="lorenz96",
        model=model,
        task_options={"forcing": forcing},
        model_options=options,
        epochs=250,
        batch_size=32,
        lr=lr,
    )


def lorenz96_baseline(model: str, forcing: float) -> Run:
    """The two models of Lorenz 96 that two tables show.

    Args:
        model: "LSTM" or "CoRNN".
        forcing: F.
    """
    if model == "LSTM":
        return lorenz96("LSTM", forcing, hidden_size=44)
    options = {"dt": 0.1, "frequency": 1.0, "damping": 1.0}
    return lorenz96("CoRNN", forcing, hidden_size=64, **options)
