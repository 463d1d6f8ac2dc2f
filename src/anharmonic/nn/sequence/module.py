"""What layers and cells share: the weights of an equation, by name."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from anharmonic.nn.arguments import constructor_arguments
from anharmonic.nn.store import Stored
from anharmonic.ops import Equation


class EquationModule(Stored, nn.Module):
    """A module that owns the weights of an equation: one set for each suffix, such as "_l0".

    A layer has the suffixes "_l0", "_l0_reverse", "_l1" and so on, a cell only "".
    """

    input_size: int
    hidden_size: int
    _has_bias: bool
    _gaps_warned = False

    # ---- a model defines these ---------------------------------------------------------------
    def equation(self) -> Equation:
        """Return the equation with the numbers in use."""
        raise NotImplementedError

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Fill a parameter in place with its first values; ``name`` is without suffix."""
        raise NotImplementedError

    def _initialise(self, name: str, parameter: Tensor, inputs: int) -> None:
        """``init_parameter`` for a layer of this many inputs."""
        self.init_parameter(name, parameter)

    def _frozen_names(self) -> frozenset[str]:
        """Names of what are buffers instead of parameters."""
        return frozenset()

    def _warn_unstable(self, longest: float = 1.0) -> bool:
        """Warn, and say so, if steps of dt times ``longest`` let states grow without bound."""
        return False

    # ---- parameters ----------------------------------------------------------------------------
    def _make(self, suffixes: list[tuple[str, int]], widths: list[int], **factory: Any) -> None:
        """Make the parameters of every (suffix, layer) pair and initialise them."""
        self._suffixes = [suffix for suffix, _ in suffixes]
        self._layout: list[tuple[str, str, int]] = []
        for suffix, layer in suffixes:
            for name, shape in self._shapes(layer, widths).items():
                if name == "bias" and not self._has_bias:
                    continue
                value = torch.empty(shape, **factory)
                if name in self._frozen_names():
                    self.register_buffer(name + suffix, value)
                else:
                    self.register_parameter(name + suffix, nn.Parameter(value))
                self._layout.append((name + suffix, name, widths[layer]))
        self.reset_parameters()

    def _shapes(self, layer: int, widths: list[int]) -> dict[str, tuple[int, ...]]:
        """Shapes of one layer's weights; ``widths`` are those of the input and of each layer."""
        own = self.equation().of_layer(layer)
        return own.shapes(own.source(widths[: layer + 1]), self.hidden_size)

    def reset_parameters(self) -> None:
        """Draw every weight anew from the model's initial distribution."""
        with torch.no_grad():
            for full_name, name, inputs in self._layout:
                self._initialise(name, getattr(self, full_name), inputs)

    def layer_weights(self, suffix: str = "_l0") -> Any:
        """Return the weights of one layer and direction by name, None for those it lacks."""
        return self._weights(self.equation(), [suffix])[0]

    def _weights(self, equation: Equation, suffixes: Sequence[str] | None = None) -> list[Any]:
        """The weights of layers and directions; of all by default."""
        kind, parameters, weights = equation.Weights, self._parameters, []
        for suffix in self._suffixes if suffixes is None else suffixes:
            values: list[Any] = []
            for name in kind._fields:
                value = parameters.get(name + suffix)  # by far the usual case, and the quickest
                values.append(getattr(self, name + suffix, None) if value is None else value)
            weights.append(kind(*values))
        return weights

    @property
    def _example(self) -> Tensor:
        """A weight, whose dtype and device are the layer's (found without a walk over modules)."""
        name = self._layout[0][0]
        found = self._parameters.get(name)
        example: Tensor = getattr(self, name) if found is None else found
        return example

    def extra_repr(self) -> str:
        """Name what differs from the defaults."""
        return repr_of(self)


def repr_of(module: Stored) -> str:
    """Sizes, and every constructor argument that differs from its default."""
    parameters = constructor_arguments(type(module))
    parts = []
    for name, value in module.config().items():
        if parameters[name].default is inspect.Parameter.empty:
            parts.append(f"{value}")
        elif value != parameters[name].default:
            parts.append(f"{name}={value!r}")
    return ", ".join(parts)
