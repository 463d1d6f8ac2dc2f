"""GraphCON by name, between an encoder and a decoder."""

from __future__ import annotations

from typing import Any

import torch

from anharmonic.nn.graph.encoder_decoder import GraphNetwork
from anharmonic.nn.graph.graphcon import GraphCON


class GraphCONNetwork(GraphNetwork):
    """GraphCON between an encoder and a decoder, with a convolution by name.

    Args:
        input_size: Features per node F >= 1.
        output_size: Outputs O >= 1: classes, or target values.
        conv: Name of the convolution; see ``anharmonic.nn.graph.convolutions.CONVS``.
        heads: Number of averaged attention heads.
        shared: Whether all layers use the same convolution.
        dt: Step size, > 0.
        activation: Name of σ; ``group_mean`` uses elu instead.
        norm: "layer" or "batch" for a norm of F(X) in every layer, before σ; None for no norm.
        residual: The published code's residual terms: "v1", "v2", "plain"; None for no residual.
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
        frequency: γ >= 0.
        damping: α >= 0.
        initial_velocity: "features" (Y^0 = X^0), "zero" or "rest"; see ``GraphCON``.
        dropout: Dropout in [0, 1) on both states before the first and after every layer.
        trainable_frequency: Whether γ is learned.
        trainable_damping: Whether α is learned.
        checkpoint: Whether to save memory by recomputation; see the layer.

    Shape:
        x [N, F]; result [N, O], or [B, O] for level "graph".

    Raises:
        ValueError: If a name is unknown or an argument out of range.
        ImportError: If PyTorch Geometric is missing.

    Example:
        >>> model = GraphCONNetwork(5, 3, hidden_size=8, conv="Tran")
        >>> model(torch.zeros(4, 5), torch.zeros(2, 0).long()).shape
        torch.Size([4, 3])
    """

    block_type = GraphCON
    block_options = (
        "frequency", "damping", "initial_velocity", "dropout", "trainable_frequency",
        "trainable_damping", "checkpoint",
    )  # fmt: skip

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        conv: str = "GCN",
        heads: int = 4,
        shared: bool = True,
        dt: float = 1.0,
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
        convs = self._make_convs(conv, heads, shared, residual, group_mean)
        sigma = "identity" if group_mean else activation
        norms = self._make_norms(norm)
        self._make_block(convs, block_options, norm=norms, dt=dt, activation=sigma)
        self.activation = activation
        self._make_ends(device, dtype)
