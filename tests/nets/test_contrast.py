"""The contrastive loss against a slow loop (B9), search by cosine, and the net with a projector."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from everlearn.nets import fast, projector
from everlearn.nets.contrast import closest, contrast
from everlearn.nets.fast.passes import narrowed
from everlearn.nets.projector import build_projected, embed


def cosine(one: list[float], two: list[float]) -> float:
    dot = sum(a * b for a, b in zip(one, two, strict=True))
    return dot / math.sqrt(sum(a * a for a in one) * sum(b * b for b in two))


def loop(images, labels, exemplars, classes, tau, old):  # lists, as the formulas read
    total = 0.0
    for z, c in zip(images, labels, strict=True):
        hat = exemplars[classes.index(c)]
        others = [cosine(z, zk) for zk, ck in zip(images, labels, strict=True) if ck != c]
        others += [cosine(z, o) for o in old]
        if others:
            total -= cosine(z, hat) / tau - math.log(sum(math.exp(s / tau) for s in others))
        others = [cosine(hat, e) for e in exemplars if e is not hat]
        others += [cosine(hat, o) for o in old]
        if others:
            total -= 1 / tau - math.log(sum(math.exp(s / tau) for s in others))
    return total / len(images)


def sample(batch: int, classes: int, old: int = 0, seed: int = 0) -> tuple[Tensor, ...]:
    rng = torch.Generator().manual_seed(seed)
    images, exemplars, further = (
        torch.randn(count, 6, generator=rng) for count in (batch, classes, old)
    )
    ids = 100 + torch.randperm(classes, generator=rng)
    labels = ids[torch.randint(classes, (batch,), generator=rng)]
    return images, labels, exemplars, ids, further


@pytest.mark.parametrize("old", [0, 5])
@pytest.mark.parametrize("tau", [0.05, 0.5, 2.0])
@pytest.mark.parametrize(("batch", "classes"), [(30, 4), (7, 10), (8, 1), (1, 3)])
def test_b9_the_loss_is_that_of_a_loop(batch: int, classes: int, tau: float, old: int) -> None:
    *parts, further = sample(batch, classes, old)
    found = contrast(*parts, tau, further)
    expected = loop(*(part.tolist() for part in parts), tau, further.tolist())
    assert float(found) == pytest.approx(expected, abs=1e-5, rel=1e-5)


def test_b9_the_order_of_images_and_of_exemplars_does_not_matter() -> None:
    images, labels, exemplars, classes, old = sample(30, 4, 5)
    rng = torch.Generator().manual_seed(1)
    one, two, three = (torch.randperm(count, generator=rng) for count in (30, 4, 5))
    before = contrast(images, labels, exemplars, classes, 0.5, old)
    after = contrast(images[one], labels[one], exemplars[two], classes[two], 0.5, old[three])
    torch.testing.assert_close(after, before, atol=1e-5, rtol=0)


def test_two_classes_at_right_angles_by_hand() -> None:
    plane, labels = torch.eye(2), torch.tensor([3, 8])
    # Each cosine to the own exemplar is 1, all others are 0: both terms are -1 / tau + log 1.
    assert float(contrast(plane, labels, plane, labels, 0.5)) == pytest.approx(-4.0)


def test_the_lengths_of_vectors_do_not_matter() -> None:
    images, labels, exemplars, classes, _ = sample(9, 3)
    long = contrast(images * 7, labels, exemplars * 0.2, classes, 0.5)
    torch.testing.assert_close(long, contrast(images, labels, exemplars, classes, 0.5))


def test_a_batch_of_one_class_pulls_on_nothing() -> None:
    images, labels, exemplars, classes, _ = sample(8, 1)
    images.requires_grad_()
    loss = contrast(images, labels, exemplars, classes, 0.5)
    loss.backward()
    assert float(loss.detach()) == 0
    assert (images.grad == 0).all()


def test_closest_are_the_first_of_all_sorted_by_angle() -> None:
    rng = torch.Generator().manual_seed(0)
    queries, keys = (embed_any(torch.randn(count, 5, generator=rng)) for count in (6, 9))
    labels = 10 * torch.randperm(9, generator=rng)
    found, distances = closest(queries, keys, labels, torch.zeros(9, dtype=torch.bool), 4)
    for row, query in enumerate(queries.tolist()):
        far = sorted(
            (1 - cosine(query, key), int(n)) for key, n in zip(keys.tolist(), labels, strict=True)
        )
        assert found[row].tolist() == [label for _, label in far[:4]]
        assert distances[row].tolist() == pytest.approx([d for d, _ in far[:4]], abs=1e-6)


def embed_any(rows: Tensor) -> Tensor:
    return rows / rows.norm(dim=1, keepdim=True)


def test_closest_leaves_out_what_is_shut_and_fills_up_with_nothing() -> None:
    keys, labels = torch.eye(3), torch.tensor([4, 5, 6])
    found, distances = closest(keys[:1], keys, labels, torch.tensor([True, True, False]), 4)
    assert found.tolist() == [[6, -1, -1, -1]]
    assert distances.tolist() == [[1.0, math.inf, math.inf, math.inf]]


@pytest.mark.parametrize(
    ("name", "size", "widths"),
    [("resnet18", 32, (512, 512, 128)), ("convnet-pooled", 16, (128, 128, 64))],
)
def test_the_projector_is_as_wide_as_specified(name: str, size: int, widths: tuple[int]) -> None:
    net = build_projected(name, 1, size, seed=0)
    first, _, last = net.projector
    assert (first.in_features, first.out_features, last.out_features) == widths
    assert "backbone.head.weight" not in net.state_dict()


def test_weights_follow_from_the_seed_and_torch_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    one, two, other = (build_projected("mlp", 8, 1, seed) for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, two.state_dict()[name])
        assert not torch.equal(weight, other.state_dict()[name])


def test_vectors_have_length_one_and_do_not_depend_on_the_company(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = build_projected("convnet-pooled", 1, 16, seed=0).train()
    pictures = torch.randint(256, (7, 1, 16, 16), generator=torch.Generator().manual_seed(0))
    pictures = pictures.to(torch.uint8)
    whole = embed(net, pictures)
    torch.testing.assert_close(whole.norm(dim=1), torch.ones(7))
    assert torch.equal(embed(net, pictures.float() / 255), whole)
    monkeypatch.setattr(projector, "_NUMBERS", 2 * 256)
    torch.testing.assert_close(embed(net, pictures), whole)
    assert net.training


def test_with_16_bits_the_last_layer_stays_wide() -> None:
    net = build_projected("convnet-pooled", 1, 16, seed=0).train()
    narrow = {name: weight.bfloat16() for name, weight in narrowed(net)}
    assert "projector.0.weight" in narrow
    assert "projector.2.weight" not in narrow
    images = torch.rand(8, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    wide = net(images)
    out = functional_call(net, narrow, (images.bfloat16(),))
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, wide, atol=0.05, rtol=0.05)


@pytest.mark.gpu
def test_a_step_as_a_graph_is_the_eager_step_to_the_bit() -> None:
    def learn(by_graph: bool) -> list[Tensor]:
        net = fast.place(build_projected("resnet18", 1, 32, seed=0), "cuda").train()
        optimizer = fast.adam(net.parameters(), 1e-3)
        changed = [*net.state_dict().values(), *fast.moments(optimizer)]

        def work(images: Tensor, labels: Tensor) -> Tensor:
            z, e = torch.split(fast.forward(net, images), [32, 4])
            return fast.descend(optimizer, contrast(z, labels, e, labels[:4], 0.5))

        step = fast.Step(work, changed)
        rng = torch.Generator().manual_seed(0)
        for _ in range(5):
            images, labels = torch.rand(36, 1, 32, 32, generator=rng), torch.arange(32) % 4
            with fast.steady():
                (step if by_graph else work)(images.cuda(), labels.cuda())
        return changed

    for one, two in zip(learn(True), learn(False), strict=True):
        assert torch.equal(one, two)
