"""Adam: torch's arithmetic, a state that stays in its place, and the GPU kernel against torch."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import (
    optimizer_state,
    optimizer_step,
    reset_optimizer,
    set_learning_rate,
)

# A channels-last filter, a vector, more numbers than a chunk of the kernel has, and an odd number.
SHAPES = ((8, 3, 3, 3), (64,), (5000, 3), (7,))


def make_weights(device: str, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    weights = [torch.randn(shape, generator=generator) for shape in SHAPES]
    weights[0] = weights[0].to(memory_format=torch.channels_last)
    return [weight.to(device).requires_grad_() for weight in weights]


def train(optimizer: object, weights: list[Tensor], steps: int) -> list[Tensor]:
    for step in range(steps):
        for weight, gradient in zip(
            weights, make_weights(str(weights[0].device), step + 1), strict=True
        ):
            weight.grad = gradient.detach()
        optimizer.step()  # type: ignore[attr-defined]
    return [weight.detach() for weight in weights]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_a_cpu_gets_the_bits_of_torch(fused: bool, weight_decay: float) -> None:
    weights = make_weights("cpu")
    expected = make_weights("cpu")
    theirs = torch.optim.Adam(
        expected,
        1e-2,
        weight_decay=weight_decay,
        decoupled_weight_decay=weight_decay > 0,
        fused=fused,
        foreach=not fused,
    )
    ours = Adam(weights, 1e-2, weight_decay, fused_on_cpu=fused)
    for found, wanted in zip(train(ours, weights, 5), train(theirs, expected, 5), strict=True):
        assert torch.equal(found, wanted)


def test_weights_without_a_gradient_stay_as_they_are() -> None:
    weights = make_weights("cpu")
    before = weights[0].detach().clone()
    optimizer = Adam(weights, 1e-2)
    weights[1].grad = torch.ones_like(weights[1])
    optimizer.step()
    assert torch.equal(weights[0], before)
    # The first step of Adam moves every weight by the learning rate, against its gradient.
    moved = make_weights("cpu")[1] - weights[1]
    assert torch.allclose(moved, torch.full_like(moved, 1e-2))


def test_a_reset_state_forgets_all_steps() -> None:
    weights = make_weights("cpu")
    optimizer = Adam(weights, 1e-2)
    train(optimizer, weights, 3)
    reset_optimizer(optimizer)
    assert all(not part.any() for part in optimizer_state(optimizer))


def test_the_learning_rate_can_be_changed() -> None:
    weights = make_weights("cpu")
    before = weights[3].detach().clone()
    optimizer = Adam(weights, 1e-2)
    set_learning_rate(optimizer, 0.0)
    train(optimizer, weights, 1)
    assert torch.equal(weights[3], before)


def test_it_does_not_import_the_compiler_of_torch() -> None:
    code = (
        "import sys, torch; from everlearn.training.adam import Adam; w = torch.zeros(2); "
        "w.grad = torch.ones(2); Adam([w], 0.1).step(); print('torch._dynamo' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


@pytest.mark.gpu
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_the_kernel_computes_what_torch_does(weight_decay: float) -> None:
    weights = make_weights("cuda")
    exact = [weight.detach().cpu().double().requires_grad_() for weight in weights]
    theirs = torch.optim.AdamW(exact, 1e-2, weight_decay=weight_decay, fused=False, foreach=False)
    optimizer = Adam(weights, 1e-2, weight_decay)
    for step in range(5):
        gradients = make_weights("cpu", step + 1)
        for weight, double, gradient in zip(weights, exact, gradients, strict=True):
            weight.grad = gradient.detach().cuda()
            double.grad = gradient.detach().double()
        optimizer.step()
        theirs.step()
    assert optimizer._kernel is not None
    for found, wanted in zip(weights, exact, strict=True):
        assert torch.allclose(found.detach().cpu().double(), wanted, atol=2e-6, rtol=1e-6)


@pytest.mark.gpu
def test_the_kernel_writes_nothing_beyond_a_weight() -> None:
    around = torch.zeros(4096 * 3, device="cuda")
    weight = around[4096 : 4096 + 4099].requires_grad_()
    optimizer = Adam([weight], 1e-2)
    weight.grad = torch.ones_like(weight)
    optimizer.step()
    assert optimizer._kernel is not None
    assert around.detach().count_nonzero() == len(weight)


@pytest.mark.gpu
def test_a_captured_step_follows_the_learning_rate_and_counts_steps() -> None:
    weights = [torch.zeros(300, device="cuda", requires_grad=True)]
    optimizer = Adam(weights, 1e-2)
    step = CapturedStep(
        lambda target: optimizer_step(optimizer, (weights[0] - target).square().sum()),
        [*weights, *optimizer_state(optimizer)],
    )
    plain = torch.zeros(300, requires_grad=True)
    theirs = torch.optim.Adam([plain], 1e-2)
    for number in range(6):
        learning_rate = 1e-2 / (number + 1)
        set_learning_rate(optimizer, learning_rate)
        theirs.param_groups[0]["lr"] = learning_rate
        target = torch.linspace(-1, 1, 300) * (number + 1)
        step(target.cuda())
        theirs.zero_grad()
        (plain - target).square().sum().backward()
        theirs.step()
    assert torch.allclose(weights[0].cpu(), plain, atol=1e-6)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_gradient_in_another_order_is_not_misread(device: str) -> None:
    weights = make_weights(device)
    expected = make_weights("cpu")
    for weight, other, gradient in zip(weights, expected, make_weights("cpu", 1), strict=True):
        weight.grad = gradient.detach().contiguous().to(device)
        other.grad = gradient.detach()
    Adam(weights, 1e-2).step()
    Adam(expected, 1e-2).step()
    for found, wanted in zip(weights, expected, strict=True):
        assert torch.allclose(found.cpu(), wanted, atol=1e-6)
