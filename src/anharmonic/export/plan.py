"""A model as arrays and numbers, for programs without PyTorch."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anharmonic._checks import message, require
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.export.traced import Steps, traced_steps
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.registry import model_class
from anharmonic.nn.sequence.layer import SequenceLayer
from anharmonic.ops.resonator import propagator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LayerPlan:
    """One recurrent layer.

    Attributes:
        kind: The equation, e.g. "LEM".
        inputs: Width of the input.
        width: Number of neurons, H.
        matrices: Its matrices by name, [rows, columns] each.
        vectors: Its vectors by name.
        numbers: Its scalars by name; None if an option is off.
        skip: The level whose output enters through the matrix "skip": 0 is the input of the stack,
            l the output of layer l - 1; None without a skip.
    """

    kind: str
    inputs: int
    width: int
    matrices: dict[str, Array]
    vectors: dict[str, Array]
    numbers: dict[str, Any]
    skip: int | None = None


@dataclass(frozen=True)
class Plan:
    """A model with its preprocessing and postprocessing.

    Attributes:
        preparation: Preprocessing of the samples.
        patch: Number of prepared samples that the first layer reads as one.
        layers: The layers, from the input upwards.
        readout: "last", "mean" or "all".
        weight: Weights of the affine readout, [O, H].
        bias: Biases of the affine readout, [O].
        shift: The value at output 0, [O]; zeros for classes, and for forecasts, where the last
            known values are added.
        scale: Units per output, [O]; ones for classes.
        target: Meaning of the outputs: "class", "labels" or "value"; "" if unknown.
        output_names: Name of every output; empty if unknown.
        steps: The layers' steps, if generated from their PyTorch code.
    """

    preparation: Preprocessing
    patch: int
    layers: tuple[LayerPlan, ...]
    readout: str
    weight: Array
    bias: Array
    shift: Array
    scale: Array
    target: str
    output_names: tuple[str, ...]
    steps: Steps | None = None

    @property
    def channels(self) -> int:
        """Channels of a raw sample; the last is the time since the previous one, if known."""
        return len(self.preparation.mean) + (self.preparation.elapsed != "ignore")

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes; empty for other outputs."""
        return self.output_names if self.target == "class" else ()

    @property
    def description(self) -> str:
        """The model in one line, for the header of a file."""
        layers = ", ".join(f"{layer.kind} {layer.inputs} -> {layer.width}" for layer in self.layers)
        outputs = f"{len(self.bias)} {'classes' if self.class_names else 'outputs'}"
        times = ", time between samples" * (self.preparation.elapsed != "ignore")
        inputs = f"{len(self.preparation.mean)} channels{times}"
        return f"{inputs}; {layers}; readout {self.readout}; {outputs}"


def parts_of(estimator: Any) -> tuple[SequenceModel, Preprocessing, tuple[str, ...], str] | None:
    """Return model, preprocessing, class names and target of a trained estimator; else None."""
    if not (hasattr(estimator, "get_params") and hasattr(estimator, "model_options")):
        return None
    fitted, advice = hasattr(estimator, "preprocessing_"), "call fit first"
    require(fitted, "model", type(estimator).__name__, "fitted", advice)
    names = tuple(str(name) for name in getattr(estimator, "classes_", ()))
    kind = "labels" if getattr(estimator, "_has_labels", False) else "class" if names else "value"
    return estimator.model_, estimator.preprocessing_, names, kind


