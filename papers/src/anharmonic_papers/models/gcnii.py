"""GCN with initial residual and identity mapping."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from anharmonic import _checks
from anharmonic.nn import GraphNetwork, check_input, convolve_with_start, library


class GCNII(GraphNetwork):
    r"""GCN with initial residual and identity mapping.

    .. math::
        X^n = \sigma\big(((1-\alpha) \hat A X^{n-1} + \alpha X^0)((1-\beta_n) I + \beta_n W_n)\big),
        \quad \beta_n = \log(\theta / n + 1)

    Args:
        input_size: Features per node F >= 1.
        output_size: Outputs O >= 1: classes, or target values.
        alpha: Share of X^0, in [0, 1].
        theta: Strength of the maps W, > 0.
        dropout: Dropout in [0, 1) before every layer.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.
        hidden_size: Width m >= 1.
        num_layers: Layers L >= 1.
        level: Whether to predict per "node" or per "graph".
        pool: How to pool over a graph's nodes: "sum", "mean" or "max".
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
        >>> model = GCNII(5, 3, hidden_size=8)
        >>> model(torch.zeros(4, 5), torch.zeros(2, 0).long()).shape
        torch.Size([4, 3])

    References:
        Chen, Wei, Huang, Ding and Li, Simple and Deep Graph Convolutional Networks, ICML 2020.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        alpha: float = 0.1,
        theta: float = 0.5,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__(input_size, output_size, **options)
        self.alpha = _checks.number("alpha", alpha, low=0.0, high=1.0)
        self.theta = _checks.number("theta", theta, low=0.0, low_open=True)
        self.dropout = _checks.number("dropout", dropout, low=0.0, high=1.0, high_open=True)
        self.convs = nn.ModuleList(
            library().GCN2Conv(self.hidden_size, self.alpha, self.theta, layer=n)
            for n in range(1, self.num_layers + 1)
        )
        self._make_ends(device, dtype)

    def _block(self, x: Tensor, graph: Any, membership: Tensor | None) -> Tensor:
        check_input(x, graph)
        start = x
        for conv in self.convs:
            x = functional.dropout(x, self.dropout, self.training)
            x = convolve_with_start(conv, x, start, graph).relu()
        return x
