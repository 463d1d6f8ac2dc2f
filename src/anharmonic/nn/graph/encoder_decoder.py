"""Base of networks for graph tasks: encoder, deep block, decoder."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from anharmonic import _checks, _tensors
from anharmonic.nn.graph.arguments import activation_function, explain_dtype
from anharmonic.nn.graph.convolutions import check_conv, make_conv
from anharmonic.nn.store import Stored
from anharmonic.ops.graph import Adjacency, as_int64

POOLS = ("sum", "mean", "max")
_NORMS: dict[str, Callable[[int], nn.Module]] = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d}


class GraphNetwork(Stored):
    r"""Encoder, a deep block defined by the subclass, and decoder.

    .. math::
        X^0 = \sigma_e(E x + e), \quad X^L = \text{block}(X^0), \quad \hat o_i = D X^L_i + d

    For one prediction per graph, node predictions are pooled. A subclass stores its arguments under
    their names. It makes a block of ``block_type`` or defines ``_block``, then calls
    ``_make_ends``.

    Args:
        input_size: Features per node F >= 1.
        output_size: Outputs O >= 1: classes, or target values.
        hidden_size: Width of the node features, m >= 1.
        num_layers: Number of layers, L >= 1.
        level: Whether to predict per "node" or per "graph".
        pool: How to pool the predictions of a graph's nodes: "sum", "mean" or "max".
        input_dropout: Dropout in [0, 1) on the input features.
        output_dropout: Dropout in [0, 1) before the decoder.
        encoder_activation: Name of the activation after the encoder.
        output_activation: Name of the activation after the decoder.
        scale_rows: Whether to scale each node's features to a root mean square of 1. Long and short
            texts, or counts and shares, then weigh the same. Rows of zeros stay zero.
        conv: Name of the convolution; see ``anharmonic.nn.graph.convolutions.CONVS``.
        heads: Number of averaged attention heads.
        shared: Whether all layers use the same convolution.
        norm: "layer" or "batch" for a norm after every convolution; None for no norm.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [N, F]; result [N, O], or [B, O] for level "graph".

    Raises:
        ValueError: If a name is unknown or an argument out of range.
        ImportError: If PyTorch Geometric is missing.

    Example:
        >>> import anharmonic as ah
        >>> issubclass(ah.nn.model_class("GraphCON"), GraphNetwork)
        True
    """

    block: Any
    block_type: ClassVar[Any] = None
    """The class of the deep block, if it is one of this package's layers."""
    block_options: ClassVar[tuple[str, ...]] = ()
    """Arguments of the block that the network takes by the same name."""

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        hidden_size: int = 64,
        num_layers: int = 8,
        level: str = "node",
        pool: str = "sum",
        scale_rows: bool = False,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        encoder_activation: str = "relu",
        output_activation: str = "identity",
    ) -> None:
        super().__init__()
        self.input_size = _checks.positive_int("input_size", input_size)
        self.output_size = _checks.positive_int("output_size", output_size)
        self.hidden_size = _checks.positive_int("hidden_size", hidden_size)
        self.num_layers = _checks.positive_int("num_layers", num_layers)
        self.level = _checks.choice("level", level, ("node", "graph"))
        self.pool = _checks.choice("pool", pool, POOLS)
        self.scale_rows = _checks.boolean("scale_rows", scale_rows)
        self.input_dropout = _checks.probability("input_dropout", input_dropout)
        self.output_dropout = _checks.probability("output_dropout", output_dropout)
        self.encoder_activation, self.output_activation = encoder_activation, output_activation
        self._encoder_sigma = activation_function("encoder_activation", encoder_activation)
        self._output_sigma = activation_function("output_activation", output_activation)

    def _make_block(self, conv: Any, options: dict[str, Any], **own_options: Any) -> None:
        """Make the block, whose options are attributes of the network, too."""
        self.block = self.block_type(conv, self.num_layers, **options, **own_options)

    def _is_of_block(self, name: str) -> bool:
        made = "block" in self.__dict__.get("_modules", ())
        return made and name in (*self.block_options, "dt")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.block, name) if self._is_of_block(name) else super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_of_block(name):
            setattr(self.block, name, value)
        else:
            super().__setattr__(name, value)

    def _make_ends(self, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        """Make encoder and decoder after the block."""
        self.encoder = nn.Linear(self.input_size, self.hidden_size)
        self.decoder = nn.Linear(self._decoder_width(), self.output_size)
        self.to(device=device, dtype=dtype)

    @property
    def output_layer(self) -> nn.Module:
        """The layer whose outputs are the predictions."""
        return self.decoder

    def _decoder_width(self) -> int:
        return self.hidden_size

    def _make_convs(
        self,
        conv: str,
        heads: int,
        shared: bool,
        residual: str | None = None,
        group_mean: bool = False,
    ) -> nn.Module | list[nn.Module]:
        """Check and store the choice of convolutions; make one shared or one per layer."""
        check_conv(conv, residual, group_mean)
        self.conv, self.heads = conv, _checks.positive_int("heads", heads)
        self.shared = _checks.boolean("shared", shared)
        self.residual, self.group_mean = residual, group_mean
        arguments = (conv, self.hidden_size, heads, residual, group_mean)
        if self.shared:
            return make_conv(*arguments)
        return [make_conv(*arguments) for _ in range(self.num_layers)]

    def _make_norms(self, norm: str | None, *others: str) -> list[nn.Module] | None:
        """Check and store the choice of norm; make one per layer."""
        self.norm = norm if norm is None else _checks.choice("norm", norm, (*_NORMS, *others))
        if norm is None or norm in others:
            return None
        return [_NORMS[norm](self.hidden_size) for _ in range(self.num_layers)]

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Adjacency,
        membership: Tensor | None = None,
        num_graphs: int = 1,
    ) -> Tensor:
        """Predict for every node, or every graph.

        Args:
            x: Node features.
            edge_index: The edges, a sparse adjacency or an ``anharmonic.Adjacency``.
            membership: The graph that each node belongs to; None for a single graph.
            num_graphs: Number of graphs B.

        Shape:
            x [N, F]; membership int64 [N]; result [N, O] or, for level "graph", [B, O].

        Raises:
            ValueError: If x has another number of features, or membership does not fit.
        """
        if torch.compiler.is_compiling():
            return self._predict(x, edge_index, membership, num_graphs)
        try:
            return self._predict(x, edge_index, membership, num_graphs)
        except RuntimeError:
            if not torch.is_autocast_enabled(x.device.type):
                explain_dtype("x", x, self)
            raise

    def _predict(
        self, x: Tensor, edge_index: Any, membership: Tensor | None, num_graphs: int
    ) -> Tensor:
        edge_index = as_int64(edge_index)
        x = self._encode(x)
        _check_membership(membership, x.shape[0], num_graphs)
        x = self._block(x, edge_index, membership)
        return self._decode(x, membership, num_graphs)

    def _encode(self, x: Tensor) -> Tensor:
        _checks.require(
            isinstance(x, Tensor) and x.dim() == 2 and x.shape[1] == self.input_size, "x", x,
            f"a tensor [N, {self.input_size}]", "give one row of features per node",
        )  # fmt: skip
        if self.scale_rows:
            smallest = torch.finfo(x.dtype).tiny  # a smaller eps is 0 in float16
            x = functional.normalize(x, eps=smallest) * math.sqrt(self.input_size)
        x = functional.dropout(x, self.input_dropout, self.training)
        return self._encoder_sigma(self.encoder(x))

    def _block(self, x: Tensor, graph: Any, membership: Tensor | None) -> Tensor:
        """Run the deep block, [N, m] to [N, m']; a subclass without ``block`` overrides this."""
        return self.block(x, graph)  # type: ignore[no-any-return]

    def _decode(self, x: Tensor, membership: Tensor | None, num_graphs: int) -> Tensor:
        x = self.decoder(functional.dropout(x, self.output_dropout, self.training))
        if self.level == "graph":
            x = pooled(x, membership, num_graphs, self.pool)
        return self._output_sigma(x)


