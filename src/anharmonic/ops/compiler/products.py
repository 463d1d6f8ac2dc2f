"""Products of rows with more than two dimensions, as operations that are compiled.

PyTorch computes ``torch.einsum`` and ``@`` of such tensors with reshapes that join sequences and
features. Here a product with weights becomes one product with a matrix for each head, and a product
of two tensors of rows becomes a sum of elementwise products.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_MATMUL = {torch.matmul, torch.bmm, Tensor.matmul, Tensor.bmm, Tensor.__matmul__}


def product(function: Any, args: Any, kwargs: Any) -> Tensor | None:
    """Return the result of a call in PyTorch; None if it is no product that must be rewritten."""
    if kwargs:
        return None
    if function is torch.einsum:
        equation, *operands = args
        operands = operands[0] if isinstance(operands[0], (tuple, list)) else operands
        inputs, arrow, out = equation.replace(" ", "").partition("->")
        if len(operands) != 2 or not arrow or "." in equation:
            return None
        x_letters, y_letters = inputs.split(",")
        return _einsum(operands[0], x_letters, operands[1], y_letters, out)
    if function is F.linear and args[0].dim() > 2:
        x, weight, *bias = args
        rows = "abcdefgh"[: x.dim() - 1]
        found = _einsum(x, rows + "y", weight, "zy", rows + "z")
        return found if found is None or bias in ([], [None]) else found + bias[0]
    if function in _MATMUL and max(args[0].dim(), args[1].dim()) > 2 <= args[0].dim():
        x, y = args
        x_rows, y_rows = ("abcdefgh"[8 - max(t.dim() - 2, 0) :] for t in (x, y))
        column = "z" if y.dim() > 1 else ""
        rows = max(x_rows, y_rows, key=len)
        return _einsum(x, x_rows + "xy", y, y_rows + "y" + column, rows + "x" + column)
    return None


def _einsum(x: Tensor, x_letters: str, y: Tensor, y_letters: str, out: str) -> Tensor | None:
    """Return the product of two tensors whose axes have letters; axes of size 1 are repeated."""
    sizes = dict.fromkeys(out, 1)
    for tensor, letters in ((x, x_letters), (y, y_letters)):
        if len(set(letters)) < len(letters) or len(letters) != tensor.dim():
            return None
        for letter, size in zip(letters, tensor.shape, strict=True):
            sizes[letter] = size if sizes.get(letter, 1) == 1 else sizes[letter]
    shape = [sizes[letter] for letter in out]
    x, x_letters = _without_ones(x, x_letters)
    y, y_letters = _without_ones(y, y_letters)
    out = "".join(letter for letter in out if letter in x_letters + y_letters)
    if not out or out[0] not in x_letters[:1] + y_letters[:1]:
        return None
    if x_letters[:1] != out[0]:
        x, x_letters, y, y_letters = y, y_letters, x, x_letters
    found = _with_weights(x, x_letters, y, y_letters, out, sizes)
    if found is None:
        found = _elementwise(x, x_letters, y, y_letters, out)
    return None if found is None else found.reshape(shape)


def _without_ones(x: Tensor, letters: str) -> tuple[Tensor, str]:
    kept = [k for k, size in enumerate(x.shape) if size != 1]
    return x.reshape([x.shape[k] for k in kept]), "".join(letters[k] for k in kept)


def _with_weights(
    x: Tensor, x_letters: str, w: Tensor, w_letters: str, out: str, sizes: dict[str, int]
) -> Tensor | None:
    """Return one product of columns of rows x with a matrix of weights w for each head."""
    heads = [letter for letter in out[1:] if letter in x_letters]
    summed = [letter for letter in x_letters[1:] if letter not in out]
    made = [letter for letter in out[1:] if letter not in x_letters]
    given, order = list(w_letters), [*heads, *summed, *made]
    fits = list(x_letters) == [out[0], *heads, *summed] and list(out) == [out[0], *heads, *made]
    if not (fits and {*summed, *made} <= set(given) <= set(order) and (summed or made)):
        return None
    count, inner, outer = (math.prod(sizes[n] for n in names) for names in (heads, summed, made))
    w = w.permute([given.index(letter) for letter in order if letter in given])
    if set(heads) & set(given):
        w = w.reshape([sizes[letter] if letter in given else 1 for letter in order])
        w = w.expand([sizes[letter] for letter in order]).reshape(count, inner, outer)
        matrices = list(w.unbind(0))
    else:
        matrices = [w.reshape(inner, outer)] * count
    columns = torch.split(x.reshape(len(x), count * inner), inner, 1)
    return torch.cat([part @ matrix for part, matrix in zip(columns, matrices, strict=True)], 1)


def _elementwise(x: Tensor, x_letters: str, y: Tensor, y_letters: str, out: str) -> Tensor | None:
    """Return the sum of elementwise products, if the axes need no other order.

    Only of two tensors of rows: with weights it would have a column for each weight.
    """
    if out[0] not in y_letters and set(x_letters + y_letters) != set(out):
        return None
    letters = "".join(dict.fromkeys(x_letters + y_letters))
    for order in itertools.permutations(letters):
        if all(
            [letter for letter in order if letter in names] == list(names)
            for names in (x_letters, y_letters, out)
        ):
            break
    else:
        return None
    x, y = (
        tensor.reshape([tensor.shape[names.index(n)] if n in names else 1 for n in order])
        for tensor, names in ((x, x_letters), (y, y_letters))
    )
    summed = [k for k, letter in enumerate(order) if letter not in out]
    return (x * y).sum(summed) if summed else x * y
