"""The contrastive loss against a slow loop, search by cosine, and the net with a projector."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from everlearn.losses.contrastive import contrastive_loss, nearest_keys
from everlearn.nets import projection_net
from everlearn.nets.precision import bfloat16_weights, deterministic, forward_pass, to_device
from everlearn.nets.projection_net import build_projection_net, embed
from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import optimizer_state, optimizer_step


def cosine(one: list[float], two: list[float]) -> float:
    dot = sum(a * b for a, b in zip(one, two, strict=True))
    return dot / math.sqrt(sum(a * a for a in one) * sum(b * b for b in two))


def loop(images, labels, exemplars, classes, tau, negatives):  # on lists, as in the paper
    total = 0.0
    for z, c in zip(images, labels, strict=True):
        exemplar = exemplars[classes.index(c)]
        others = [cosine(z, zk) for zk, ck in zip(images, labels, strict=True) if ck != c]
        others += [cosine(z, o) for o in negatives]
        if others:
            total -= cosine(z, exemplar) / tau - math.log(sum(math.exp(s / tau) for s in others))
        others = [cosine(exemplar, e) for e in exemplars if e is not exemplar]
        others += [cosine(exemplar, o) for o in negatives]
        if others:
            total -= 1 / tau - math.log(sum(math.exp(s / tau) for s in others))
    return total / len(images)


def sample(batch: int, classes: int, negatives: int = 0, seed: int = 0) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    images, exemplars, extra = (
        torch.randn(count, 6, generator=generator) for count in (batch, classes, negatives)
    )
    ids = 100 + torch.randperm(classes, generator=generator)
    labels = ids[torch.randint(classes, (batch,), generator=generator)]
    return images, labels, exemplars, ids, extra


@pytest.mark.parametrize("negatives", [0, 5])
@pytest.mark.parametrize("tau", [0.05, 0.5, 2.0])
@pytest.mark.parametrize(("batch", "classes"), [(30, 4), (7, 10), (8, 1), (1, 3)])
def test_the_loss_equals_that_of_a_loop(
    batch: int, classes: int, tau: float, negatives: int
) -> None:
    *parts, extra = sample(batch, classes, negatives)
    found = contrastive_loss(*parts, tau, extra)
    expected = loop(*(part.tolist() for part in parts), tau, extra.tolist())
    assert float(found) == pytest.approx(expected, abs=1e-5, rel=1e-5)


def test_the_order_of_images_and_exemplars_does_not_matter() -> None:
    images, labels, exemplars, classes, negatives = sample(30, 4, 5)
    generator = torch.Generator().manual_seed(1)
    one, two, three = (torch.randperm(count, generator=generator) for count in (30, 4, 5))
    before = contrastive_loss(images, labels, exemplars, classes, 0.5, negatives)
    after = contrastive_loss(
        images[one], labels[one], exemplars[two], classes[two], 0.5, negatives[three]
    )
    torch.testing.assert_close(after, before, atol=1e-5, rtol=0)


def test_the_loss_of_two_orthogonal_classes_by_hand() -> None:
    plane, labels = torch.eye(2), torch.tensor([3, 8])
    # Each cosine to the exemplar of its class is 1, all others are 0: both terms are -1 / tau + log 1.
    assert float(contrastive_loss(plane, labels, plane, labels, 0.5)) == pytest.approx(-4.0)
    first_only = contrastive_loss(plane, labels, plane, labels, 0.5, exemplar_weight=0.0)
    assert float(first_only) == pytest.approx(-2.0)


def test_the_norms_of_vectors_do_not_matter() -> None:
    images, labels, exemplars, classes, _ = sample(9, 3)
    long = contrastive_loss(images * 7, labels, exemplars * 0.2, classes, 0.5)
    torch.testing.assert_close(long, contrastive_loss(images, labels, exemplars, classes, 0.5))


def test_a_batch_of_one_class_has_no_loss_and_no_gradient() -> None:
    images, labels, exemplars, classes, _ = sample(8, 1)
    images.requires_grad_()
    loss = contrastive_loss(images, labels, exemplars, classes, 0.5)
    loss.backward()
    assert float(loss.detach()) == 0
    assert (images.grad == 0).all()


def test_nearest_keys_are_the_first_when_sorted_by_cosine() -> None:
    generator = torch.Generator().manual_seed(0)
    queries, keys = (unit_rows(torch.randn(count, 5, generator=generator)) for count in (6, 9))
    labels = 10 * torch.randperm(9, generator=generator)
    found, distances = nearest_keys(queries, keys, labels, torch.zeros(9, dtype=torch.bool), 4)
    for row, query in enumerate(queries.tolist()):
        far = sorted(
            (1 - cosine(query, key), int(n)) for key, n in zip(keys.tolist(), labels, strict=True)
        )
        assert found[row].tolist() == [label for _, label in far[:4]]
        assert distances[row].tolist() == pytest.approx([d for d, _ in far[:4]], abs=1e-6)


def unit_rows(rows: Tensor) -> Tensor:
    return rows / rows.norm(dim=1, keepdim=True)


def test_nearest_keys_skip_excluded_ones_and_pad_with_minus_one() -> None:
    keys, labels = torch.eye(3), torch.tensor([4, 5, 6])
    found, distances = nearest_keys(keys[:1], keys, labels, torch.tensor([True, True, False]), 4)
    assert found.tolist() == [[6, -1, -1, -1]]
    assert distances.tolist() == [[1.0, math.inf, math.inf, math.inf]]


@pytest.mark.parametrize(
    ("name", "size", "widths"),
    [("resnet18", 32, (512, 512, 128)), ("convnet-pooled", 16, (128, 128, 64))],
)
def test_the_projector_is_as_wide_as_specified(name: str, size: int, widths: tuple[int]) -> None:
    net = build_projection_net(name, 1, size, seed=0)
    first, _, last = net.projector
    assert (first.in_features, first.out_features, last.out_features) == widths
    assert "backbone.head.weight" not in net.state_dict()


def test_the_seed_determines_the_weights_without_advancing_the_generator() -> None:
    before = torch.random.get_rng_state()
    one, two, other = (build_projection_net("mlp", 8, 1, seed) for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, two.state_dict()[name])
        assert not torch.equal(weight, other.state_dict()[name])


def test_embeddings_are_unit_vectors_and_do_not_depend_on_the_chunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = build_projection_net("convnet-pooled", 1, 16, seed=0).train()
    images = torch.randint(256, (7, 1, 16, 16), generator=torch.Generator().manual_seed(0))
    images = images.to(torch.uint8)
    together = embed(net, images)
    torch.testing.assert_close(together.norm(dim=1), torch.ones(7))
    assert torch.equal(embed(net, images.float() / 255), together)
    monkeypatch.setattr(projection_net, "_CHUNK", 2 * 256)
    torch.testing.assert_close(embed(net, images), together)
    assert net.training


def test_in_bfloat16_the_last_layer_stays_float32() -> None:
    net = build_projection_net("convnet-pooled", 1, 16, seed=0).train()
    rounded = {name: weight.bfloat16() for name, weight in bfloat16_weights(net)}
    assert "projector.0.weight" in rounded
    assert "projector.2.weight" not in rounded
    images = torch.rand(8, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    expected = net(images)
    out = functional_call(net, rounded, (images.bfloat16(),))
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, expected, atol=0.05, rtol=0.05)


@pytest.mark.gpu
def test_a_captured_step_is_the_eager_step_to_the_bit() -> None:
    def learn(by_graph: bool) -> list[Tensor]:
        net = to_device(build_projection_net("resnet18", 1, 32, seed=0), "cuda").train()
        optimizer = Adam(net.parameters(), 1e-3)
        state = [*net.state_dict().values(), *optimizer_state(optimizer)]

        def train_step(images: Tensor, labels: Tensor) -> Tensor:
            z, e = torch.split(forward_pass(net, images), [32, 4])
            return optimizer_step(optimizer, contrastive_loss(z, labels, e, labels[:4], 0.5))

        step = CapturedStep(train_step, state)
        generator = torch.Generator().manual_seed(0)
        for _ in range(5):
            images, labels = torch.rand(36, 1, 32, 32, generator=generator), torch.arange(32) % 4
            with deterministic():
                (step if by_graph else train_step)(images.cuda(), labels.cuda())
        return state

    for one, two in zip(learn(True), learn(False), strict=True):
        assert torch.equal(one, two)
