"""The library's public suite over the papers' rival models."""

import functools

import pytest
import torch

from anharmonic.nn import list_models, model_class
from anharmonic.ops import use_backend
from anharmonic.testing import sequence_layer_checks

VARIANTS = {
    "AntisymmetricRNN": [{"dt": 0.3}],
    "GatedAntisymmetricRNN": [{"dt": 0.3, "bias": False}],
    "ExpRNN": [{"initialisation": "henaff"}, {"bias": False}],
    "IndRNN": [{"longest_dependency": 1000}, {"activation": "tanh", "bias": False}],
    "FastRNN": [{}],
    "LipschitzRNN": [{"dt": 0.3, "scheme": "midpoint"}, {"dt": 0.4, "bias": False}],
}
TIMED = ("AntisymmetricRNN", "GatedAntisymmetricRNN", "LipschitzRNN")
CHECKS = [
    pytest.param(name, options, title, check, id=f"{name}-{options}-{title}")
    for name, variants in VARIANTS.items()
    for variant in variants
    for options in (variant, {**variant, "num_layers": 2, "bidirectional": True})
    for title, check in sequence_layer_checks(
        functools.partial(model_class(name), **options), elapsed=name in TIMED
    )
]


def test_every_rival_is_covered():
    rivals = [n for n in list_models() if model_class(n).__module__.startswith("anharmonic_pap")]
    assert set(VARIANTS) == set(rivals)


@pytest.mark.covering("name title", "name options")
@pytest.mark.parametrize("name, options, title, check", CHECKS)
# Compiling takes a second; the fast suite does it below.
@pytest.mark.parametrize("backend", ["reference", pytest.param("auto", marks=pytest.mark.slow)])
def test_contract(name, options, title, check, backend):
    with use_backend(backend):
        check()


@pytest.mark.fast("IndRNN", "LipschitzRNN")  # ops/compiler/test_truth.py has the steps of all
@pytest.mark.parametrize("name", VARIANTS)
def test_compiled_steps_are_the_loop(name):
    for options in VARIANTS[name]:
        found = []
        for compiled in (True, False):
            torch.manual_seed(0)
            layer = model_class(name)(3, 5, **options, dtype=torch.float64)
            layer.compiled = compiled
            x = torch.randn(40, 4, 3, dtype=torch.float64, requires_grad=True)
            output, state = layer(x)
            assert ("at every step" in layer.explain()) is compiled
            loss = output.square().sum() + sum(part.sum() for part in state)
            gradients = torch.autograd.grad(loss, [x, *layer.parameters()])
            found.append([output.detach(), *(part.detach() for part in state), *gradients])
        for ours, right in zip(*found, strict=True):
            assert (ours - right).abs().max() <= 1e-12 * right.abs().max().clamp(min=1)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("IndRNN", {"activation": "gelu"}, "activation must be one of 'relu', 'tanh'"),
        ("IndRNN", {"longest_dependency": 0}, "longest_dependency must be an int >= 1"),
        ("LipschitzRNN", {"skewness": 1.5}, r"skewness must be a finite number in \[0, 1\]"),
        ("LipschitzRNN", {"scheme": "rk4"}, "scheme must be one of 'euler', 'midpoint'"),
        ("ExpRNN", {"initialisation": "henaf"}, "initialisation must be one of 'cayley', 'henaff'"),
        ("AntisymmetricRNN", {"dt": 0.0}, "dt must be a finite number in"),
        ("AntisymmetricRNN", {"diffusion": -1.0}, "diffusion must be a finite number in"),
        *(
            (name, {option: value}, rf"{option} must be a finite number in \(0, 1\)")
            for name, option in (
                ("FastRNN", "update_weight"),
                ("FastRNN", "carry_weight"),
                ("FastGRNN", "gate_scale"),
                ("FastGRNN", "gate_shift"),
            )
            for value in (0.0, 1.0, -0.1)
        ),
    ],
)
def test_options_that_a_model_cannot_use_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        model_class(name)(3, 5, **options)
