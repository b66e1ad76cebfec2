"""Batch renormalisation: batch normalisation at first, corrected towards the running statistics later."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from everlearn.nets.layers.norm import EPS
from everlearn.nets.layers.renorm import (
    D_MAX,
    GROWTH,
    INITIAL_MOMENTUM,
    R_MAX,
    Renorm,
    end_renorm_warmup,
)
from everlearn.nets.precision import bfloat16_weights
from everlearn.training.captured_step import CapturedStep

SHAPES = [(6, 8, 5, 7), (16, 8), (2, 8, 1, 3)]


def random(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def layer(relu=False, **limits):
    """A layer with random weights."""
    out = Renorm(8, relu, **limits).double()
    with torch.no_grad():
        out.weight.copy_(random(8, 1))
        out.bias.copy_(random(8, 2))
    return out


def limited(r, d):
    """A layer at given limits, with running statistics unlike those of a batch."""
    out = layer(r_max=r, d_max=d)
    end_renorm_warmup(out, 0.25)
    with torch.no_grad():
        out.mean.copy_(2 + random(8, 3))
        out.std.copy_(0.5 + random(8, 4).abs())
    return out


def oracle(x, weight, bias, mean, std, r_max, d_max):
    """Values, r, d and batch statistics by numpy, one channel after another."""
    out, found = np.empty_like(x), []
    for c in range(x.shape[1]):
        m, s = x[:, c].mean(), np.sqrt(x[:, c].var() + EPS)
        r = min(max(s / std[c], 1 / r_max), r_max)
        d = min(max((m - mean[c]) / std[c], -d_max), d_max)
        out[:, c] = weight[c] * ((x[:, c] - m) / s * r + d) + bias[c]
        found.append((r, d, m, s))
    return out, *np.array(found).T


def by_oracle(ours, x):
    r, d = ours.r_max, ours.d_max
    arrays = [one.detach().numpy() for one in (x, ours.weight, ours.bias, ours.mean, ours.std)]
    return oracle(*arrays, r, d)


def gradients(out, *leaves):
    return torch.autograd.grad((out * random(out.shape, 9)).sum(), leaves)


def assert_close(found, expected, within=1e-10):
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two, rtol=within, atol=within)


@pytest.mark.parametrize("shape", SHAPES)
def test_without_a_correction_it_is_batch_normalisation(shape):
    ours = layer(r_max=1, d_max=0)
    theirs = (nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(8).double()
    theirs.load_state_dict({"weight": ours.weight, "bias": ours.bias}, strict=False)
    for step in range(3):
        x = (3 + 2 * random(shape, step)).requires_grad_()
        found, expected = ours(x), theirs(x)
        assert_close([found], [expected], 1e-6)
        assert_close(
            gradients(found, x, ours.weight, ours.bias),
            gradients(expected, x, theirs.weight, theirs.bias),
            1e-6,
        )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("r", "d"), [(1.25, 0.5), (1.01, 5.0), (3.0, 0.01)])
def test_training_gives_the_values_and_running_statistics_of_the_formula(shape, r, d):
    ours, x = limited(r, d), 3 + 2 * random(shape, 5)
    mean, std = ours.mean.clone(), ours.std.clone()
    expected, _, _, batch_mean, batch_std = by_oracle(ours, x)
    assert_close([ours(x)], [torch.from_numpy(expected)])
    moved = [0.75 * mean + 0.25 * torch.from_numpy(batch_mean)]
    moved += [0.75 * std + 0.25 * torch.from_numpy(batch_std)]
    assert_close([ours.mean, ours.std], moved)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_gradient_passes_through_r_and_d(shape):
    ours, x = limited(10.0, 10.0), (3 + 2 * random(shape, 5)).requires_grad_()
    _, r, d, m, s = by_oracle(ours, x)
    found = gradients(ours(x), x, ours.weight, ours.bias)
    wide = [1, 8] + [1] * (len(shape) - 2)
    r, d, m, s = (torch.from_numpy(one).view(wide) for one in (r, d, m, s))
    gradient = random(shape, 9)
    dims = [0, *range(2, len(shape))]
    # By hand: x' = (x - m) / s, and the gradient of x' is that of the output times weight and r.
    x_hat = (x - m) / s
    g = gradient * ours.weight.view(wide) * r
    means = [value.mean(dims, keepdim=True) for value in (g, g * x_hat)]
    x_gradient = (g - means[0] - x_hat * means[1]) / s
    weight_gradient = (gradient * (x_hat * r + d)).sum(dims)
    assert_close(found, [x_gradient, weight_gradient, gradient.sum(dims)])


def test_limits_start_at_no_correction_and_grow_with_every_image_to_their_maxima():
    ours = Renorm(8)
    images = 0
    assert (float(ours.r), float(ours.d), float(ours.momentum)) == pytest.approx(
        (1, 0, INITIAL_MOMENTUM)
    )
    for step, count in enumerate([128, 16, 128, *[2000] * 6]):
        ours(random((count, 8), step).float())
        images += count
        assert float(ours.r) == pytest.approx(min(1 + GROWTH * images, R_MAX), abs=1e-6)
        assert float(ours.d) == pytest.approx(min(GROWTH * images, D_MAX), abs=1e-6)
    assert (float(ours.r), float(ours.d)) == (R_MAX, D_MAX)


def test_the_first_batch_is_normalised_as_by_batch_normalisation():
    x = 3 + 2 * random(SHAPES[0], 0)
    assert_close([layer()(x)], [layer(r_max=1, d_max=0)(x)])


def test_ending_the_warm_up_sets_every_layer_in_place():
    net = nn.Sequential(Renorm(8), nn.Sequential(nn.ReLU(), Renorm(8, r_max=2, d_max=3)))
    places = [buffer.data_ptr() for buffer in net.buffers()]
    end_renorm_warmup(net)
    layers = [one for one in net.modules() if isinstance(one, Renorm)]
    assert [(float(one.r), float(one.d)) for one in layers] == [(R_MAX, D_MAX), (2, 3)]
    assert [float(one.momentum) for one in layers] == pytest.approx([5e-5] * 2)
    assert [buffer.data_ptr() for buffer in net.buffers()] == places


def test_a_step_updates_every_buffer_in_place():
    ours = Renorm(8)
    places = [buffer.data_ptr() for buffer in ours.buffers()]
    ours(random(SHAPES[0], 0).float())
    assert [buffer.data_ptr() for buffer in ours.buffers()] == places
    assert not any(buffer.requires_grad for buffer in ours.buffers())


def test_evaluation_uses_the_running_statistics_and_changes_nothing():
    ours, x = limited(1.25, 0.5).eval(), random(SHAPES[0], 5)
    before = [buffer.clone() for buffer in ours.buffers()]
    wide = [one.view(1, 8, 1, 1) for one in (ours.mean, ours.std, ours.weight, ours.bias)]
    assert_close([ours(x)], [(x - wide[0]) / wide[1] * wide[2] + wide[3]])
    assert_close(ours.buffers(), before, 0)


@pytest.mark.parametrize("training", [True, False])
def test_the_addition_comes_before_the_relu(training):
    x, residual = random(SHAPES[0], 5), random(SHAPES[0], 6)
    linear = layer(relu=False).train(training)
    rectified = layer(relu=True).train(training)
    assert_close([rectified(x, residual)], [(linear(x) + residual).relu()])


@pytest.mark.parametrize("training", [True, False])
def test_running_statistics_stay_float32_for_bfloat16_images(training):
    ours, x = Renorm(8).train(training), (100 + random((512, 8, 4, 4), 5)).bfloat16()
    assert ours(x).dtype == torch.bfloat16
    assert {buffer.dtype for buffer in ours.buffers()} == {torch.float32}
    moved = INITIAL_MOMENTUM * x.double().mean((0, 2, 3)) if training else torch.zeros(8)
    assert_close([ours.mean.double()], [moved.double()], 1e-6)


def test_its_weights_stay_float32_on_a_gpu():
    net = nn.Sequential(nn.Conv2d(3, 8, 1), Renorm(8))
    assert [name for name, _ in bfloat16_weights(net)] == ["0.weight", "0.bias"]


@pytest.mark.gpu
def test_a_captured_step_updates_the_buffers_as_an_eager_one():
    images = [3 + 2 * random((64, 8, 4, 4), step).float().cuda() for step in range(4)]
    captured, eager = Renorm(8).cuda(), Renorm(8).cuda()
    step = CapturedStep(lambda x: captured(x).sum(), captured.state_dict().values())
    for batch in images:
        step(batch), eager(batch)
    assert_close(captured.buffers(), eager.buffers(), 1e-6)
    assert float(captured.r) == pytest.approx(1 + GROWTH * 4 * 64)
