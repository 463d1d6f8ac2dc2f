"""Gradient Gating by name, between an encoder and a decoder."""

from __future__ import annotations

import torch

from anharmonic import _checks
from anharmonic.nn.graph.encoder_decoder import GraphNetwork
from anharmonic.nn.graph.gradient_gating import GradientGating


class GradientGatingNetwork(GraphNetwork):
    """Gradient gating between an encoder and a decoder, with a convolution by name.

    Args:
        input_size: Features per node F >= 1.
        output_size: Outputs O >= 1: classes, or target values.
        hidden_size: Width m >= 1.
        num_layers: Layers L >= 1.
        conv: The convolution's name, see ``anharmonic.nn.graph.convolutions.CONVS``.
        heads: Attention heads, averaged.
        shared: Whether all layers share one convolution.
        p: Exponent of the gate, > 0.
        separate_gate: Whether the gate has a convolution of its own, of the same kind.
        aggr: "sum", "mean" or "max" in the gate.
        neighbours: "in" or "out" (as the published code).
        single_rate: Whether a node has one rate for all channels.
        rate_exponent: a >= 0, see ``GradientGating``.
        gate_scale: Factor > 0 of the gate's features, see ``GradientGating``.
        activation: σ and σ̂ by name; ``group_mean`` has elu in their place.
        group_mean: The published code's mean over neighbouring channels (GAT).
        level: One prediction per "node" or per "graph".
        pool: "sum", "mean" or "max" over a graph's nodes, of their predictions.
        scale_rows: Whether the features of every node are scaled to a root mean square of 1, so
            that long and short texts, or counts and shares, weigh alike; rows of zeros stay.
        input_dropout: Dropout in [0, 1) on the input features.
        output_dropout: Dropout in [0, 1) before the decoder.
        encoder_activation: After the encoder, by name.
        output_activation: After the decoder, by name.
        checkpoint: Whether memory grows with sqrt(L) only.
        device: Where the parameters live.
        dtype: Floating-point type of the parameters.

    Shape:
        x [N, F]; result [N, O], or [B, O] for level "graph".

    Raises:
        ValueError: If a name is unknown or an argument out of range.
        ImportError: If PyTorch Geometric is missing.

    Example:
        >>> model = GradientGatingNetwork(5, 3, hidden_size=8, conv="Tran")
        >>> model(torch.zeros(4, 5), torch.zeros(2, 0).long()).shape
        torch.Size([4, 3])
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        hidden_size: int = 64,
        num_layers: int = 8,
        conv: str = "GCN",
        heads: int = 4,
        shared: bool = True,
        p: float = 2.0,
        separate_gate: bool = False,
        aggr: str = "sum",
        neighbours: str = "in",
        single_rate: bool = False,
        rate_exponent: float = 1.0,
        gate_scale: float = 1.0,
        activation: str = "relu",
        group_mean: bool = False,
        level: str = "node",
        pool: str = "sum",
        scale_rows: bool = False,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        encoder_activation: str = "relu",
        output_activation: str = "identity",
        checkpoint: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, output_size, hidden_size, num_layers, level, pool, input_dropout,
            output_dropout, encoder_activation, output_activation, scale_rows,
        )  # fmt: skip
        made = self._convs(conv, heads, shared, None, group_mean)
        self.separate_gate = _checks.boolean("separate_gate", separate_gate)
        gate = self._convs(conv, heads, shared, None, group_mean) if separate_gate else None
        self.group_mean = group_mean
        sigma = "identity" if group_mean else activation
        self.block = GradientGating(
            made, num_layers, p, gate, aggr,
            neighbours=neighbours, single_rate=single_rate, rate_exponent=rate_exponent,
            gate_scale=gate_scale, activation=sigma, gate_activation=sigma, checkpoint=checkpoint,
        )  # fmt: skip
        self.p, self.aggr, self.neighbours = self.block.p, aggr, neighbours
        self.single_rate, self.rate_exponent = single_rate, self.block.rate_exponent
        self.gate_scale = self.block.gate_scale
        self.activation, self.checkpoint = activation, checkpoint
        self._finish(dtype, device)
