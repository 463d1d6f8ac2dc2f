"""Gradient Gating by name, between an encoder and a decoder."""

from __future__ import annotations

from typing import Any

import torch

from anharmonic import _checks
from anharmonic.nn.graph.encoder_decoder import GraphNetwork
from anharmonic.nn.graph.gradient_gating import GradientGating


class GradientGatingNetwork(GraphNetwork):
    """Gradient gating between an encoder and a decoder, with a convolution by name.

    Args:
        input_size: Features per node F >= 1.
        output_size: Outputs O >= 1: classes, or target values.
        conv: Name of the convolution; see ``anharmonic.nn.graph.convolutions.CONVS``.
        heads: Number of averaged attention heads.
        shared: Whether all layers use the same convolution.
        separate_gate: Whether the gate has its own convolution, of the same kind.
        activation: Name of σ and σ̂; ``group_mean`` uses elu instead.
        norm: "layer" or "batch" for a norm of F(X) and F̂(X) in every layer, before the activation;
            None for no norm.
        residual: Residual terms of the convolutions: "v1", "v2", "plain"; None for no residual. See
            ``anharmonic.nn.graph.couplings.ResidualCoupling``.
        group_mean: Whether to use the published code's mean over adjacent channels (GAT).
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.
        hidden_size: Width of the node features, m >= 1.
        num_layers: Number of layers, L >= 1.
        level: Whether to predict per "node" or per "graph".
        pool: How to pool the predictions of a graph's nodes: "sum", "mean" or "max".
        scale_rows: Whether to scale each node's features to a root mean square of 1. Long and short
            texts, or counts and shares, then weigh the same. Rows of zeros stay zero.
        input_dropout: Dropout in [0, 1) on the input features.
        output_dropout: Dropout in [0, 1) before the decoder.
        encoder_activation: Name of the activation after the encoder.
        output_activation: Name of the activation after the decoder.
        p: Exponent of the gate, > 0.
        aggr: "sum", "mean" or "max" in the gate.
        neighbours: "in" or "out" (as in the published code).
        single_rate: Whether a node has one rate for all channels.
        rate_exponent: a >= 0, see ``GradientGating``.
        gate_scale: Factor > 0 of the gate's features; see ``GradientGating``.
        dropout: Dropout in [0, 1) on σ(F(X)) of every layer.
        checkpoint: Whether to save memory by recomputation; see the layer.

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

    block_type = GradientGating
    block_options = (
        "p", "aggr", "neighbours", "single_rate", "rate_exponent", "gate_scale", "dropout",
        "checkpoint",
    )  # fmt: skip

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        conv: str = "GCN",
        heads: int = 4,
        shared: bool = True,
        separate_gate: bool = False,
        activation: str = "relu",
        norm: str | None = None,
        residual: str | None = None,
        group_mean: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        block_options = {name: options.pop(name) for name in self.block_options if name in options}
        super().__init__(input_size, output_size, **options)
        self.separate_gate = _checks.boolean("separate_gate", separate_gate)
        self.activation = activation
        choice = (conv, heads, shared, residual, group_mean)
        convs = self._make_convs(*choice)
        gate = self._make_convs(*choice) if separate_gate else None
        sigma = "identity" if group_mean else activation
        self._make_block(
            convs,
            block_options,
            gate_conv=gate,
            norm=self._make_norms(norm),
            activation=sigma,
            gate_activation=sigma,
        )
        self._make_ends(device, dtype)