def pooled(x: Tensor, membership: Tensor | None, num_graphs: int, pool: str) -> Tensor:
    """Return the sum, mean or maximum over the nodes of every graph; 0 for one without nodes.

    x is [N, O], membership int64 [N] or None for a single graph, and the result [B, O].

    Example:
        >>> pooled(torch.tensor([[1.0], [2.0], [5.0]]), torch.tensor([0, 0, 1]), 2, "mean")
        tensor([[1.5000],
                [5.0000]])
    """
    if membership is None:
        membership = torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)
    rows = membership[:, None].expand_as(x)
    how = {"sum": "sum", "mean": "mean", "max": "amax"}[pool]
    start = x.new_zeros(num_graphs, x.shape[1])
    return start.scatter_reduce(0, rows, x, how, include_self=False)


def _check_membership(membership: Tensor | None, nodes: int, num_graphs: int) -> None:
    if membership is None:
        advice = "pass membership, the graph of every node"
        _checks.require(num_graphs == 1, "num_graphs", num_graphs, "1 without membership", advice)
        return
    fits = isinstance(membership, Tensor) and membership.shape == (nodes,)
    fits = fits and membership.dtype == torch.int64
    if fits and nodes and _tensors.has_values(membership):
        fits = 0 <= int(membership.min()) and int(membership.max()) < num_graphs
    if not fits:
        raise ValueError(
            _checks.message(
                f"membership must be int64 [N={nodes}], numbers in [0, num_graphs={num_graphs})",
                _checks.described(membership),
                "give every node the number of its graph, as PyTorch Geometric's batch vector; "
                "edge weights go into ah.Adjacency(edge_index, num_nodes, edge_weight)",
            )
        )
