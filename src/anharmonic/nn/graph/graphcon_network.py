"""GraphCON by name, between an encoder and a decoder."""

from __future__ import annotations

import torch

from anharmonic.nn.graph.encoder_decoder import GraphNetwork
from anharmonic.nn.graph.graphcon import GraphCON


class GraphCONNetwork(GraphNetwork):
    """GraphCON between an encoder and a decoder, with a convolution by name.

    Args:
        input_size: Features per node F >= 1.
        output_size: Outputs O >= 1: classes, or target values.
        hidden_size: Width m >= 1.
        num_layers: Layers L >= 1.
        conv: The convolution's name, see ``anharmonic.nn.graph.convolutions.CONVS``.
        heads: Attention heads, averaged.
        shared: Whether all layers share one convolution.
        dt: Step size, > 0.
        frequency: γ >= 0.
        damping: α >= 0.
        activation: σ by name; ``group_mean`` has elu in its place.
        dropout: Dropout in [0, 1) on both states before the first and after every layer.
        residual: The published code's residual terms: "v1", "v2", "plain"; None for none.
        group_mean: The published code's mean over neighbouring channels (GAT).
        trainable_frequency: Whether γ is learned.
        trainable_damping: Whether α is learned.
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
        >>> model = GraphCONNetwork(5, 3, hidden_size=8, conv="Tran")
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
        dt: float = 1.0,
        frequency: float = 1.0,
        damping: float = 1.0,
        activation: str = "relu",
        dropout: float = 0.0,
        residual: str | None = None,
        group_mean: bool = False,
        trainable_frequency: bool = False,
        trainable_damping: bool = False,
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
        made = self._convs(conv, heads, shared, residual, group_mean)
        self.residual, self.group_mean = residual, group_mean
        self.block = GraphCON(
            made, num_layers, dt, frequency, damping,
            activation="identity" if group_mean else activation, dropout=dropout,
            trainable_frequency=trainable_frequency, trainable_damping=trainable_damping,
            checkpoint=checkpoint,
        )  # fmt: skip
        self.dt, self.frequency, self.damping = self.block.dt, frequency, damping
        self.activation, self.dropout = activation, dropout
        self.trainable_frequency, self.trainable_damping = trainable_frequency, trainable_damping
        self.checkpoint = checkpoint
        self._finish(dtype, device)
