"""Models as arrays, numbers and flags of the C runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import require
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.export.fixed import ARGUMENT, HIDDEN, TABLE, VALUE, in_floats
from anharmonic.export.fixed_cells import FixedLayer
from anharmonic.export.fixed_model import FixedModel
from anharmonic.export.plan import Array, Plan
from anharmonic.export.traced import Steps
from anharmonic.export.write import Program, array, commented, defines, matrices
from anharmonic.ops.resonator import COMPETITORS, number_of_groups

if TYPE_CHECKING:
    from anharmonic.export.resonators import ResonatorPlan

# The flag of each kind of layer, and its variables besides the output.
_KINDS = {
    "LEM": ("LEM", 1),
    "LEM-one-scale": ("LEM_ONE_SCALE", 1),
    "CoRNN": ("CORNN", 1),
    "UnICORNN": ("UNICORNN", 1),
    "LSTM": ("LSTM", 1),
    "GRU": ("GRU", 0),
    "FastGRNN": ("FASTGRNN", 0),
    "ResonatorBank": ("RESONATOR_BANK", 1),
}
# Variables with 32 bits in integer programs, whose outputs have 16.
_FIXED_VARIABLES = {"LEM": 2, "CoRNN": 2, "UnICORNN": 2, "LSTM": 1, "GRU": 1, "FastGRNN": 1}
_GATED = ("LEM", "LSTM", "GRU", "FastGRNN")
# Number of entries in the table of tanh.
_TABLE_SIZE, _TABLE_END = 256, 8.0


def float_program(plan: Plan, lut: bool = False) -> Program:
    """Return the program of a network in floating point, by `lut` with a table of tanh."""
    p, layers, kind = plan.preparation, plan.layers, plan.layers[0].kind
    if plan.steps is None:
        made = _network(plan, _KINDS[kind][1])
        made.flags |= _flags(kind) | {"MATRICES"}
    else:
        made = _network(plan, plan.steps.variables)
        _add_steps(made, plan.steps, lut)
    if lut and "TANH" in made.flags:
        made.flags.add("TANH_TABLE")
        step = _TABLE_END / _TABLE_SIZE
        values = np.tanh(np.arange(_TABLE_SIZE + 1) * step)
        made.table = defines({"TABLE_END": _TABLE_END, "TABLE_PER_ONE": 1 / step}, "model_real")
        made.table += "\n" + array("model_real", "tanh_table", values)
    for name in _names(layers, "matrices"):
        found = [layer.matrices[name] for layer in layers if name in layer.matrices]
        made.arrays += matrices("model_real", name, found)
    steps = {"omega", "zeta"} if p.elapsed != "step" else {"step_a", "step_b", "step_c"}
    for name in layers[0].vectors.keys() - steps:
        found = [layer.vectors[name] for layer in layers]
        made.arrays.append(array("model_real", name, np.concatenate(found)))
    for name, value in layers[0].numbers.items():
        if kind == "FastGRNN":
            made.arrays.append(array("model_real", name, [v.numbers[name] for v in layers]))
        elif isinstance(value, int | float):
            made.constants[{"floor": "GATE_FLOOR"}.get(name, name.upper())] = float(value)
    made.arrays += matrices("model_real", "readout", [plan.weight])
    made.arrays.append(array("model_real", "readout_bias", plan.bias))
    if p.standardise or p.missing != "error":
        _scaling(made, np.array(p.mean), np.array(p.std) if p.standardise else None)
    if p.difference:
        made.arrays.append(array("model_real", "change_scale", 1 / np.array(p.difference)))
    if p.elapsed != "ignore":
        made.constants["PER_UNIT"] = 1 / p.nominal
    if p.horizon:
        made.arrays.append(array("short", "aims", p.forecast))
        means = np.array(p.mean)[list(p.forecast)]
        made.arrays.append(array("model_real", "aim_mean", means))
    if np.any(plan.shift != 0) or np.any(plan.scale != 1):
        made.flags.add("SCALES_TARGETS")
        made.arrays.append(array("model_real", "target_shift", plan.shift))
        made.arrays.append(array("model_real", "target_scale", plan.scale))
    return made


def fixed_program(model: FixedModel) -> Program:
    """Return the program of a network in integers."""
    plan, layers, kind = model.plan, model.layers, model.plan.layers[0].kind
    p, weight = plan.preparation, f"int{model.bits}_t"
    made = _network(plan, _FIXED_VARIABLES[kind])
    made.flags |= _flags(kind) | {"WHOLE_NUMBERS", f"INT{model.bits}"}
    if kind in ("CoRNN", "UnICORNN") or p.difference:
        made.flags.add("CLIPS")
    made.table = array("int16_t", "tanh_table", TABLE)
    for name in _names(layers, "matrices"):
        pairs = [layer.matrices[name] for layer in layers if name in layer.matrices]
        shifts = [m.shift for m in pairs]
        made.arrays += matrices(weight, name, [m.weight for m in pairs], shifts)
    for name in layers[0].biases:
        biases = [layer.biases[name] >> layer.bias_shifts[name] for layer in layers]
        made.arrays.append(array("int16_t", name, np.concatenate(biases)))
    for name, factor in layers[0].factors.items():
        if np.ndim(factor.m):  # one per neuron
            factors = [layer.factors[name].m for layer in layers]
            made.arrays.append(array("int16_t", name, np.concatenate(factors)))
    constants = [_constants(layer) for layer in layers]
    for name in constants[0]:
        small = "int16_t" if name.endswith("_m") else "int8_t"
        found = [c[name] for c in constants]
        # A value shared by all layers becomes a literal; in flash, AVR's GCC 5 would warn about it.
        made.arrays.append(array(small, name, found, flash=len(set(found)) > 1))
    if kind == "LEM":
        dt, floor = layers[0].factors["dt"], plan.layers[0].numbers["floor"]
        made.constants |= {"DT": dt.m, "DT_SPARE": dt.f - HIDDEN}
        if floor is not None:
            made.constants["GATE_FLOOR"] = int(np.rint(floor * 2**HIDDEN))
    made.constants["READOUT_SHIFT"] = model.readout_bias_shift
    made.arrays += matrices(weight, "readout", [model.readout.weight], [model.readout.shift])
    readout_bias = model.readout_bias >> model.readout_bias_shift
    made.arrays.append(array("int16_t", "readout_bias", readout_bias))
    if p.missing != "error":
        made.arrays.append(array("int16_t", "middle", model.middle))
    if p.difference:
        m, f = np.array(model.changes).T
        made.arrays += [array("int16_t", "change_factor", m), array("int8_t", "change_shift", f)]
    floats = {"offset": model.offset, "gain": model.gain}
    if np.any(model.offset_rest):
        made.flags.add("MEAN_REST")
        floats["offset_rest"] = model.offset_rest
    floats |= {"target_shift": plan.shift, "target_scale": plan.scale}
    made.arrays.append("#ifndef MODEL_NO_FLOAT")
    made.arrays += [array("float", name, values) for name, values in floats.items()]
    made.arrays.append("#endif")
    return made


def resonator_program(plan: ResonatorPlan) -> Program:
    """Return the program of resonators in floating point."""
    biases, slow = plan.bank.biases.numpy(), plan.bank.slow.numpy()
    bank, pools = plan.bank, set(plan.pools)
    pools -= {name for name, size in plan.sizes.items() if size == 0}
    numbers = {"CHANNELS": plan.channels, "OUTPUTS": len(plan.bias)}
    numbers |= {"OSCILLATORS": len(plan.bank.frequency), "BIASES": biases.shape[1]}
    made = Program(plan.description, numbers, {"RESONATORS"})
    if plan.preparation.window:
        numbers["WINDOW"] = plan.preparation.window
        made.flags.add("WINDOWS")
    made.name_classes(plan.class_names)
    _add_comments(made, plan)
    made.flags |= {f"POOL_{name.upper()}" for name in pools}
    if pools - {"competition", "end", "length"}:
        made.flags.add("POOLS")
    if pools - {"largest", "smallest", "end"}:
        made.flags.add("AVERAGES")
    if pools & {"run", "stretches", "crossings"}:
        made.flags.add("RUNS")
        numbers["RUNS"] = biases.shape[1] if pools & {"stretches", "crossings"} else 1
    if pools & {"run", "stretches"}:
        made.flags.add("LONGEST")
    if plan.constants is None:
        made.flags.add("RUNNING_SCALE")
    else:
        _scaling(made, *plan.constants)
    if plan.constants is None or "rms" in pools:
        made.flags.add("SQRT")
    reads, ends = plan.reads
    made.arrays += [array("short", "reads", reads), array(_index(ends), "reads_end", ends)]
    for name, values in zip("abc", plan.coefficients, strict=True):
        made.arrays.append(array("model_real", f"step_{name}", values))
    if pools & {"share", "excess", "run", "stretches", "crossings", "position"}:
        made.arrays.append(array("model_real", "level", biases.transpose(0, 2, 1)))
    if "competition" in pools:
        assert bank.scale is not None
        made.constants["COMPETITORS"] = COMPETITORS
        numbers["GROUPS"] = number_of_groups(len(bank.frequency))
        made.arrays.append(array("model_real", "response_scale", bank.scale.numpy()))
    if "length" in pools:
        made.constants["LENGTHS"] = bank.lengths.shape[1]
        for name, values in zip(("length", "length_width"), bank.lengths.numpy(), strict=True):
            made.arrays.append(array("model_real", name, values))
    if "end" in pools:
        made.constants["SLOW"] = len(slow)
        made.arrays.append(array(_index(slow), "slow", slow))
    made.arrays.append(array("model_real", "readout", plan.weights_in_order.T))
    made.arrays.append(array("model_real", "readout_bias", plan.bias))
    return made


def check_program(
    whole: bool, samples: Sequence[NDArray[Any]], expected: NDArray[Any], **tolerances: float
) -> Program:
    """Return the data that ``model_test.c`` compares.

    Args:
        whole: Whether the program uses integers; outputs must then be equal to the last bit.
        samples: Raw sequences.
        expected: Their expected outputs.
        tolerances: SINGLE_TOLERANCE and DOUBLE_TOLERANCE for floating point.

    Shape:
        samples [T, C] each; expected [N, O].
    """
    sample, value = ("int16_t", "int32_t") if whole else ("model_real", "double")
    arrays = [
        array("long", "lengths", [len(x) for x in samples]),
        array(sample, "samples", np.concatenate(samples)),
        array(value, "expected", expected),
    ]
    return Program("", {}, set(), {"SEQUENCES": len(samples), **tolerances}, arrays)


def _network(plan: Plan, variables: int) -> Program:
    """Return the parts shared by networks in floating point and in integers."""
    p, last = plan.preparation, plan.layers[-1]
    numbers = {
        "CHANNELS": plan.channels,
        "PREPARED": p.size,
        "LAYERS": len(plan.layers),
        "WIDTH": last.width,
        "OUTPUTS": len(plan.bias),
    }
    options = {
        "CLIPPED_GATES": last.numbers.get("floor") is not None,
        "IMPLICIT": last.numbers.get("scheme") == "implicit",
        "SKIPS": any(layer.skip is not None for layer in plan.layers),
        "VARIABLES": variables > 0,
        "PATCHES": plan.patch > 1,
        "MEAN_READOUT": plan.readout == "mean",
        "WINDOWS": p.window > 0,
        "FILLS_GAPS": p.missing != "error",
        "FILLS_FORWARD": p.missing == "forward",
        "MARKS_GAPS": len(p.masked) > 0,
        "DIFFERENCES": len(p.difference) > 0,
        "UNEVEN": p.elapsed != "ignore",
        "TIME_CHANNEL": p.elapsed == "channel",
        "TIME_STEP": p.elapsed == "step",
        "STARTS": len(p.difference) > 0 or p.elapsed != "ignore",
        "FORECASTS": p.horizon > 0,
        "QUANTILES": len(p.quantiles) > 0,
    }
    made = Program(plan.description, numbers, {name for name, on in options.items() if on})
    made.name_classes(plan.class_names)
    _add_comments(made, plan)
    sizes = {"VARIABLES": variables, "PATCH": plan.patch, "WINDOW": p.window}
    sizes |= {"HORIZON": p.horizon, "AIMS": len(p.forecast)}
    numbers |= {name: n for name, n in sizes.items() if n > (name == "PATCH")}
    if "SKIPS" in made.flags:
        made.constants["SKIPPED"] = min(
            k for k, layer in enumerate(plan.layers) if layer.skip is not None
        )
    if p.masked:
        made.constants["MARKED"] = len(p.masked)
        made.arrays.append(array("short", "marked", p.masked))
    values = len(p.mean)
    made.constants["VALUES"] = values
    if p.difference:
        made.constants["CHANGES"] = values + len(p.masked)
    if p.elapsed == "channel":
        made.constants["TIMES"] = values + len(p.masked) + len(p.difference)
    if p.horizon:
        made.constants |= {"AIMS": len(p.forecast), "AHEAD": p.horizon * len(p.forecast)}
    return made


def _add_comments(made: Program, plan: Plan | ResonatorPlan) -> None:
    """Add what ``model.h`` says of the values of samples and outputs."""
    p, inputs, outputs = plan.preparation, [], []
    for i, (mean, std) in enumerate(zip(p.mean, p.std, strict=True)):
        # Mean and deviation show the unit where a name does not.
        seen = "" if std != std else f": mean {mean:.4g}, standard deviation {std:.4g} in training"
        inputs.append(f"x[{i}]  {_channel(p, i)}{seen}")
    if p.elapsed != "ignore":
        inputs += [
            f"x[{len(p.mean)}]  time since the previous sample, in the unit of the training file "
            "(dates: seconds):",
            f"      median {p.nominal:.4g} in training; 0 for the first sample",
        ]
    if plan.readout == "all":
        made.flags.add("EACH_STEP")
    if p.horizon:  # (FORECASTS)
        outputs += [f"i = {n}  {_channel(p, i)}" for n, i in enumerate(p.forecast)]
        outputs += [f"q = {n}  quantile {q:g}" for n, q in enumerate(p.quantiles)]
    else:
        kinds = {"class": "CLASS_SCORES", "labels": "LABEL_SCORES", "value": "TARGET_VALUES"}
        made.flags.add(kinds.get(plan.target, "ANY_OUTPUTS"))
        names = plan.output_names
        outputs += [f"outputs[{i}]  {commented(name)}" for i, name in enumerate(names)]
    made.inputs, made.outputs = (
        "\n".join(f" *   {line}" for line in lines) for lines in (inputs, outputs)
    )


def _channel(p: Preprocessing, i: int) -> str:
    """Return the name of a channel in a comment."""
    if p.channels:
        return commented(p.channels[i])
    known = i - (len(p.mean) - len(p.known))
    return f"channel {i}" if known < 0 else f"channel {p.known[known]}, {p.horizon} steps later"


def _flags(kind: str) -> set[str]:
    """Return the runtime flags of a layer with a hand-written step."""
    flags = {_KINDS[kind][0]}
    if kind != "ResonatorBank":
        flags.add("TANH")
    if kind in _GATED:
        flags.add("SIGMOID")
    return flags


def _add_steps(made: Program, steps: Steps, lut: bool) -> None:
    """Add steps generated from PyTorch code."""
    require(
        not (lut and "MATH" in steps.flags), "--lut (lut)", lut,
        "False, as the steps call functions other than tanh and the sigmoid", "leave it out",
    )  # fmt: skip
    made.flags |= {"TRACED", "MATRICES"} | steps.flags
    if steps.matrices:
        made.arrays += matrices("model_real", "step_matrix", steps.matrices)
    made.arrays += [array("model_real", name, values) for name, values in steps.vectors.items()]
    calls = "".join(
        f"    if (k == {k}) layer_{k}(state, x);\n" for k in range(len(steps.functions))
    )
    head = "static void layer(model_state *state, int k, const model_real *x) {"
    made.steps = "\n".join(
        ["/* The steps, from their code in PyTorch. */", *steps.functions, f"{head}\n{calls}}}\n"]
    )


def _index(values: Array) -> str:
    """Return the smallest type for indices of oscillators or what they read."""
    return "short" if values.max(initial=0) < 2**15 else "long"


def _names(layers: Sequence[Any], kind: str) -> list[str]:
    """Return the names of the matrices of all layers."""
    return list(dict.fromkeys(name for layer in layers for name in getattr(layer, kind)))


def _scaling(made: Program, mean: Array, std: Array | None) -> None:
    """Add the means and the scaling of samples, if any."""
    high, rest = in_floats(mean, np.ones(len(mean)) if std is None else std)
    made.arrays.append(array("model_real", "mean", high))
    if std is None:
        return
    made.flags.add("STANDARDISES")
    made.arrays.append(array("model_real", "scale", 1 / std))
    if np.any(rest):
        made.flags.add("MEAN_REST")
        made.arrays.append(array("model_real", "mean_rest", rest))


def _constants(layer: FixedLayer) -> dict[str, int]:
    """Return shifts and factors of a layer by their names in ``cells_fixed.h``."""
    f, c, kind = layer.formats, layer.factors, layer.layer.kind
    found = {f"{name}_s": shift for name, shift in layer.bias_shifts.items()}
    if kind == "LEM":
        return found | {"target_z": VALUE - f["z"], "target_y": VALUE - f["y"]}
    if kind == "LSTM":
        return found | {"fresh_s": 16 - f["c"], "inside_s": f["c"] + HIDDEN - ARGUMENT}
    if kind == "GRU":
        return found
    if kind == "FastGRNN":
        return found | {"fresh_s": 15 - f["h"], "zeta_m": c["zeta"].m, "nu_m": c["nu"].m}

    def shift(name: str, v_format: int, to: int) -> int:
        return min(31, c[name].f + v_format - to)

    found |= {
        "target": VALUE - layer.force,
        "pull_m": c["frequency"].m,
        "pull_s": shift("frequency", f["y"], layer.force),
        "step_s": shift("step", layer.force, f["z"] + HIDDEN),
    }
    if kind == "UnICORNN":
        found["hh_s"] = shift("hh", f["y"], ARGUMENT)
        return found | {"move_s": shift("step", f["z"], f["y"] + HIDDEN)}
    found |= {"step_m": c["step"].m, "dt_m": c["dt"].m, "leak_m": c["leak"].m}
    found["leak_s"] = shift("leak", f["z"], f["z"] + HIDDEN)
    return found | {"dt_s": shift("dt", f["z"], f["y"] + HIDDEN)}
