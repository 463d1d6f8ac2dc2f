"""GCN and GAT as their authors train them, without encoder and decoder: the usual baselines."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from anharmonic import _checks
from anharmonic.nn.graph.arguments import activation_function, check_input
from anharmonic.nn.graph.convolutions import library
from anharmonic.nn.graph.convolve import convolve
from anharmonic.nn.graph.encoder_decoder import GraphNetwork


class GCN(GraphNetwork):
    r"""A graph convolutional network: the first layer reads the features, the last one predicts.

    .. math::
        X^n = \sigma(\hat A\, \text{dropout}(X^{n-1})\, W_n + b_n), \quad
        \hat A = D^{-1/2} (A + I) D^{-1/2}

    The last layer has no activation. ``Run(decay_output=False)`` excludes its weights from weight
    decay, as the authors do.

    Args:
        input_size: Features per node F >= 1.
        output_size: Outputs O >= 1: classes, or target values.
        hidden_size: Width m >= 1 of all layers except the last.
        num_layers: Number of layers, L >= 1.
        dropout: Dropout in [0, 1) on the input of every layer, the features included.
        activation: σ by name.
        level: Whether to predict per "node" or per "graph".
        pool: How to pool over a graph's nodes: "sum", "mean" or "max".
        scale_rows: Whether to scale each node's features to a root mean square of 1.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [N, F]; result [N, O], or [B, O] for level "graph".

    Raises:
        ValueError: If a name is unknown or an argument out of range.
        ImportError: If PyTorch Geometric is missing.

    Example:
        >>> model = GCN(5, 3)
        >>> model(torch.zeros(4, 5), torch.zeros(2, 0).long()).shape
        torch.Size([4, 3])

    References:
        Kipf and Welling, Semi-Supervised Classification with Graph Convolutional Networks,
        ICLR 2017.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        hidden_size: int = 16,
        num_layers: int = 2,
        dropout: float = 0.5,
        activation: str = "relu",
        level: str = "node",
        pool: str = "sum",
        scale_rows: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, output_size, hidden_size=hidden_size, num_layers=num_layers, level=level,
            pool=pool, scale_rows=scale_rows, encoder_activation="identity",
        )  # fmt: skip
        self.dropout = _checks.probability("dropout", dropout)
        self.activation = activation
        self._sigma = activation_function("activation", activation)
        widths = [input_size, *[hidden_size] * (num_layers - 1), output_size]
        self.convs = nn.ModuleList(
            self._layer(*ends, n == num_layers - 1) for n, ends in enumerate(pairwise(widths))
        )
        for part in ("encoder", "decoder"):
            self.add_module(part, nn.Identity())
        self.to(device=device, dtype=dtype)

    def _layer(self, inputs: int, outputs: int, last: bool) -> nn.Module:
        return cast("nn.Module", library().GCNConv(inputs, outputs))

    @property
    def output_layer(self) -> nn.Module:
        """The last layer."""
        return self.convs[-1]

    def _block(self, x: Tensor, graph: Any, membership: Tensor | None) -> Tensor:
        check_input(x, graph)
        for n, conv in enumerate(self.convs):
            x = convolve(conv, functional.dropout(x, self.dropout, self.training), graph)
            x = x if n == self.num_layers - 1 else self._sigma(x)
        return x


class GAT(GCN):
    r"""A graph attention network: concatenated heads, averaged in the last layer.

    .. math::
        X^n = \big\Vert_k\, \sigma(A^{(k)}(X^{n-1})\, \text{dropout}(X^{n-1})\, W_n^{(k)})

    The attention A has its own dropout.

    Args:
        input_size: Features per node F >= 1.
        output_size: Outputs O >= 1: classes, or target values.
        hidden_size: Width m >= 1 of all layers except the last, summed over heads; a multiple of
            ``heads``.
        num_layers: Number of layers, L >= 1.
        heads: Attention heads of all layers except the last.
        output_heads: Attention heads of the last layer.
        dropout: Dropout in [0, 1) on the input of every layer, the features included.
        attention_dropout: Dropout in [0, 1) on the attention.
        activation: σ by name.
        level: Whether to predict per "node" or per "graph".
        pool: How to pool over a graph's nodes: "sum", "mean" or "max".
        scale_rows: Whether to scale each node's features to a root mean square of 1.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [N, F]; result [N, O], or [B, O] for level "graph".

    Raises:
        ValueError: If a name is unknown or an argument out of range.
        ImportError: If PyTorch Geometric is missing.

    Example:
        >>> model = GAT(5, 3)
        >>> model(torch.zeros(4, 5), torch.zeros(2, 0).long()).shape
        torch.Size([4, 3])

    References:
        Veličković et al., Graph Attention Networks, ICLR 2018.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        hidden_size: int = 64,
        num_layers: int = 2,
        heads: int = 8,
        output_heads: int = 1,
        dropout: float = 0.6,
        attention_dropout: float = 0.6,
        activation: str = "elu",
        level: str = "node",
        pool: str = "sum",
        scale_rows: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        # Store the settings that _layer reads first; super().__init__ must come before attributes.
        heads = _checks.positive_int("heads", heads)
        _checks.require(
            _checks.positive_int("hidden_size", hidden_size) % heads == 0,
            "hidden_size", hidden_size, f"a multiple of heads={heads}", "change one of them",
        )  # fmt: skip
        rate = _checks.probability("attention_dropout", attention_dropout)
        output_heads = _checks.positive_int("output_heads", output_heads)
        self._attention = heads, output_heads, rate
        super().__init__(
            input_size, output_size, hidden_size=hidden_size, num_layers=num_layers,
            dropout=dropout, activation=activation, level=level, pool=pool, scale_rows=scale_rows,
            device=device, dtype=dtype,
        )  # fmt: skip
        self.heads, self.output_heads, self.attention_dropout = self._attention

    def _layer(self, inputs: int, outputs: int, last: bool) -> nn.Module:
        heads, output_heads, rate = self._attention
        if last:
            options = {"heads": output_heads, "concat": False}
            return cast("nn.Module", library().GATConv(inputs, outputs, dropout=rate, **options))
        return cast("nn.Module", library().GATConv(inputs, outputs // heads, heads, dropout=rate))
