"""From a layer's output to a prediction: read out the last step, the mean or every step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from anharmonic import _checks
from anharmonic._tensors import check_lengths, sums_of_rows
from anharmonic.nn.embedding import TiedLinear, TokenEmbedding, checked_tokens
from anharmonic.nn.registry import canonical_name, constructor_arguments, model_class
from anharmonic.nn.sequence.layer import SequenceLayer
from anharmonic.nn.store import Stored

READOUTS = ("last", "mean", "all")
# Arguments of a layer that the model sets itself or takes under the same name.
_SET_HERE = {"input_size", "hidden_size", "batch_first", "device", "dtype"}
# Arguments added later and their old behaviour; a config with these values leaves them out.
_ADDED_LATER: dict[str, Any] = {
    "patch": 1,
    "embedding_size": None,
    "embedding_dropout": 0.0,
    "tie_embedding": False,
    "input_dropout": 0.0,
    "output_dropout": 0.0,
}


class SequenceModel(Stored):
    r"""A sequence layer by name with an affine readout, for classification or regression.

    .. math::
        \hat o = Q\, r + q, \quad r = y_N \text{ ("last")}, \;
        \tfrac{1}{N} \sum_n y_n \text{ ("mean")}, \; y_n \text{ at every step ("all")}

    N is the length of each sequence. Classification takes one output per class (logits). ``patch``
    p joins p successive steps into one with p times the features. The layer then takes T / p steps,
    rounded up; the last is padded with zeros.

    With ``embedding_size`` E the model reads text. x then holds token ids below ``input_size``, and
    ``model.embedding`` turns them into vectors. Load pretrained vectors with
    ``model.embedding.load(vectors)``.

    Args:
        layer: Name of the layer, one of ``anharmonic.list_models()``, or your own subclass of
            ``SequenceLayer``. Such a model can only be saved with ``torch.save``.
        input_size: Features per step, F >= 1; with an embedding, the size of the vocabulary.
        output_size: Outputs O >= 1: classes, or target values.
        hidden_size: Neurons per layer, H >= 1.
        readout: "last" valid step, "mean" over valid steps, or "all" steps.
        patch: Successive steps to join into one, >= 1. Must be 1 with readout "all" or an
            embedding.
        embedding_size: Size of a token's vector, E >= 1; None if x holds features.
        embedding_dropout: Probability in [0, 1) of dropping a token of the vocabulary from a batch,
            at all its positions.
        tie_embedding: Whether the readout shares the embedding's weights. Needs ``output_size`` =
            ``input_size`` and vectors as wide as the layer's output.
        input_dropout: Probability in [0, 1) of zeroing an input feature of the layer; one mask per
            sequence.
        output_dropout: The same for the layer's output.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.
        **layer_options: Further arguments of the layer (``num_layers``, ``dt``, ...).

    Shape:
        x [B, T, F], with an embedding [B, T] integers in [0, F); lengths [B]; elapsed [B, T];
        prediction [B, O], or [B, T, O] for readout "all".

    Raises:
        ValueError: If a name is unknown or an argument out of range.
        TypeError: If an argument has the wrong type.

    Note:
        For a bidirectional layer "last" concatenates the two final states, so each direction has
        seen the whole sequence. The readout is initialised as ``torch.nn.Linear``.

    Example:
        >>> import torch
        >>> model = SequenceModel("LEM", 6, 5, hidden_size=32, dt=0.5)
        >>> model(torch.zeros(8, 100, 6), lengths=torch.full((8,), 90)).shape
        torch.Size([8, 5])

        Read a long text in windows. The state carries over; gradients stop at each window:

        >>> text = torch.randint(50, (4, 100))
        >>> model = SequenceModel("LEM", 50, 50, hidden_size=16, readout="all", embedding_size=8)
        >>> state = None
        >>> for window in text.split(25, dim=1):
        ...     scores, state = model(window, state=state, return_state=True)
        ...     state = type(state)(*(part.detach() for part in state))
        >>> scores.shape
        torch.Size([4, 25, 50])

    References:
        Those of the layer; see ``anharmonic.cite(model)``.
    """

    def __init__(
        self,
        layer: str | type[nn.Module],
        input_size: int,
        output_size: int,
        *,
        hidden_size: int,
        readout: str = "last",
        patch: int = 1,
        embedding_size: int | None = None,
        embedding_dropout: float = 0.0,
        tie_embedding: bool = False,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **layer_options: Any,
    ) -> None:
        super().__init__()
        self._own: type[nn.Module] | None = None
        if isinstance(layer, type):
            wanted = "a name, or a class derived from SequenceLayer"
            fits = issubclass(layer, SequenceLayer)
            advice = f"derive it; a layer of this package has a name, such as {layer.__name__!r}"
            _checks.require(fits, "layer", layer, wanted, advice, TypeError)
            self._own, self.name, kind = layer, layer.__name__, layer
        else:
            self.name = canonical_name(layer, "sequence")
            kind = model_class(self.name)
        known = constructor_arguments(kind)
        for option in layer_options:
            _checks.choice(f"option of {self.name}", option, set(known) - _SET_HERE)
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.input_size = _checks.positive_int("input_size", input_size)
        self.output_size = _checks.positive_int("output_size", output_size)
        self.hidden_size = hidden_size
        self.readout = _checks.choice("readout", readout, READOUTS)
        self.patch = _checks.positive_int("patch", patch)
        advice = "leave patch out, or take another readout"
        fits = patch == 1 or readout != "all"
        _checks.require(fits, "patch", patch, '1 with readout "all"', advice)
        self.embedding_size = embedding_size
        self.embedding_dropout = _checks.probability("embedding_dropout", embedding_dropout)
        self.tie_embedding = _checks.boolean("tie_embedding", tie_embedding)
        self.input_dropout = _checks.probability("input_dropout", input_dropout)
        self.output_dropout = _checks.probability("output_dropout", output_dropout)
        self.layer_options = layer_options
        self.layer: Any = kind(
            _checks.positive_int("input_size", embedding_size or input_size) * patch,
            hidden_size,
            **layer_options,
            batch_first=True,
            **{name: value for name, value in factory.items() if name in known},
        ).to(device=device, dtype=dtype)
        wide = hidden_size * (2 if self.layer.bidirectional else 1)
        self.embedding: Any = None
        if embedding_size is not None:
            _checks.require(patch == 1, "patch", patch, "1 with an embedding", "leave patch out")
            self.embedding = TokenEmbedding(
                input_size,
                _checks.positive_int("embedding_size", embedding_size),
                embedding_dropout,
                **factory,
            )
        self.linear: Any
        if tie_embedding:
            self.linear = TiedLinear(self.embedding, wide, output_size, **factory)
        else:
            self.linear = nn.Linear(wide, output_size, **factory)
        _checks.require(
            embedding_size is not None or embedding_dropout == 0, "embedding_dropout",
            self.embedding_dropout, "0.0 without an embedding", "give embedding_size, too",
        )  # fmt: skip

    @property
    def output_layer(self) -> nn.Module:
        """The layer whose outputs are the predictions."""
        layer: nn.Module = self.linear
        return layer

    def config(self) -> dict[str, Any]:
        """The constructor's arguments (without device and dtype) by name."""
        return {
            "layer": self._own or self.name,
            "input_size": self.input_size,
            "output_size": self.output_size,
            "hidden_size": self.hidden_size,
            "readout": self.readout,
            **{n: getattr(self, n) for n, old in _ADDED_LATER.items() if getattr(self, n) != old},
            **self.layer_options,
        }

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        elapsed: Tensor | None = None,
        *,
        state: Any = None,
        return_state: bool = False,
    ) -> Any:
        """Predict from whole sequences, or from the next part of long ones.

        Args:
            x: The sequences, padded at the end.
            lengths: Valid steps of each sequence (int64, 1 to T); None if all have length T. With
                readout "all", predictions past the end are zero.
            elapsed: Time since the previous sample in nominal steps, for layers with a step size.
                Values past the end of a sequence are ignored. None means 1 everywhere.
            state: Initial state of the layer, returned by the call on the previous part; zeros if
                None.
            return_state: Whether to return the layer's final state as well. Detach it for truncated
                backpropagation.

        Returns:
            The prediction; with ``return_state``, the prediction and the state.

        Raises:
            ValueError: If shapes do not fit, a length is out of range, or ``elapsed`` is given to a
                layer without a step size. A state is refused for bidirectional layers, for patches
                and for readout "mean", where parts of a sequence do not add up to the whole.
            TypeError: If x has another dtype than the model, or is not an integer tensor for an
                embedding.
        """
        if self.embedding_size is not None:
            x = self.embedding(checked_tokens(x, self.input_size))
        elif not isinstance(x, Tensor) or x.dim() != 3:
            advice = "put a single sequence into a batch with x[None]"
            if isinstance(x, PackedSequence):
                advice = "pad a packed batch and pass its lengths"
            expected = f"x must be a tensor [B, T, {self.input_size}]"
            raise ValueError(_checks.message(expected, _checks.described(x), advice))
        if state is not None or return_state:
            self._check_can_carry()
        if elapsed is not None:
            _check_elapsed_shape(elapsed, x)
        if lengths is not None:
            check_lengths(lengths, x)
        if self.patch > 1:
            x, lengths, elapsed = self.patches(x, lengths, elapsed)
        x, steps = self._drop(x, self.input_dropout), x.shape[1]
        sequences: Any = x
        gaps: Any = elapsed
        if lengths is not None and len(x):  # an empty batch cannot be packed
            sequences = _packed(x, lengths)
            gaps = None if elapsed is None else _packed(elapsed, lengths)
        wanted = "last" if self.readout == "last" else "all"
        features, state = self.layer(sequences, state, elapsed=gaps, output=wanted)
        prediction = self._read(features, steps)
        return (prediction, state) if return_state else prediction

    def _read(self, features: Any, steps: int) -> Tensor:
        """Return the prediction from the layer's output, padded or packed."""
        if self.readout == "mean":
            features = _mean_of_steps(features)
        if isinstance(features, Tensor):
            return self.linear(self._drop(features, self.output_dropout))  # type: ignore[no-any-return]
        if self.output_dropout > 0:
            padded, lengths = pad_packed_sequence(features, batch_first=True)
            features = _packed(self._drop(padded, self.output_dropout), lengths)
        # Read out before padding: the padded tensor then has O instead of H numbers per step.
        read = features._replace(data=self.linear(features.data))
        return pad_packed_sequence(read, batch_first=True, total_length=steps)[0]

    def _drop(self, x: Tensor, p: float) -> Tensor:
        """Drop features of [B, T, F] or [B, F], the same at all steps of a sequence."""
        if not self.training or p == 0:
            return x
        shape = (len(x), *[1] * (x.dim() - 2), x.shape[-1])
        return x * functional.dropout(x.new_ones(shape), p)

    def _check_can_carry(self) -> None:
        fits = not self.layer.bidirectional and self.patch == 1 and self.readout != "mean"
        came = f"bidirectional={self.layer.bidirectional}, patch={self.patch}, {self.readout!r}"
        expected = 'bidirectional=False, patch=1 and readout "last" or "all"'
        advice = "run whole sequences without a state"
        _checks.require(fits, "a model that carries a state", came, expected, advice)

    def patches(
        self, x: Tensor, lengths: Tensor | None = None, elapsed: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Join every ``patch`` steps into one.

        Args:
            x: As in ``forward``.
            lengths: As in ``forward``.
            elapsed: As in ``forward``; a patch takes the mean over its steps. The last time of a
                sequence fills its last patch.

        Shape:
            x [B, T / patch, patch * F], elapsed [B, T / patch], T / patch rounded up.
        """
        p, (B, T, F) = self.patch, x.shape
        expected = f"a tensor [B, T, {self.input_size}]"
        advice = "give the features that the model was made for"
        _checks.require(F == self.input_size, "x", x, expected, advice)
        if lengths is not None:  # padding may hold anything
            steps, ends = torch.arange(T, device=x.device), lengths.to(x.device)[:, None] - 1
            x = torch.where((steps <= ends)[:, :, None], x, 0.0)
            if elapsed is not None:
                elapsed = elapsed.gather(1, torch.minimum(steps, ends))
            lengths = -(-lengths // p)
        count = (T + p - 1) // p  # ONNX rounds a negative quotient towards 0
        missing = count * p - T
        x = functional.pad(x, (0, 0, 0, missing)).reshape(B, count, p * F)
        if elapsed is not None:
            last = elapsed[:, -1:].expand(-1, missing)
            elapsed = torch.cat([elapsed, last], dim=1).reshape(B, count, p).mean(dim=2)
        return x, lengths, elapsed


# ---- padded batches ------------------------------------------------------------------------------
def _packed(values: Tensor, lengths: Tensor) -> PackedSequence:
    """Pack a padded batch [B, T, ...]."""
    return pack_padded_sequence(values, lengths.cpu(), batch_first=True, enforce_sorted=False)


def _mean_of_steps(features: Tensor | PackedSequence) -> Tensor:
    """Return the mean over valid steps [B, H] of a padded batch [B, T, H] or of packed rows."""
    if isinstance(features, Tensor):
        return features.mean(dim=1)
    rows, per_step, _, order = features
    first_rows = torch.repeat_interleave(per_step.cumsum(0) - per_step, per_step)
    sequence = (torch.arange(len(rows)) - first_rows).to(rows.device)
    sums = sums_of_rows(rows, sequence, int(per_step[0]))
    means = (sums / torch.bincount(sequence).to(sums)[:, None]).to(rows.dtype)
    return means if order is None else means[order]


def _check_elapsed_shape(elapsed: Tensor, x: Tensor) -> None:
    """Check the shape of elapsed [B, T] against that of x [B, T, F]."""
    if not isinstance(elapsed, Tensor) or elapsed.shape != x.shape[:-1]:
        raise ValueError(
            _checks.message(
                f"elapsed must be a tensor [B, T] = {list(x.shape[:-1])}",
                _checks.described(elapsed),
                "give one time per sample, padding included",
            )
        )
