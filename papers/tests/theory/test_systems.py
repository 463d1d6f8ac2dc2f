"""The systems that LEM is held against, in cases with a closed form."""

import torch

from anharmonic_papers.theory.networks import random_network
from anharmonic_papers.theory.systems import (
    multiscale_method_states,
    random_rnn,
    scales_states,
    system_states,
)

F64 = torch.float64


def test_a_random_rnn_is_an_rnn():
    torch.manual_seed(0)
    f, u = random_rnn(4, 2), torch.randn(5, 2, dtype=F64)
    rnn = torch.nn.RNN(2, 4, dtype=F64)
    with torch.no_grad():
        rnn.weight_hh_l0.copy_(f.inputs[0])
        rnn.weight_ih_l0.copy_(f.inputs[1])
        rnn.bias_ih_l0.copy_(f.bias)
        rnn.bias_hh_l0.zero_()
        torch.testing.assert_close(system_states(f, u), rnn(u)[0])


def test_a_slow_variable_moves_by_tau():
    torch.manual_seed(0)
    sizes = (2, 1, 1)
    f, G, u = random_network(2, 3, sizes), random_network(1, 3, sizes), torch.randn(4, 1, dtype=F64)
    phi, (psi,) = scales_states(f, [(G, 0.25)], u)
    zero = torch.zeros(1, dtype=F64)
    first = f(torch.zeros(2, dtype=F64), zero, u[0])
    torch.testing.assert_close(phi[0], first)
    torch.testing.assert_close(psi[0], 0.25 * G(first, zero, u[0]))
    torch.testing.assert_close(psi[3], 0.75 * psi[2] + 0.25 * G(phi[3], psi[2], u[3]))


def test_micro_steps_are_one_step_of_kappa():
    phi, psi = multiscale_method_states(
        lambda c: 1 + 0 * c, lambda h, c: h, (1, 1), micro=0.1, micro_steps=5, step=0.5, steps=3
    )
    kappa = 0.9**5
    closed = 1 - kappa ** torch.arange(1, 4, dtype=F64)
    torch.testing.assert_close(phi[:, 0], closed)
    torch.testing.assert_close(psi[:, 0], 0.5 * closed.cumsum(0))
