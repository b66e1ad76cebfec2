"""Exemplars are moved onto images, and the one that fits best is named."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from everlearn import Canvas, Stream
from everlearn.memory import Exemplars
from everlearn.methods.dcl import fit
from everlearn.render.affine import compose, nearest_similarity, transform_images

pytestmark = pytest.mark.integration

ON = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def small_map(grow: float, turn: float, right: float, down: float) -> Tensor:
    return torch.tensor([[[1 + grow, -turn, right], [turn, 1 + grow, down]]])


def height(x: Tensor, y: Tensor) -> Tensor:
    """A smooth landscape without symmetry, from 0 to 1."""
    high = torch.exp(-6 * ((x - 0.2) ** 2 + 2 * (y + 0.1) ** 2))
    return 0.1 + 0.6 * high + 0.3 * torch.exp(-9 * ((x + 0.4) ** 2 + (y - 0.3) ** 2))


def hill(size: int = 48) -> Tensor:
    """A picture of it, (1, 1, S, S)."""
    y, x = fit.pixel_centers(size, size)
    return height(x, y)[None, None]


def shown(count: int, size: int = 64, seed: int = 0) -> tuple[Stream, Tensor, Tensor, Tensor]:
    """A stream, and images, classes and true maps of some of its classes."""
    stream = Stream(seed=seed, canvas=Canvas(size=size))
    batches = [stream[index].test.batch(slice(0, 20)) for index in range(count // 10)]
    images, labels, maps = (
        torch.cat([getattr(batch, name) for batch in batches])
        for name in ("images", "labels", "theta")
    )
    return stream, images, labels, maps


def memory_of(stream: Stream, count: int, device: str = "cpu") -> Exemplars:
    memory = Exemplars(stream.canvas.shape, device)
    memory.add(range(count), stream.exemplars(range(count)).images)
    return memory


def perturbed(maps: Tensor, by: float) -> Tensor:
    return maps + by * torch.randn(maps.shape, generator=torch.Generator().manual_seed(0))


def test_gradients_of_a_ramp() -> None:
    y, x = fit.pixel_centers(8, 6)
    to_x, to_y = fit.image_gradients((3 * x - 0.5 * y)[None, None])
    assert torch.allclose(to_x[..., 1:-1], torch.tensor(3.0))
    assert torch.allclose(to_y[..., 1:-1, :], torch.tensor(-0.5))


def test_weights_of_edges_follow_from_the_contrast_of_neighbours() -> None:
    image = torch.tensor([0.5, 0.5, 0.5, 0.5, 0.8, 0.8, 0.8]).expand(1, 1, 5, 7)
    # Central differences of 0.3 / 2 a pixel beside the edge: as large as the constant, so 1 / sqrt(1 + 1).
    expected = torch.tensor([1, 1, 1, 0.5**0.5, 0.5**0.5, 1, 1]).expand(1, 1, 5, 7)
    torch.testing.assert_close(fit.edge_weights(image), expected)
    torch.testing.assert_close(fit.edge_weights(image.mT), expected.mT)


@pytest.mark.parametrize("way", range(4))
def test_one_step_nearly_undoes_a_small_transformation(way: int) -> None:
    move = [0.0] * 4
    move[way] = 0.02
    picture = hill()
    found = fit.gauss_newton_step(
        transform_images(picture, small_map(*move)), torch.ones_like(picture), picture
    )
    assert torch.allclose(found, small_map(*move), atol=0.002)


def test_a_step_is_the_weighted_least_squares_solution_of_the_linear_problem() -> None:
    picture = hill(24).double()
    wanted = transform_images(hill(24), small_map(0.03, -0.02, 0.01, 0.04)).double()
    weights = 0.2 + hill(24).flip(3)
    columns = []
    for way in range(4):
        moves = [[sign * 1e-4 * (place == way) for place in range(4)] for sign in (1, -1)]
        ahead, behind = (through(picture, small_map(*move).double()) for move in moves)
        columns.append((ahead - behind) / 2e-4)
    changes = np.stack([column.numpy()[2:-2, 2:-2].ravel() for column in columns], 1)
    rest = (wanted - picture)[0, 0].numpy()[2:-2, 2:-2].ravel()
    each = weights.numpy()[0, 0, 2:-2, 2:-2].ravel()
    solution = np.linalg.lstsq(each[:, None] * changes, each * rest, rcond=None)[0]
    found = fit.gauss_newton_step(wanted.float(), weights, picture.float())[0].double()
    expected = small_map(*solution).double()[0]
    assert torch.allclose(found, expected, atol=0.004)


def through(picture: Tensor, one: Tensor) -> Tensor:
    """The landscape itself, not its pixels, at the mapped places."""
    size = picture.shape[-1]
    y, x = (part.double() for part in fit.pixel_centers(size, size))
    (a, b, c), (d, e, f) = one[0].tolist()
    return height(a * x + b * y + c, d * x + e * y + f)


def test_steps_recover_the_true_map_from_a_nearby_one() -> None:
    stream, images, labels, maps = shown(50)
    exemplars = stream.exemplars(range(50)).images[labels]
    weights = fit.edge_weights(images)
    best = fit.fit(images, weights, exemplars, maps, steps=0).errors
    off = compose(small_map(0.015, 0.02, -0.015, 0.01), maps)
    start = fit.fit(images, weights, exemplars, off, steps=0).errors
    end, found = fit.fit(images, weights, exemplars, off, steps=4)
    assert (start > 3 * best).float().mean() > 0.9
    assert ((start - end) / (start - best)).clamp(max=1).mean() > 0.98
    assert (found - maps).abs().mean() < 0.1 * (off - maps).abs().mean()


@pytest.mark.parametrize("device", ON)
def test_uniform_images_and_degenerate_maps_give_finite_errors(device: str) -> None:
    plain = torch.full((3, 1, 16, 16), 51 / 255)
    assert torch.equal(
        fit.gauss_newton_step(plain, torch.ones_like(plain), plain),
        torch.eye(2, 3).expand(3, 2, 3),
    )
    maps = torch.stack((torch.eye(2, 3), torch.zeros(2, 3), torch.eye(2, 3) * 1e-20)).to(device)
    rows = torch.arange(3, device=device)
    for images in (plain.to(device), hill(16).expand(3, 1, 16, 16).to(device)):
        pictures = (images * 255).round().to(torch.uint8)
        found = fit._fit_pairs(images, fit.edge_weights(images), rows, pictures, maps).errors
        assert found[0] < 1e-5
        assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(1, 64, 64), (3, 23, 23), (1, 17, 40)])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_kernel_matches_the_pytorch_version(shape: tuple[int, int, int], steps: int) -> None:
    from everlearn.methods.dcl import fit_kernel

    rng = torch.Generator().manual_seed(0)
    smooth = avg_pool2d(torch.rand(40, *shape, generator=rng), 5, 1, 2)
    exemplars = (smooth * 255).to(torch.uint8)
    rows = torch.randint(0, 10, (40,), generator=rng)
    exact = torch.eye(2, 3).expand(10, 2, 3)
    maps, images = nearest_similarity(perturbed(exact, 0.03)), smooth[:10]
    weights = torch.rand(images.shape, generator=rng)
    errors, found = fit.fit(images[rows], weights[rows], exemplars, maps[rows], steps)
    there = [part.cuda() for part in (images, weights, rows, exemplars, maps)]
    fast, best_maps = fit_kernel.fit(*there, steps=steps, ridge=1e-3)
    torch.testing.assert_close(fast.cpu(), errors, rtol=1e-3, atol=1e-7)
    torch.testing.assert_close(best_maps.cpu(), found, rtol=0, atol=1e-3)


@pytest.mark.parametrize("device", ON)
def test_with_all_exemplars_as_candidates_the_best_fit_is_found(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "_ROUNDS", 1)
    stream, images, _, maps = shown(20, size=32)
    exemplars = stream.exemplars(range(20)).images
    off = perturbed(maps, 0.01)
    found = fit.match(images.to(device), off.to(device), memory_of(stream, 20, device), 3, 20)
    weights = fit.edge_weights(images)
    slow = [
        fit.fit(images, weights, exemplars[[c]].expand_as(images), nearest_similarity(off)).errors
        for c in range(20)
    ]
    distances, labels = torch.stack(slow, 1).sort(dim=1, stable=True)
    assert torch.equal(found.labels.cpu()[:, 0], labels[:, 0])
    torch.testing.assert_close(found.distances.cpu(), distances[:, :3], rtol=1e-3, atol=1e-7)


def test_candidates_are_the_nearest_and_sorted_by_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fit, "_ROUNDS", 1)
    stream, images, _, maps = shown(30, size=32)
    memory, off = memory_of(stream, 30), perturbed(maps, 0.01)
    few, all_of_them = (fit.match(images, off, memory, 4, count) for count in (4, 30))
    near = memory.search(transform_images(images, nearest_similarity(off)), 4)
    assert torch.equal(few.labels.sort(dim=1).values, near.labels.sort(dim=1).values)
    assert (few.distances.diff(dim=1) >= 0).all()
    assert (few.distances >= all_of_them.distances).all()


@pytest.mark.slow
@pytest.mark.parametrize("device", ON)
def test_rounds_improve_on_the_last_one(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, images, labels, maps = shown(200)
    memory, off = memory_of(stream, 200, device), compose(maps, small_map(0.05, 0.12, 0.02, -0.02))
    right, last = [], torch.full((len(images),), torch.inf)
    for rounds in (1, 2, 3):
        monkeypatch.setattr(fit, "_ROUNDS", rounds)
        found = fit.match(images.to(device), off.to(device), memory, 1, 5)
        right.append(float((found.labels[:, 0].cpu() == labels).float().mean()))
        assert (found.distances[:, 0].cpu() <= last).all()
        last = found.distances[:, 0].cpu()
    assert right[0] < 0.8
    assert right[1] > right[0] + 0.1
    assert right[2] > 0.85


def test_a_memory_of_fewer_than_k_exemplars_is_padded() -> None:
    stream, images, _, maps = shown(10, size=32)
    found = fit.match(images, maps, memory_of(stream, 2), 3, 5)
    assert (found.labels[:, 2] == -1).all()
    assert found.distances[:, 2].isinf().all()
    assert found.distances[:, :2].isfinite().all()
    none = fit.match(images[:0], maps[:0], memory_of(stream, 2), 3, 5)
    assert none.labels.shape == none.distances.shape == (0, 3)
    one = fit.match(images, maps, memory_of(stream, 2), 1, 1)
    assert torch.equal(one.labels[:, 0], found.labels[:, 0])
    with pytest.raises(ValueError, match="k must"):
        fit.match(images, maps, memory_of(stream, 2), 0, 5)


@pytest.mark.parametrize("device", ON)
def test_results_do_not_depend_on_the_batch(device: str) -> None:
    stream, images, _, maps = shown(60, size=32)
    images, maps = images.to(device), perturbed(maps, 0.03).to(device)
    memory = memory_of(stream, 60, device)
    whole = fit.match(images, maps, memory, 5, 5)
    for place in range(0, len(images), 7):
        alone = fit.match(images[[place]], maps[[place]], memory, 5, 5)
        assert torch.equal(alone.labels[0], whole.labels[place])
        assert torch.equal(alone.distances[0], whole.distances[place])


@pytest.mark.parametrize("device", ON)
def test_removing_a_class_leaves_clear_matches_unchanged(device: str) -> None:
    stream, images, _, maps = shown(60, size=32)
    images, maps, memory = images.to(device), maps.to(device), memory_of(stream, 60, device)
    before = fit.match(images, maps, memory, 5, 5)
    memory.remove([3])
    after = fit.match(images, maps, memory, 5, 5)
    assert not (after.labels == 3).any()
    settled = (before.novelty < 0.4) & (before.labels[:, 0] != 3)
    assert settled.sum() > 50
    assert (before.labels[settled] == 3).any()
    for row in settled.nonzero()[:, 0]:
        kept = dict(zip(before.labels[row].tolist(), before.distances[row].tolist(), strict=True))
        for label, distance in zip(
            after.labels[row].tolist(), after.distances[row].tolist(), strict=True
        ):
            assert kept.get(label, distance) == distance


@pytest.mark.integration
def test_fitting_corrects_small_errors_of_maps_and_detects_new_shapes() -> None:
    stream, images, labels, maps = shown(200)
    memory, off = memory_of(stream, 200), perturbed(maps, 0.01)
    plain, fitted = (
        memory.search(transform_images(images, off)),
        fit.match(images, off, memory, 2, 5),
    )
    right, fitted_right = (
        (found.labels[:, 0] == labels).float().mean() for found in (plain, fitted)
    )
    assert fitted_right >= 0.99
    assert fitted_right > right
    new = stream.with_changes(first_class=5000)[0].test.batch(slice(None))
    strange = fit.match(new.images, new.theta, memory, 2, 5).novelty
    assert strange.median() > 0.6
    assert fitted.novelty.median() < 0.2


@pytest.mark.slow
def test_weights_of_edges_help_to_match_hard_edged_images() -> None:
    stream = Stream(seed=100, canvas=Canvas(parity=True))
    batches = [stream[index].test.batch(slice(0, 20)) for index in range(0, 20, 2)]
    images, labels, maps = (
        torch.cat([getattr(batch, name) for batch in batches])
        for name in ("images", "labels", "theta")
    )
    memory, off = memory_of(stream, 200), perturbed(maps, 0.01)
    weighted = fit.match(images, off, memory, 1, 10)
    plain = fit.match(images, off, memory, 1, 10, edge_contrast=math.inf)
    right, plain_right = (
        (found.labels[:, 0] == labels).float().mean() for found in (weighted, plain)
    )
    assert right >= 0.98
    assert plain_right <= right - 0.03