def plan(
    model: SequenceModel,
    preparation: Preprocessing | None = None,
    output_names: tuple[str, ...] = (),
    target: str = "",
) -> Plan:
    """Return the plan of a model.

    Args:
        model: The model, unidirectional and without an embedding.
        preparation: Preprocessing of its inputs in training, or None.
        output_names: Names of its outputs, or ().
        target: Meaning of its outputs; "" if unknown.

    Raises:
        ValueError: If a part cannot be exported; the message names it.
        TypeError: If it is not a `SequenceModel`.
    """
    if not isinstance(model, SequenceModel):
        expected = "the model must be a SequenceModel"
        advice = "put a layer for sequences into a SequenceModel, whose readout goes along; graph "
        advice += "networks do not export to C"
        raise TypeError(message(expected, type(model).__name__, advice))
    name = model.name
    by_hand = name in _READERS and type(model.layer) is model_class(name)
    require(
        by_hand or _has_step(model.layer), "layer", name,
        f"one of {sorted(_READERS)}, or a layer that defines its step in PyTorch",
        "train one of these",
    )  # fmt: skip
    expected = "False, because a model that also reads backwards cannot answer step by step"
    advice = "train with --streaming, in Python with bidirectional=False"
    require(not model.layer.bidirectional, "bidirectional", True, expected, advice)
    expected, advice = "None: models of text are not exported to C", "use ONNX, or PyTorch"
    require(model.embedding_size is None, "embedding_size", model.embedding_size, expected, advice)
    words = all(isinstance(word, str) for word in output_names)
    require(words, "class_names", output_names, "strings", "pass the names as text", TypeError)
    for key, value in model.state_dict().items():
        finite = not value.is_floating_point() or bool(value.isfinite().all())
        advice = "train again, with a smaller lr"
        require(finite, key, "NaN or infinity", "finite numbers", advice)
    if preparation is None:
        F = model.input_size
        # With NaN for the deviation model.h says nothing of the training data.
        preparation = Preprocessing((0.0,) * F, (math.nan,) * F, False, "error")
    _check_preparation(preparation, model)
    fits, advice = len(output_names) in (0, model.output_size), "give one for each output"
    require(fits, "class_names", output_names, f"{model.output_size} names, or none", advice)
    is_linear = isinstance(model.linear, torch.nn.Linear)
    require(
        is_linear and model.linear.bias is not None,
        "the readout",
        "one without a bias" if is_linear else type(model.linear).__name__,
        "one nn.Linear with a bias",
        "export to ONNX instead, or train with such a readout",
    )
    read = _READERS[name] if by_hand else _traced
    steps = None
    if not by_hand:
        layer = copy.deepcopy(model.layer).double()
        steps = traced_steps(layer, timed=preparation.elapsed == "step")
    shift, scale = np.zeros(model.output_size), np.ones(model.output_size)
    if preparation.horizon:
        times = model.output_size // len(preparation.forecast)
        scale = np.tile(preparation.target_scale, times)
    elif preparation.target_scale:
        shift, scale = np.array(preparation.target_shift), np.array(preparation.target_scale)
    return Plan(
        preparation,
        model.patch,
        tuple(read(model.layer, k) for k in range(model.layer.num_layers)),
        model.readout,
        _array(model.linear.weight),
        _array(model.linear.bias),
        shift,
        scale,
        target,
        output_names,
        steps,
    )


def _has_step(layer: Any) -> bool:
    """Whether a layer runs step by step and its output is a variable of its state."""
    plain = isinstance(layer, SequenceLayer) and layer.output_is_state
    return plain and layer._state_size == layer.hidden_size


def _traced(layer: Any, k: int) -> LayerPlan:
    """Return a layer whose numbers are in the code of its step."""
    inputs = layer.input_size if k == 0 else layer.hidden_size
    kind = type(layer).__name__
    return LayerPlan(kind, inputs, layer.hidden_size, {}, {}, {})


def _check_preparation(preparation: Preprocessing, model: SequenceModel) -> None:
    p, input_size = preparation, model.input_size
    expected = "False, as the scale of a sequence is known at its end"
    scaled = bool(p.level_scale)
    require(not scaled, "scale_each", scaled, expected, "train with --streaming")
    whole = p.elapsed != "step" or model.patch == 1
    expected = "1 where times between samples are steps"
    require(whole, "patch", model.patch, expected, "train with --patch 1")
    with_step = p.elapsed != "step" or getattr(model.layer, "has_step_size", False)
    expected = "a layer whose step size times multiply"
    require(with_step, "layer", model.name, expected, "train with --elapsed channel")
    expected = f"of {input_size} prepared channels, as the model reads"
    require(p.size == input_size, "preparation", p.size, expected, "give that of the training")


def _array(value: Any) -> Array:
    return np.asarray(value.detach().cpu().double().numpy())


def _bias(layer: Any, name: str, size: int) -> Array:
    found = getattr(layer, name, None)
    return np.zeros(size) if found is None else _array(found)


def _weights(layer: Any, k: int, *names: str) -> list[Array]:
    return [_array(getattr(layer, f"weight_{name}_l{k}")) for name in names]


def _lem(layer: Any, k: int) -> LayerPlan:
    ih, hh, zh = _weights(layer, k, "ih", "hh", "zh")
    bias = _bias(layer, f"bias_l{k}", len(ih))
    kind = "LEM" if layer.multiscale else "LEM-one-scale"
    H = layer.hidden_size
    first, last = slice(0, len(ih) - H), slice(len(ih) - H, None)
    return LayerPlan(
        kind, ih.shape[1], H,
        {"ih": ih[first], "hh": hh, "ih_y": ih[last], "zh": zh},
        {"bias": bias[first], "bias_y": bias[last]},
        {"dt": layer.dt, "floor": layer.gate_floor},
    )  # fmt: skip


