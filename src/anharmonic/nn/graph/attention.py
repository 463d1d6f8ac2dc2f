r"""Attention as a coupling: weighted means over neighbours that do not mix channels."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from anharmonic import _checks
from anharmonic._tensors import sums_of_rows
from anharmonic.ops.graph import Adjacency, check_features, edges_of, refuse_weights


class AttentionCoupling(nn.Module):
    r"""Scaled dot-product attention of GRAND, the coupling "Tran" of GraphCON.

    .. math::
        F(X) = \frac{1}{K} \sum_{k=1}^{K} A^{(k)}(X)\, X, \quad
        A^{(k)}_{ij} = \operatorname{softmax}_{j \in N_i \cup \{i\}}
        \frac{(W_Q X_i)^{(k)} \cdot (W_K X_j)^{(k)}}{\sqrt{d}}

    Rows of A sum to 1, as (7.9) requires. A node's own features count once, with or without a
    self-loop.

    Args:
        channels: Width m of input and output.
        attention_channels: Width of queries and keys, a multiple of ``heads``. Default: m.
        heads: Number of averaged heads, K >= 1; each has d = attention_channels / K channels.

    Shape:
        x [N, m]; result [N, m].

    Raises:
        ValueError: If a size is not positive, heads do not divide attention_channels, or edges have
            weights.

    Example:
        >>> import torch
        >>> AttentionCoupling(4, heads=2)(torch.rand(3, 4), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 4])

    References:
        Chamberlain et al., GRAND: Graph Neural Diffusion, ICML 2021.
    """

    takes_adjacency = True

    def __init__(
        self, channels: int, attention_channels: int | None = None, heads: int = 1
    ) -> None:
        super().__init__()
        channels = _checks.positive_int("channels", channels)
        wide = _checks.positive_int(
            "attention_channels", channels if attention_channels is None else attention_channels
        )
        self.heads = _checks.positive_int("heads", heads)
        _checks.require(
            wide % self.heads == 0, "attention_channels", wide, f"a multiple of heads={heads}",
            "change one of them",
        )  # fmt: skip
        self.query = nn.Linear(channels, wide)
        self.key = nn.Linear(channels, wide)

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        """The attention-weighted mean of a node's neighbours and itself."""
        refuse_weights(edge_index, "leave them out, because attention makes its own")
        if isinstance(edge_index, Adjacency):
            check_features("x", x, edge_index)
            edge_index = edge_index.edge_index
        edges = edges_of(edge_index)
        nodes = torch.arange(x.shape[0], device=x.device)
        source, target = torch.cat([edges, nodes.expand(2, -1)], dim=1)
        score = self._score(x, source, target)
        # Do not count existing self-loops twice.
        double = functional.pad(edges[0] == edges[1], (0, x.shape[0]))
        score = score.masked_fill(double[:, None], -math.inf)
        weight = _softmax(score, target, x.shape[0]).mean(1, keepdim=True)
        messages = weight * x[source]
        return sums_of_rows(messages, target, len(x)).to(messages.dtype)

    def _score(self, x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """Return the scores [E, K] of the edges before the softmax."""
        query = self.query(x).unflatten(1, (self.heads, -1))
        key = self.key(x).unflatten(1, (self.heads, -1))
        product: Tensor = (query[target] * key[source]).sum(-1)
        return product / math.sqrt(query.shape[2])

    def reset_parameters(self) -> None:
        """Redraw the weights of queries and keys."""
        self.query.reset_parameters()
        self.key.reset_parameters()


class AdditiveAttentionCoupling(AttentionCoupling):
    r"""GAT's attention over unmixed features, named "GATMean" in ``make_conv``.

    .. math::
        F(X) = \frac{1}{K} \sum_{k=1}^{K} A^{(k)}(X)\, X, \quad
        A^{(k)}_{ij} = \operatorname{softmax}_{j \in N_i \cup \{i\}}
        \operatorname{LeakyReLU}(u_k \cdot X_i + v_k \cdot X_j)

    GAT writes the argument as :math:`a^\top [W X_i \| W X_j]`. Here W does not act on the features,
    so only the products u and v of a and W matter. The slope is 0.2, as in GAT.

    Args:
        channels: Width m of input and output.
        heads: Number of averaged heads, K >= 1.

    Shape:
        x [N, m]; result [N, m].

    Raises:
        ValueError: If a size is not positive.

    Example:
        >>> import torch
        >>> coupling = AdditiveAttentionCoupling(4, heads=2)
        >>> coupling(torch.rand(3, 4), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 4])

    References:
        Velickovic et al., Graph Attention Networks, ICLR 2018; the published code of GraphCON,
        which applies it in this form.
    """

    def __init__(self, channels: int, heads: int = 1) -> None:
        heads = _checks.positive_int("heads", heads)
        super().__init__(channels, attention_channels=heads, heads=heads)
        self.query = nn.Linear(channels, heads, bias=False)
        self.key = nn.Linear(channels, heads, bias=False)

    def _score(self, x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        return functional.leaky_relu(self.query(x)[target] + self.key(x)[source], 0.2)


def _softmax(score: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """Return the softmax [E, K] over edges with the same target."""
    rows = target[:, None].expand_as(score)
    highest = score.new_full((num_nodes, score.shape[1]), -math.inf)
    highest = highest.scatter_reduce(0, rows, score.detach(), "amax")
    weight = (score - highest[target]).exp()
    total = sums_of_rows(weight, target, num_nodes)
    return (weight / total[target]).to(weight.dtype)
