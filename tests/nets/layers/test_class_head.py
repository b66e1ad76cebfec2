"""A head for classes: a class's weights and logits do not depend on how many classes there are."""

from __future__ import annotations

import pytest
import torch

from everlearn.nets import build_classifier
from everlearn.nets.layers.class_head import ClassHead
from everlearn.nets.seeded import seeded
from everlearn.training.adam import Adam


def build(classes, inputs=64):
    with seeded(3):
        return ClassHead(inputs, classes)


@pytest.mark.parametrize("inputs", [5, 64])
def test_the_first_classes_have_the_same_weights_for_any_number(inputs):
    few, many = build(6, inputs), build(4000, inputs)
    assert torch.equal(few.weight, many.weight[:6])
    assert torch.equal(few.bias, many.bias[:6])


def test_weights_are_drawn_as_torch_does():
    """Uniform between -1 / sqrt(inputs) and its negative: a standard deviation of 1 / sqrt(3 inputs)."""
    head = build(4000)
    for part in (head.weight, head.bias):
        assert part.abs().max() <= 1 / 8
        assert abs(part.mean().item()) < 0.01
        assert part.std().item() == pytest.approx(1 / 192**0.5, rel=0.05)


def test_what_is_drawn_after_a_head_does_not_depend_on_its_size():
    with seeded(0):
        ClassHead(8, 3)
        after_few = torch.rand(5)
    with seeded(0):
        ClassHead(8, 300)
        assert torch.equal(torch.rand(5), after_few)


def test_logits_are_float64():
    head = build(3)
    features = torch.randn(2, 64)
    expected = features.double() @ head.weight.double().T + head.bias.double()
    torch.testing.assert_close(head(features), expected)


@pytest.mark.parametrize("name", ["mlp", "convnet-pooled"])
def test_a_classifier_is_the_same_for_its_first_classes(name):
    few, many = (build_classifier(name, 1, classes, 8, seed=5) for classes in (6, 100))
    theirs = many.state_dict()
    for key, value in few.state_dict().items():
        assert torch.equal(value, theirs[key][:6] if key.startswith("head") else theirs[key])


@pytest.mark.parametrize(("few", "many"), [(6, 12), (12, 24), (7, 100)])
def test_adam_rounds_a_weight_alike_wherever_its_tensor_ends(few, many):
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(many, generator=generator)
    short, long = (torch.nn.Parameter(values[:size].clone()) for size in (few, many))
    optimizers = [Adam([weight], 1e-3, fused_on_cpu=False) for weight in (short, long)]
    for _ in range(200):
        gradient = torch.randn(many, generator=generator)
        short.grad, long.grad = gradient[:few].clone(), gradient
        for optimizer in optimizers:
            optimizer.step()
    assert torch.equal(short, long[:few])
