"""From a layer's output to a prediction: read out the last step, the mean or every step."""

from __future__ import annotations

import inspect
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from anharmonic import _checks
from anharmonic.nn.sequence.registry import canonical_name, layer_class
from anharmonic.nn.store import Stored

READOUTS = ("last", "mean", "all")
# Arguments of a layer that the model sets itself, or takes under the same name.
_SET_HERE = {"input_size", "hidden_size", "batch_first", "device", "dtype"}


class SequenceModel(Stored):
    r"""A sequence layer by name with an affine readout, for classification or regression.

    .. math::
        \hat o = Q\, r + q, \quad r = y_N \text{ ("last")}, \;
        \tfrac{1}{N} \sum_n y_n \text{ ("mean")}, \; y_n \text{ at every step ("all")}

    N is each sequence's own length. Classification takes one output per class (logits). With
    ``patch`` p the layer sees p successive steps as one of p times the features, so that a long
    signal is shorter for it: T / p steps, rounded up, the last filled with zeros.

    Args:
        layer: Name of the layer, one of ``anharmonic.list_models()``.
        input_size: Features per step, F >= 1.
        output_size: Outputs O >= 1: classes, or target values.
        hidden_size: Neurons per layer, H >= 1.
        readout: "last" valid step, "mean" over valid steps, or "all" steps.
        patch: Successive steps that the layer takes as one, >= 1; 1 with readout "all".
        device: Where the parameters live.
        dtype: Floating-point type of the parameters.
        **layer_options: Further arguments of the layer (``num_layers``, ``dt``, ...).

    Shape:
        x [B, T, F]; lengths [B]; elapsed [B, T]; prediction [B, O], or [B, T, O] for readout "all".

    Raises:
        ValueError: If a name is unknown or an argument out of range.
        TypeError: If an argument is of the wrong kind.

    Note:
        For a bidirectional layer "last" joins the two final states, so that each direction has
        seen the whole sequence. The readout starts as ``torch.nn.Linear``.

    Example:
        >>> import torch
        >>> model = SequenceModel("LEM", 6, 5, hidden_size=32, dt=0.5)
        >>> model(torch.zeros(8, 100, 6), lengths=torch.full((8,), 90)).shape
        torch.Size([8, 5])

    References:
        The layer's own, see ``anharmonic.cite(model)``.
    """

    def __init__(
        self,
        layer: str,
        input_size: int,
        output_size: int,
        *,
        hidden_size: int,
        readout: str = "last",
        patch: int = 1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **layer_options: Any,
    ) -> None:
        super().__init__()
        self.name = canonical_name(layer)
        known = inspect.signature(layer_class(self.name)).parameters
        for option in layer_options:
            _checks.choice(f"option of {self.name}", option, set(known) - _SET_HERE)
        self.output_size = _checks.positive_int("output_size", output_size)
        self.readout = _checks.choice("readout", readout, READOUTS)
        self.patch = _checks.positive_int("patch", patch)
        advice = "leave patch out, or take another readout"
        fits = patch == 1 or readout != "all"
        _checks.require(fits, "patch", patch, '1 with readout "all"', advice)
        self.layer_options = layer_options
        self.layer: Any = layer_class(self.name)(
            _checks.positive_int("input_size", input_size) * patch,
            hidden_size,
            **layer_options,
            batch_first=True,
            device=device,
            dtype=dtype,
        )
        self.input_size = input_size
        self.hidden_size = hidden_size
        wide = hidden_size * (2 if self.layer.bidirectional else 1)
        self.linear = nn.Linear(wide, output_size, device=device, dtype=dtype)

    def config(self) -> dict[str, Any]:
        """The constructor's arguments (without device and dtype) by name."""
        return {
            "layer": self.name,
            "input_size": self.input_size,
            "output_size": self.output_size,
            "hidden_size": self.hidden_size,
            "readout": self.readout,
            **({} if self.patch == 1 else {"patch": self.patch}),
            **self.layer_options,
        }

    def forward(
        self, x: Tensor, lengths: Tensor | None = None, elapsed: Tensor | None = None
    ) -> Tensor:
        """Predicts from whole sequences.

        Args:
            x: The sequences, padded at the end.
            lengths: Valid steps of each (int64, 1 to T), or None if all are T long. With readout
                "all", predictions past the end are zero.
            elapsed: Time since the previous sample in nominal steps, for layers with a step size;
                past the end of a sequence it does not count. None is 1 everywhere.

        Raises:
            ValueError: If shapes do not fit, a length is out of range, or the layer has no step
                size that ``elapsed`` could multiply.
            TypeError: If x has another dtype than the model.
        """
        if not isinstance(x, Tensor) or x.dim() != 3:
            raise ValueError(
                _checks.message(
                    f"x must be a tensor [B, T, {self.input_size}]",
                    _checks.described(x),
                    "pad a packed batch and pass its lengths"
                    if isinstance(x, PackedSequence)
                    else "put a single sequence into a batch with x[None]",
                )
            )
        if elapsed is not None:
            check_elapsed_shape(elapsed, x)
        if lengths is not None:
            check_lengths(lengths, x)
        if self.patch > 1:
            x, lengths, elapsed = self.patches(x, lengths, elapsed)
        wanted = "last" if self.readout == "last" else "all"
        if lengths is None:
            features, _ = self.layer(x, elapsed=elapsed, output=wanted)
        else:
            features, _ = self.layer(
                _packed(x, lengths),
                elapsed=None if elapsed is None else _packed(elapsed, lengths),
                output=wanted,
            )
        if self.readout == "mean":
            features = _mean(features)
        if not isinstance(features, PackedSequence):
            return cast("Tensor", self.linear(features))
        # Read out first: what torch pads has O numbers a step then, not H.
        prediction = features._replace(data=self.linear(features.data))
        return pad_packed_sequence(prediction, batch_first=True, total_length=x.shape[1])[0]

    def patches(
        self, x: Tensor, lengths: Tensor | None = None, elapsed: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """What the layer sees: every ``patch`` steps as one.

        Args:
            x: As of ``forward``.
            lengths: As of ``forward``.
            elapsed: As of ``forward``; of the steps of a patch their mean counts.

        Shape:
            x [B, T / patch, patch * F], elapsed [B, T / patch], T / patch rounded up.
        """
        p, (B, T, F) = self.patch, x.shape
        expected = f"a tensor [B, T, {self.input_size}]"
        advice = "give the features that the model was made for"
        _checks.require(F == self.input_size, "x", x, expected, advice)
        if lengths is not None:
            inside = torch.arange(T, device=x.device) < lengths.to(x.device)[:, None]
            x = torch.where(inside[:, :, None], x, 0.0)  # padding may hold anything
            lengths = -(-lengths // p)
        missing = -T % p
        x = functional.pad(x, (0, 0, 0, missing)).reshape(B, -1, p * F)
        if elapsed is not None:
            elapsed = functional.pad(elapsed[:, None], (0, missing), mode="replicate")[:, 0]
            elapsed = elapsed.reshape(B, -1, p).mean(dim=2)
        return x, lengths, elapsed


def _packed(values: Tensor, lengths: Tensor) -> PackedSequence:
    """Packs a padded batch [B, T, ...]."""
    return pack_padded_sequence(values, lengths.cpu(), batch_first=True, enforce_sorted=False)


def _mean(features: Tensor | PackedSequence) -> Tensor:
    """Mean over valid steps: [B, H], of [B, T, H] or of packed rows, which are not padded first."""
    if isinstance(features, Tensor):
        return features.mean(dim=1)
    rows, per_step, _, order = features
    first_rows = torch.repeat_interleave(per_step.cumsum(0) - per_step, per_step)
    sequence = (torch.arange(len(rows)) - first_rows).to(rows.device)
    sums = rows.new_zeros(int(per_step[0]), rows.shape[1]).index_add(0, sequence, rows)
    means = sums / torch.bincount(sequence).to(rows)[:, None]
    return means if order is None else means[order]


def check_elapsed_shape(elapsed: Tensor, x: Tensor) -> None:
    """Checks the shape of elapsed [B, T] against that of x [B, T, F].

    Raises:
        ValueError: If it is no tensor of that shape.

    Example:
        >>> check_elapsed_shape(torch.ones(2, 3), torch.zeros(2, 3, 1))
    """
    if not isinstance(elapsed, Tensor) or elapsed.shape != x.shape[:-1]:
        raise ValueError(
            _checks.message(
                f"elapsed must be a tensor [B, T] = {list(x.shape[:-1])}",
                _checks.described(elapsed),
                "give one time per sample, padding included",
            )
        )


def check_lengths(lengths: Tensor, x: Tensor) -> None:
    """Checks the lengths of a padded batch [B, T, F].

    Raises:
        TypeError: If they are not int64.
        ValueError: If there is not one per sequence or one is outside [1, T].

    Example:
        >>> check_lengths(torch.tensor([2, 1]), torch.zeros(2, 2, 1))
    """
    _checks.require(
        isinstance(lengths, Tensor) and lengths.dtype == torch.int64, "lengths", lengths,
        "a torch.int64 tensor", "make it with torch.tensor([...])", TypeError,
    )  # fmt: skip
    if x.dim() != 3 or tuple(lengths.shape) != (x.shape[0],):
        raise ValueError(
            _checks.message(
                "lengths must have shape [B] for x [B, T, F]",
                f"lengths {list(lengths.shape)} and x {list(x.shape)}",
                "give one length per sequence",
            )
        )
    if lengths.numel() and not (1 <= int(lengths.min()) and int(lengths.max()) <= x.shape[1]):
        raise ValueError(
            _checks.message(
                f"lengths must lie in [1, T={x.shape[1]}]",
                f"values from {int(lengths.min())} to {int(lengths.max())}",
                "count the valid steps of each sequence",
            )
        )
