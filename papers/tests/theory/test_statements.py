"""The register of statements: every one runs, and says of itself what is true of it."""

import re
from functools import partial

import pytest
import torch

import anharmonic as ah
from anharmonic_papers.theory import all_statements
from anharmonic_papers.theory.statements import Check, statement

STATEMENTS = all_statements()


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_example_shows_what_the_statement_says_of_itself(name):
    said = STATEMENTS[name]
    check = said.example()
    assert check.statement is said
    assert check.measured.isfinite().all() and check.bound.isfinite().all()
    if said.state in ("holds", "corrected"):
        assert check.applies and check.holds, str(check)
        # A bound far away would forgive errors; that of unicornn-inverse allows for rounding.
        if said.chapter in ("coRNN", "UnICORNN", "LEM") and name != "unicornn-inverse":
            assert check.relation == "==" or check.ratio > 0.35
    if said.state in ("false", "unread"):  # a counterexample meets every assumption and fails
        assert check.applies and not check.holds, str(check)
    assert not said.contradicted_by(check)


def test_an_example_that_shows_something_else_contradicts_its_statement():
    good, bad = Check(torch.tensor(1.0), torch.tensor(2.0)), Check(torch.tensor(3.0), 2.0)
    outside = Check(torch.tensor(1.0), torch.tensor(2.0), assumptions={"dt ≤ 1": False})
    of_state = {said.state: said for said in STATEMENTS.values()}
    for states, expected in (
        (("holds", "corrected"), [False, True, True]),
        (("false", "unread"), [True, False, True]),
        (("open",), [False, False, False]),
    ):
        for state in states:
            said = of_state[state]
            assert [said.contradicted_by(check) for check in (good, bad, outside)] == expected


def test_a_check_compares_both_sides_and_names_what_lies_outside():
    pair = torch.tensor([1.0, 2.0])
    assert Check(pair, torch.tensor([1.0, 2.5])).holds
    passed = Check(pair, torch.tensor(1.5))
    assert not passed.holds and passed.ratio == pytest.approx(2 / 1.5)
    assert not Check(torch.tensor(float("nan")), torch.tensor(1.0)).holds
    assert not Check(torch.tensor(1.0), torch.tensor(1.1), relation=">=").holds
    formula = partial(Check, torch.tensor(1.01), torch.tensor(1.0), relation="==")
    assert formula(tolerance=0.02).holds and not formula(tolerance=1e-3).holds
    check = Check(torch.tensor(2.0), torch.tensor(1.0), assumptions={"dt ≤ 1": False, "u": True})
    assert not check.applies
    assert str(check) == "fails (outside its assumptions: dt ≤ 1), ratio 2, should be at most 1"


def test_a_model_of_another_class_is_refused():
    check = STATEMENTS["cornn-energy-implicit"].check
    with pytest.raises(
        TypeError, match=r"layer must be a CoRNN; got LEM\(1, 2\); the statement is about"
    ):
        check(ah.LEM(1, 2), torch.zeros(3, 1, 1))


OF_STACKS = {
    "unicornn-volume", "unicornn-memory", "unicornn-sensitivity", "unicornn-states-printed",
    "unicornn-states", "unicornn-states-free", "unicornn-gradient-deep", "unicornn-inverse",
    "unicornn-long-term-deep", "unicornn-long-term-deep-printed", "unicornn-depth-order-printed",
    "unicornn-residual-order",
}  # fmt: skip
OF_BATCHES = re.compile(
    "cornn-(energy|sensitivity)|unicornn-(memory|se|states|hamil|inv)|lem-(st|eq)"
)


@pytest.mark.parametrize(
    "name",
    [name for name, said in STATEMENTS.items() if said.chapter in ("coRNN", "UnICORNN", "LEM")],
)
def test_stacks_and_batches_are_refused_where_a_statement_is_of_one(name):
    said = STATEMENTS[name]
    layer, *more = said.arguments()
    if not isinstance(layer, ah.nn.SequenceLayer):
        return  # a system that LEM emulates
    if name not in OF_STACKS:
        stack = type(layer)(layer.input_size, layer.hidden_size, num_layers=2, dtype=torch.float64)
        with pytest.raises(ValueError, match="one layer in one direction"):
            said.check(stack, *more)
    if more and isinstance(more[0], torch.Tensor) and not OF_BATCHES.match(name):
        with pytest.raises(ValueError, match="one sequence"):
            said.check(layer, torch.cat([more[0], more[0]], 1), *more[1:])


def test_names_are_taken_once():
    def taken():
        """A claim."""

    taken.__name__ = next(iter(STATEMENTS)).replace("-", "_")
    with pytest.raises(ValueError, match="names of their own"):
        statement("", "open", chapter="coRNN", example=Check)(taken)
    with pytest.raises(ValueError, match="state must be"):
        statement("", "true", chapter="coRNN", example=Check)
