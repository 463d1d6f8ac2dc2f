"""Back through a stack tile by tile, the last tile first, on a device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anharmonic.ops.gpu.parts import Sums
from anharmonic.ops.gpu.tiles import Walk
from anharmonic.ops.precision import add_product, library_products, operand, product


def backward(
    grad_output: Tensor | None,
    grad_y: Tensor | None,
    grad_z: Tensor | None,
    saved: Tensor,
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    values: Tensor,
    elapsed: Tensor | None,
    lengths: Tensor | None,
    masks: Sequence[Tensor],
    name: str,
    skip: int,
    policy: str,
    precision: str,
    needs_x: bool,
    needs_elapsed: bool,
) -> list[Tensor]:
    """Gradients of x, y0, z0, scalars, elapsed and weights; those not needed have size 0."""
    walk = Walk(
        x, weights, y0, values, elapsed, lengths, masks, name, skip, policy, precision, saved
    )
    model, states, layers = walk.model, walk.states, walk.layers
    shape = (layers, walk.batch, walk.hidden)
    carried = [
        y0.new_zeros(shape, dtype=torch.float32)
        if grad is None
        else grad.to(torch.float32, copy=True)
        for grad in (grad_y, grad_z)
    ]
    carried = [grad.contiguous() for grad in carried]
    grads = [w.new_zeros(w.shape, dtype=torch.float32) for w in weights]
    per = 3 + model.recurrent
    elementwise = y0.new_zeros((layers, model.elementwise_sums, *shape[1:]), dtype=torch.float32)
    grad_x = x.new_empty(x.shape if needs_x else (0,))
    grad_elapsed = y0.new_zeros(elapsed.shape if elapsed is not None and needs_elapsed else (0,),
                                dtype=torch.float32)  # fmt: skip
    if policy == "reversible":
        walk.grid = saved.clone()
    with library_products(precision, x.device):
        for first in reversed(range(0, walk.steps, walk.tile)):
            n = min(walk.tile, walk.steps - first)
            if policy == "chunked":
                if model.grid:
                    walk.grid = saved[first // walk.tile].clone()
                else:
                    states[:, :, 0] = saved[first // walk.tile]
            if walk.stored:
                levels = [walk.source(first)]
                levels += [walk.level(k, walk.part(k, first)) for k in range(layers - 1)]
            else:
                levels = walk.through(first, back=policy == "reversible")
            runs = walk.runs(first, n)
            due: list[Tensor | None] = [None] * (layers + 1)
            if grad_output is not None:
                due[layers] = grad_output[first : first + n].float()
            for layer in reversed(range(layers)):
                part, grad = walk.part(layer, first), due[layer + 1]
                if grad is not None:
                    if layer < len(masks):
                        grad = grad * masks[layer]
                    if runs is not None:
                        grad = torch.where(runs, grad, 0.0)
                    grad = grad.contiguous()
                sums = Sums(
                    grad, carried[0][layer], carried[1][layer],
                    part.acts.new_empty(part.acts.shape),
                    part.acts.new_empty((n, *shape[1:])) if grad_elapsed.numel() else None,
                    elementwise[layer],
                )  # fmt: skip
                model.backward(part, sums)
                if sums.by_gap is not None:
                    grad_elapsed[first : first + n] += sums.by_gap.sum(-1)
                own = grads[layer * per : (layer + 1) * per]
                model.add_weight_gradients(part, sums, own[3:])
                _through_inputs(walk, layer, levels, due, sums.g, own, needs_x)
            if needs_x:
                assert due[0] is not None
                grad_x[first : first + n] = due[0]
    grad_values = torch.zeros_like(values)
    for layer in range(layers):
        own = grads[layer * per + 3 : (layer + 1) * per]
        model.finish(elementwise[layer], own, grad_values)
    kinds = zip(grads, weights, strict=True)
    return [
        grad_x, *(grad.to(y0.dtype) for grad in carried), grad_values,
        grad_elapsed if elapsed is None else grad_elapsed.to(elapsed.dtype),
        *(grad.to(w.dtype) for grad, w in kinds),
    ]  # fmt: skip


def _through_inputs(
    walk: Walk,
    layer: int,
    levels: list[Tensor],
    due: list[Tensor | None],
    g: Tensor,
    grads: list[Tensor],
    needs_x: bool,
) -> None:
    """From the gradient of a layer's drive to those of V, b, Λ and the levels below."""
    back = walk.rows(g)
    V, _, skip = walk.inputs[layer]
    sources = [(layer, V, grads[0])]
    if skip.numel():
        sources.append((layer - walk.skip, skip, grads[2]))
    for level, matrix, grad in sources:
        add_product(grad, back.t(), walk.rows(levels[level]))
        if level > 0 or needs_x:
            down = product(back, operand(matrix, walk.precision)).view(*g.shape[:2], -1)
            before = due[level]
            due[level] = down if before is None else before + down
    if grads[1].numel():
        grads[1] += g.sum((0, 1))
