"""What cells and layers share: parameters by name, and the kernel that runs them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from anharmonic.nn.arguments import constructor_arguments
from anharmonic.nn.store import Stored

_Weights = TypeVar("_Weights", bound=tuple[Any, ...])


class _Recurrent(Stored, nn.Module):
    """What cells and layers share: parameters by name, and a kernel that runs them."""

    input_size: int
    hidden_size: int
    _has_bias: bool
    _gaps_warned = False

    _op: ClassVar[Callable[..., tuple[Any, ...]]]  # one of ``ops``
    _weights_type: ClassVar[Any]  # the named tuple of weights that it takes

    # ---- a model defines these --------------------------------------------------------------
    def _shapes(self, layer: int, widths: list[int]) -> dict[str, tuple[int, ...]]:
        """Shapes of one layer's parameters by stem (a stem is a name without ``_l0``).

        ``widths[l]`` is the width of level l: 0 the input, l the output of layer l.
        """
        raise NotImplementedError

    def _initialise(self, stem: str, parameter: Tensor, width: int) -> None:
        """Fills one parameter in place with its starting values; ``width`` is its layer's input."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        """The model's own arguments of its op, by name."""
        raise NotImplementedError

    def _warn_unstable(self, longest: float = 1.0) -> bool:
        """Warns, and says so, if steps of dt times ``longest`` let states grow without bound."""
        return False

    def _kernel(self, x: Tensor, suffixes: list[str], state: Any, **call: Any) -> tuple[Any, ...]:
        """Runs the whole stack: x [T, B, F] -> outputs [T, B, D * H] and the final state.

        ``call`` goes on to the op: bidirectional, lengths, masks, elapsed, output, memory.
        """
        weights = self._weights(self._weights_type, suffixes)
        return type(self)._op(x, weights, *state, **self._settings(), **call)

    # ---- parameters ------------------------------------------------------------------------
    def _frozen_stems(self) -> frozenset[str]:
        """Stems that are buffers instead of parameters."""
        return frozenset()

    def _make(self, suffixes: list[tuple[str, int]], widths: list[int], **factory: Any) -> None:
        """Makes the parameters of every (suffix, layer) pair and initialises them."""
        self._suffixes = [suffix for suffix, _ in suffixes]
        self._layout: list[tuple[str, str, int]] = []
        for suffix, layer in suffixes:
            for stem, shape in self._shapes(layer, widths).items():
                if stem == "bias" and not self._has_bias:
                    continue
                value = torch.empty(shape, **factory)
                if stem in self._frozen_stems():
                    self.register_buffer(stem + suffix, value)
                else:
                    self.register_parameter(stem + suffix, nn.Parameter(value))
                self._layout.append((stem + suffix, stem, widths[layer]))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws every weight anew from the model's initial distribution."""
        with torch.no_grad():
            for name, stem, width in self._layout:
                self._initialise(stem, getattr(self, name), width)

    def _weight(self, name: str) -> Any:
        """One parameter or buffer, or None where the layer has none of that name."""
        found = self._parameters.get(name)  # by far the usual case, and the quickest
        return getattr(self, name, None) if found is None else found

    def _weights(self, kind: type[_Weights], suffixes: list[str]) -> list[_Weights]:
        """The named tuples that a kernel takes, one for each suffix ("_l0", "_l0_reverse", ...)."""
        fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
        parameters = self._parameters
        weights = []
        for suffix in suffixes:
            values: list[Any] = []
            for name in fields:
                value = parameters.get(name + suffix)
                values.append(getattr(self, name + suffix, None) if value is None else value)
            weights.append(kind(*values))
        return weights

    @property
    def _example(self) -> Tensor:
        """A weight, whose dtype and device are the layer's (found without a walk over modules)."""
        return self._weight(self._layout[0][0])  # type: ignore[no-any-return]


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