def _cornn(layer: Any, k: int) -> LayerPlan:
    ih, hy, hz = _weights(layer, k, "ih", "hy", "hz")
    H = layer.hidden_size
    dt, frequency, damping = (
        float(value.detach() if isinstance(value, torch.Tensor) else value)
        for value in layer.scalars()
    )
    if layer.trainable_dt:
        dt = float(torch.sigmoid(layer.raw_dt.detach().double()))
    return LayerPlan(
        "CoRNN", ih.shape[1], H,
        {"ih": ih, "hy": hy, "hz": hz},
        {"bias": _bias(layer, f"bias_l{k}", H)},
        {"dt": dt, "frequency": frequency, "damping": damping, "scheme": layer.scheme},
    )  # fmt: skip


def _unicornn(layer: Any, k: int) -> LayerPlan:
    ih = _array(getattr(layer, f"weight_ih_l{k}"))
    H, matrices, skip = layer.hidden_size, {"ih": ih}, None
    if getattr(layer, f"weight_skip_l{k}", None) is not None:
        skip = k - layer.skipped_layers
        matrices["skip"] = _array(getattr(layer, f"weight_skip_l{k}"))
    # In float64: undamped oscillators keep every rounding error of their phase.
    step = layer._steps[k] * torch.sigmoid(getattr(layer, f"timescale_l{k}").detach().double())
    return LayerPlan(
        "UnICORNN", ih.shape[1], H,
        matrices,
        {
            "bias": _bias(layer, f"bias_l{k}", H),
            "hh": _array(getattr(layer, f"weight_hh_l{k}")),
            "step": _array(step),
        },
        {"frequency": layer.frequency},
        skip,
    )  # fmt: skip


def _lstm(layer: Any, k: int) -> LayerPlan:
    ih, hh = _weights(layer, k, "ih", "hh")
    bias = sum(_bias(layer, f"bias_{s}_l{k}", len(ih)) for s in ("ih", "hh"))
    matrices, vectors = {"ih": ih, "hh": hh}, {"bias": np.asarray(bias)}
    return LayerPlan("LSTM", ih.shape[1], layer.hidden_size, matrices, vectors, {})


def _gru(layer: Any, k: int) -> LayerPlan:
    ih, hh = _weights(layer, k, "ih", "hh")
    H = layer.hidden_size
    own, recurrent = (_bias(layer, f"bias_{s}_l{k}", 3 * H) for s in ("ih", "hh"))
    bias = np.concatenate([own[: 2 * H] + recurrent[: 2 * H], own[2 * H :]])
    return LayerPlan(
        "GRU", ih.shape[1], H,
        {"ih": ih, "hh": hh[: 2 * H], "hn": hh[2 * H :]},
        {"bias": bias, "bias_n": recurrent[2 * H :]},
        {},
    )  # fmt: skip


def _fastgrnn(layer: Any, k: int) -> LayerPlan:
    ih, hh = _weights(layer, k, "ih", "hh")
    H = layer.hidden_size
    bias = _bias(layer, f"bias_l{k}", 2 * H)
    zeta, nu = (
        float(torch.sigmoid(getattr(layer, f"raw_gate_{name}_l{k}").detach().double()))
        for name in ("scale", "shift")
    )
    return LayerPlan(
        "FastGRNN", ih.shape[1], H,
        {"ih": ih, "hh": hh},
        {"bias": bias[:H], "bias_h": bias[H:]},
        {"zeta": zeta, "nu": nu},
    )  # fmt: skip


def _resonators(layer: Any, k: int) -> LayerPlan:
    (ih,), H = _weights(layer, k, "ih"), layer.hidden_size
    frequency, q = (
        getattr(layer, f"log_{name}_l{k}").detach().double().exp() for name in ("frequency", "q")
    )
    steps = zip("abc", propagator(frequency, q, layer.dt), strict=True)
    vectors = {"bias": _bias(layer, f"bias_l{k}", H)}
    vectors |= {f"step_{name}": _array(value) for name, value in steps}
    vectors |= {"omega": _array(frequency * layer.dt), "zeta": _array(0.5 / q)}
    return LayerPlan("ResonatorBank", ih.shape[1], H, {"ih": ih}, vectors, {})


_READERS: dict[str, Callable[[Any, int], LayerPlan]] = {
    "LEM": _lem,
    "CoRNN": _cornn,
    "UnICORNN": _unicornn,
    "LSTM": _lstm,
    "ChronoLSTM": _lstm,
    "GRU": _gru,
    "FastGRNN": _fastgrnn,
    "ResonatorBank": _resonators,
}
