"""Plain graph networks with the same encoder and decoder: baselines of GraphCON and G²."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from anharmonic import _checks
from anharmonic.nn.graph.arguments import activation_function, check_input
from anharmonic.nn.graph.convolutions import library
from anharmonic.nn.graph.convolve import convolve
from anharmonic.nn.graph.encoder_decoder import GraphNetwork


class PlainGNN(GraphNetwork):
    r"""A stack of convolutions, with residual terms, norms or jumping knowledge as options.

    .. math::
        X^n = \sigma(F_n(X^{n-1}))

    With ``residual="plain"``, a norm and dropout this is the tuned classic of Luo et al.,

    .. math::
        X^n = \text{dropout}(\sigma(\text{norm}(F_n(X^{n-1}) + R_n X^{n-1} + r_n)))

    The convolution "MLP" ignores neighbours.

    Args:
        input_size: Features per node F >= 1.
        output_size: Outputs O >= 1: classes, or target values.
        num_layers: Number of layers, L >= 1.
        conv: Name of the convolution; see ``anharmonic.nn.graph.convolutions.CONVS``.
        heads: Number of averaged attention heads.
        shared: Whether all layers use the same convolution.
        activation: σ by name.
        dropout: Dropout in [0, 1) after every layer.
        norm: "layer", "batch" or "pair" (PairNorm) for a norm before every σ; None for no norm.
        residual: Residual terms of the convolutions: "plain" as above, "v1", "v2"; None for no
            residual. See ``anharmonic.nn.graph.couplings.ResidualCoupling``.
        jump: How the decoder combines all layers: "cat" or "max" (JKNet); None uses the last layer
            only.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.
        hidden_size: Width of the node features, m >= 1.
        level: Whether to predict per "node" or per "graph".
        pool: How to pool the predictions of a graph's nodes: "sum", "mean" or "max".
        scale_rows: Whether to scale each node's features to a root mean square of 1. Long and short
            texts, or counts and shares, then weigh the same. Rows of zeros stay zero.
        input_dropout: Dropout in [0, 1) on the input features.
        output_dropout: Dropout in [0, 1) before the decoder.
        encoder_activation: Name of the activation after the encoder.
        output_activation: Name of the activation after the decoder.

    Shape:
        x [N, F]; result [N, O], or [B, O] for level "graph".

    Raises:
        ValueError: If a name is unknown or an argument out of range.
        ImportError: If PyTorch Geometric is missing.

    Example:
        >>> model = PlainGNN(5, 3, hidden_size=8, conv="MLP")
        >>> model(torch.zeros(4, 5), torch.zeros(2, 0).long()).shape
        torch.Size([4, 3])

    References:
        Zhao and Akoglu, PairNorm, ICLR 2020; Xu et al., Jumping Knowledge Networks, ICML 2018;
        Luo, Shi and Wu, Classic GNNs are Strong Baselines, NeurIPS 2024.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        num_layers: int = 2,
        conv: str = "GCN",
        heads: int = 4,
        shared: bool = False,
        activation: str = "relu",
        dropout: float = 0.0,
        norm: str | None = None,
        residual: str | None = None,
        jump: str | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__(input_size, output_size, num_layers=num_layers, **options)
        convs = self._make_convs(conv, heads, shared, residual)
        self.activation = activation
        self._sigma = activation_function("activation", activation)
        self.dropout = _checks.probability("dropout", dropout)
        norms = self._make_norms(norm, "pair")
        self.jump = jump if jump is None else _checks.choice("jump", jump, ("cat", "max"))
        self.convs = nn.ModuleList([convs] if isinstance(convs, nn.Module) else convs)
        self.norms = None if norms is None else nn.ModuleList(norms)
        self.pair_norm = library().PairNorm() if norm == "pair" else None
        self._make_ends(device, dtype)

    def _decoder_width(self) -> int:
        return self.hidden_size * (self.num_layers if self.jump == "cat" else 1)

    def _block(self, x: Tensor, graph: Any, membership: Tensor | None) -> Tensor:
        check_input(x, graph)
        layers = []
        for n in range(self.num_layers):
            x = convolve(self.convs[0 if self.shared else n], x, graph)
            if self.norms is not None:
                x = self.norms[n](x)
            if self.pair_norm is not None:
                x = self.pair_norm(x, membership)
            x = functional.dropout(self._sigma(x), self.dropout, self.training)
            layers.append(x)
        if self.jump == "cat":
            return torch.cat(layers, dim=1)
        return torch.stack(layers).amax(0) if self.jump == "max" else x
