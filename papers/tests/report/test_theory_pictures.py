"""Panels of measured curves against their bounds."""

import re
from xml.etree import ElementTree

import pytest
import torch

from anharmonic_papers.report.theory_pictures import HEIGHT, WIDTH, has_curve, panels
from anharmonic_papers.theory import all_statements
from anharmonic_papers.theory.statements import Check


def curve(measured, bound, **settings):
    return Check(torch.as_tensor(measured), torch.as_tensor(bound), **settings)


def points(svg, kind):
    return [
        [tuple(map(float, pair.split(","))) for pair in found.split()]
        for found in re.findall(rf'<polyline class="{kind}" points="([^"]*)"', svg)
    ]


def test_only_curves_are_drawn():
    five = torch.arange(5.0)
    assert has_curve(curve(five, 1.0)) and not has_curve(curve(five[:3], 1.0))
    assert has_curve(curve(five[:3], 1.0, places=five[:3], axis="width m"))
    assert has_curve(curve(torch.stack([five, five]), 1.0, axis="time t"))
    assert not has_curve(curve(five[:2], 1.0, places=five[:2]))
    assert not has_curve(curve(torch.tensor(1.0), 1.0))
    assert not has_curve(curve(five, 1.0, axis="node i"))
    assert not has_curve(curve(torch.ones(4, 4), 1.0))
    assert not has_curve(curve(torch.ones(100, 8, 8), 1.0))
    assert not has_curve(curve(five * 0, 1e-13))  # an identity up to rounding


def test_a_measured_curve_below_its_bound_is_drawn_below():
    svg = panels([curve(torch.arange(1.0, 11), torch.arange(2.0, 12))])
    ElementTree.fromstring(svg)
    (measured,), (bound,) = points(svg, "m"), points(svg, "b")
    assert len(measured) == len(bound) == 10
    assert all(m[0] == b[0] and m[1] > b[1] for m, b in zip(measured, bound, strict=True))
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in measured + bound)


def test_axes_are_named():
    said = all_statements()["g2-no-gating"]
    svg = panels([said.example()])
    for word in ("g2-no-gating", "T 8.2.3, corrected", "time t", "S(t) = Σ X_i² (≤ bound)"):
        assert f">{word}</text>" in svg


def test_slow_times_stand_on_a_logarithmic_axis():
    times = torch.cat([torch.zeros(1), torch.logspace(-2, 4, 25)])
    svg = panels([curve(1 / (1 + times), 1.0, places=times, axis="time t")])
    assert "time t, log scale" in svg
    assert len(points(svg, "m")[0]) == 25  # without time 0


def test_rounding_errors_of_a_constant_are_a_straight_line():
    wavy = 5 + 1e-12 * torch.arange(20.0, dtype=torch.float64).sin()
    svg = panels([curve(wavy, 5.0, relation="==")])
    assert len({y for _, y in points(svg, "m")[0]}) == 1
    assert "(= formula)" in svg


def test_long_curves_are_thinned_and_zeros_left_out_of_logarithms():
    falling = torch.logspace(0, -12, 3000, dtype=torch.float64)
    falling[-1] = 0
    (measured,) = points(panels([curve(falling, falling + 1)]), "m")
    assert 100 < len(measured) < 200


def test_layers_are_whole_numbers():
    svg = panels([curve(torch.arange(4.0, 14), 20.0, places=torch.arange(1, 11), axis="layer l")])
    ticks = re.findall(r'text-anchor="middle">([^<]*)</text>', svg)
    assert ticks and all("." not in tick for tick in ticks)


def test_panels_stand_in_rows_of_three():
    svg = panels([curve(torch.arange(6.0), 6.0)] * 4)
    assert re.findall(r"translate\((\d+),(\d+)\)", svg) == [
        ("0", "0"),
        (str(WIDTH), "0"),
        (str(2 * WIDTH), "0"),
        ("0", str(HEIGHT)),
    ]


def test_there_must_be_a_curve():
    with pytest.raises(ValueError, match="there must be a curve to draw"):
        panels([])


def test_long_names_are_narrowed():
    for quantity, narrow in (("q", 0), ("q" * 60, 1)):
        assert (
            panels([curve(torch.arange(6.0), 6.0, quantity=quantity)]).count("textLength") == narrow
        )
