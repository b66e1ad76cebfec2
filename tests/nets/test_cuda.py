"""On a GPU: fused layers are as exact as torch's in bfloat16, and give the same bits each time."""

from __future__ import annotations

import copy
from functools import partial

import pytest
import torch
from torch.nn.functional import max_pool2d, relu

from everlearn.nets import build_net
from everlearn.nets.layers import norm as norms
from everlearn.nets.layers import stem as stems
from everlearn.nets.layers.norm import Norm
from everlearn.nets.layers.stem import GradientTiling, Stem
from everlearn.nets.precision import deterministic, eval_mode, forward_pass, to_device

pytestmark = pytest.mark.gpu

# Few rows and many, with full and incomplete blocks: all ways of tiling.
NORM_SHAPES = [
    (4, 64, 1, 1),
    (3, 64, 5, 7),
    (7, 512, 3, 3),
    (17, 128, 28, 28),
    (256, 64, 16, 16),
    (5, 192, 57, 57),
]
ADDITIONS = [(False, True), (True, True), (False, False), (True, False)]
STEM_SHAPES = [
    (2, 1, 4, 4),
    (3, 2, 12, 12),
    (5, 1, 32, 32),
    (33, 1, 64, 64),
    (3, 3, 100, 100),
    (4, 3, 224, 224),
]


def random(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def to_bfloat16(value):
    """On a GPU, in bfloat16 and channels last, as the kernels expect it."""
    return value.cuda().to(torch.bfloat16, memory_format=torch.channels_last)


def assert_as_exact(found, plain, truth):
    """Each error of ours is at most half as much again as that of torch in bfloat16."""
    for place, (ours, theirs, right) in enumerate(zip(found, plain, truth, strict=True)):
        ours, theirs, right = (one.detach().double().cpu() for one in (ours, theirs, right))
        assert ours.shape == right.shape
        assert ours.isfinite().all()
        error, allowed = (ours - right).norm(), (theirs - right).norm()
        assert error <= 1.5 * allowed + 1e-3 * right.norm() + 1e-6, (place, error, allowed)


def assert_same(found, expected):
    assert all(torch.equal(one, two) for one, two in zip(found, expected, strict=True))


def assert_near(one, two):
    """Equal but for the rounding to bfloat16."""
    torch.testing.assert_close(one, two, rtol=2e-2, atol=1e-3)


class NormTrial:
    """A layer, its inputs and the gradient of its output."""

    def __init__(self, shape, add, relu_on):
        channels = shape[1]
        self.layer = Norm(channels, relu_on)
        with torch.no_grad():
            self.layer.weight.copy_(1 + 0.5 * random(channels, 1))
            self.layer.bias.copy_(random(channels, 2))
        # Every channel has a mean and a deviation of its own.
        spread, middle = random((1, channels, 1, 1), 3).exp(), 2 * random((1, channels, 1, 1), 4)
        self.x = (middle + spread * random(shape, 5)).bfloat16()
        self.residual = random(shape, 6).bfloat16() if add else None
        self.gradient = random(shape, 7).bfloat16()

    def run(self, place, apply):
        """Return values, gradients and running statistics; `place` moves tensors to their device."""
        layer = copy.deepcopy(self.layer)
        x = place(self.x).requires_grad_()
        layer = layer.double() if x.dtype == torch.float64 else layer.to(x.device)
        inputs = [x] if self.residual is None else [x, place(self.residual).requires_grad_()]
        out = apply(layer, *inputs)
        gradients = torch.autograd.grad(
            out, [*inputs, layer.weight, layer.bias], place(self.gradient)
        )
        return [out, *gradients, layer.mean, layer.var]


def apply_fused(layer, x, residual=None):
    assert norms.is_fusible(x, residual)
    return layer(x, residual)


def apply_plain(layer, x, residual=None):
    out = layer.plain(x) if residual is None else layer.plain(x) + residual
    return relu(out) if layer.relu else out


@pytest.mark.parametrize("shape", NORM_SHAPES)
@pytest.mark.parametrize(("add", "relu_on"), ADDITIONS)
def test_a_fused_norm_is_as_exact_as_torch_in_bfloat16(shape, add, relu_on):
    trial = NormTrial(shape, add, relu_on)
    found = trial.run(to_bfloat16, apply_fused)
    assert found[0].dtype == torch.bfloat16
    assert_as_exact(
        found, trial.run(to_bfloat16, apply_plain), trial.run(torch.Tensor.double, apply_plain)
    )


@pytest.mark.parametrize("shape", NORM_SHAPES)
def test_a_fused_norm_gives_the_same_bits_twice(shape):
    trial = NormTrial(shape, add=True, relu_on=True)
    assert_same(trial.run(to_bfloat16, apply_fused), trial.run(to_bfloat16, apply_fused))


def test_a_fused_norm_takes_gradients_in_any_memory_format():
    trial = NormTrial((6, 64, 1, 1), add=False, relu_on=True)
    layer, x = trial.layer.cuda(), to_bfloat16(trial.x).requires_grad_()
    # The gradient of the mean over positions is expanded with a stride of 0.
    layer(x).mean((2, 3)).sum().backward()
    again = to_bfloat16(trial.x).requires_grad_()
    layer(again).backward(torch.ones_like(again))
    assert torch.equal(x.grad, again.grad)


@pytest.mark.parametrize(
    "x",
    [
        random((4, 32, 5, 5), 0).bfloat16().to(memory_format=torch.channels_last),
        random((4, 64, 5, 5), 0).bfloat16(),
        random((4, 64, 5, 5), 0).to(memory_format=torch.channels_last),
    ],
    ids=["half a block of channels", "channels first", "float32"],
)
def test_a_norm_of_unsupported_inputs_is_plain(x):
    layer, x = Norm(x.shape[1]).cuda(), x.cuda()
    assert not norms.is_fusible(x)
    assert_near(layer(x), relu(layer.plain(x)))


def test_a_norm_with_an_unsupported_residual_is_plain():
    layer, x = Norm(64).cuda(), to_bfloat16(random((4, 64, 5, 5), 0))
    row, channels_first = (
        to_bfloat16(random((1, 64, 1, 1), 1)),
        random(x.shape, 2).cuda().bfloat16(),
    )
    for residual in (row, channels_first, channels_first.float()):
        assert not norms.is_fusible(x, residual)
        assert_near(layer(x, residual), relu(layer.plain(x) + residual))


def test_a_norm_of_too_few_or_too_many_rows_is_not_fused():
    assert not norms.is_fusible(to_bfloat16(torch.zeros(1, 64, 1, 1)))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        Norm(64).cuda()(to_bfloat16(torch.zeros(1, 64, 1, 1)))
    huge = torch.empty((2**25, 64, 1, 1), dtype=torch.bfloat16, device="cuda")
    assert not norms.is_fusible(huge)
    assert norms.is_fusible(huge[:-1])


@pytest.mark.parametrize("shape", [*NORM_SHAPES, (3, 64, 2, 2), (1, 64, 1, 1)])
@pytest.mark.parametrize(("add", "relu_on"), [(False, True), (True, True), (False, False)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_a_fused_norm_with_instance_statistics_is_exact(shape, add, relu_on, dtype, layout):
    trial = NormTrial(shape, add, relu_on)
    layer = trial.layer.eval()
    layer.instance_weight = 0.25
    with torch.no_grad():
        layer.mean.copy_(random(shape[1], 8))
        layer.var.copy_(random(shape[1], 9).exp())
        inputs = [trial.x] if trial.residual is None else [trial.x, trial.residual]
        right = apply_plain(copy.deepcopy(layer).double(), *(one.double() for one in inputs))
        layer.cuda()
        placed = [one.cuda().to(dtype, memory_format=layout) for one in inputs]
        found = layer(*placed)
        assert found.dtype == dtype
        allowed = 2**-8 if dtype == torch.bfloat16 else 1e-5
        torch.testing.assert_close(found.double().cpu(), right, rtol=allowed, atol=allowed)
        assert torch.equal(found, layer(*placed))
        assert torch.equal(found[:2], layer(*(one[:2] for one in placed)))


def test_a_net_with_instance_statistics_uses_the_kernel_alone(monkeypatch):
    net, images = to_device(build_net("resnet18", 1, 6, 64, 0), "cuda"), random((5, 1, 64, 64), 1)
    norms.use_instance_stats(net, 0.1)
    with eval_mode(net), monkeypatch.context() as plain:
        plain.setattr(norms, "_is_fusible_in_eval", lambda *_: False)
        expected = forward_pass(net, images.cuda())
    monkeypatch.setattr(Norm, "_instance_norm", None)
    with eval_mode(net):
        found = forward_pass(net, images.cuda())
    assert (found - expected).norm() <= 1e-2 * expected.norm()


def test_a_norm_in_evaluation_changes_no_running_statistics():
    layer, x = Norm(64).cuda().eval(), to_bfloat16(3 + random((4, 64, 5, 5), 0))
    layer(x)
    assert not layer.mean.any()
    assert (layer.var == 1).all()


class StemTrial:
    """A stem, its images and the gradient of its output."""

    def __init__(self, shape):
        self.layer = Stem(shape[1])
        with torch.no_grad():
            self.layer.conv.weight.copy_(0.2 * random((64, shape[1], 7, 7), 1))
            self.layer.norm.weight.copy_(1 + 0.5 * random(64, 2))
            self.layer.norm.bias.copy_(0.5 * random(64, 3))
        self.layer.conv.bfloat16()
        self.images = random(shape, 4).bfloat16()
        self.gradient = random((shape[0], 64, shape[2] // 4, shape[3] // 4), 5).bfloat16()

    def run(self, place, apply):
        """Return values, gradients and running statistics; `place` moves tensors to their device."""
        layer, images = copy.deepcopy(self.layer), place(self.images)
        layer = layer.double() if images.dtype == torch.float64 else layer.to(images.device)
        out = apply(layer, images)
        gradients = torch.autograd.grad(out, list(layer.parameters()), place(self.gradient))
        return [out, *gradients, layer.norm.mean, layer.norm.var]


def stem_fused(layer, images):
    assert stems.is_fusible(images)
    return layer(images)


def stem_plain(layer, images):
    return max_pool2d(relu(layer.norm.plain(layer.conv(images))), 3, 2, 1)


@pytest.mark.parametrize("shape", STEM_SHAPES)
def test_a_fused_stem_is_as_exact_as_torch_in_bfloat16(shape):
    trial = StemTrial(shape)
    found = trial.run(to_bfloat16, stem_fused)
    assert found[0].dtype == torch.bfloat16
    assert found[0].is_contiguous(memory_format=torch.channels_last)
    assert_as_exact(
        found, trial.run(to_bfloat16, stem_plain), trial.run(torch.Tensor.double, stem_plain)
    )


@pytest.mark.parametrize("shape", STEM_SHAPES)
def test_a_fused_stem_gives_the_same_bits_twice(shape):
    trial = StemTrial(shape)
    assert_same(trial.run(to_bfloat16, stem_fused), trial.run(to_bfloat16, stem_fused))


@pytest.mark.parametrize("tiling", [(1, 16, 4, 1), (64, 32, 8, 2), (300, 16, 8, 3)])
@pytest.mark.parametrize("shape", [(3, 2, 12, 12), (33, 1, 64, 64)])
def test_every_tiling_of_the_filter_gradient_is_as_exact_as_torch(shape, tiling, monkeypatch):
    monkeypatch.setattr(
        stems, "filter_gradient", partial(stems.filter_gradient, tiling=GradientTiling(*tiling))
    )
    trial = StemTrial(shape)
    assert_as_exact(
        trial.run(to_bfloat16, stem_fused),
        trial.run(to_bfloat16, stem_plain),
        trial.run(torch.Tensor.double, stem_plain),
    )


def test_a_fused_stem_takes_images_in_any_memory_format():
    trial = StemTrial((5, 3, 32, 32))
    first = trial.run(lambda one: one.cuda().contiguous(), stem_fused)
    assert_same(first, trial.run(to_bfloat16, stem_fused))


@pytest.mark.parametrize("shape", [(3, 1, 30, 30), (3, 1, 33, 33), (3, 3, 32, 64)])
def test_a_stem_of_unsupported_sizes_still_trains(shape):
    layer, images = StemTrial(shape).layer.cuda(), to_bfloat16(random(shape, 0))
    assert not stems.is_fusible(images)
    with deterministic():
        out = layer(images)
    # The convolution is torch's; the normalisation after it is fused where it can be.
    with deterministic():
        expected = max_pool2d(layer.norm(layer.conv(images)), 3, 2, 1)
    assert torch.equal(out, expected)


def test_a_stem_is_not_fused_for_float32_or_where_images_need_a_gradient():
    images = random((2, 1, 32, 32), 0)
    assert not stems.is_fusible(images.cuda())
    assert not stems.is_fusible(to_bfloat16(images).requires_grad_())
    assert not stems.is_fusible(images.bfloat16())
    wanted = to_bfloat16(images).requires_grad_()
    StemTrial(images.shape).layer.cuda()(wanted).sum().backward()
    assert wanted.grad.any()


def test_a_stem_in_evaluation_uses_the_running_statistics():
    trial = StemTrial((3, 1, 32, 32))
    layer, images = trial.layer.cuda().eval(), to_bfloat16(trial.images)
    before = layer.norm.mean.clone()
    with deterministic():
        assert torch.equal(layer(images), stem_plain(layer, images))
    assert torch.equal(layer.norm.mean, before)


@pytest.mark.parametrize("name", ["resnet18", "resnet18-small", "convnet"])
def test_a_net_in_bfloat16_returns_nearly_the_same_as_in_float32(name):
    net, images = build_net(name, 1, 6, 32, seed=0), random((64, 1, 32, 32), 0)
    truth = copy.deepcopy(net)(images)
    found = forward_pass(to_device(net, "cuda"), images.cuda())
    assert found.dtype == torch.float32
    assert (found.cpu() - truth).norm() <= 0.1 * truth.norm()


def test_building_a_net_does_not_advance_the_generators_of_gpus():
    before = torch.cuda.get_rng_state()
    build_net("convnet", 1, 6, 32, seed=5)
    assert torch.equal(torch.cuda.get_rng_state(), before)
