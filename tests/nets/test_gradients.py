"""Products are those of long vectors; projections hurt no gradient of the past and change no more."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from everlearn.nets.gradients import dot, flatten, project, slopes_of, solve_dual, unflatten

SHAPES = [(4, 3), (2, 3, 5, 5), (7,), ()]


def vectors(seed):
    rng = torch.Generator().manual_seed(seed)
    parts = [torch.randn(shape, generator=rng) for shape in SHAPES]
    return [*parts[:1], parts[1].contiguous(memory_format=torch.channels_last), *parts[2:]]


def long(parts):
    return np.concatenate([part.contiguous().numpy().ravel() for part in parts]).astype(np.float64)


def opposed(seed):
    """Slopes, and a reference that they would go against."""
    slopes, reference = vectors(seed), vectors(seed + 1)
    if long(slopes) @ long(reference) > 0:
        slopes = [-part for part in slopes]
    return slopes, reference


@pytest.mark.parametrize("laid", [False, True])
def test_a_product_is_that_of_the_long_vectors(laid):
    ones, others = vectors(0), vectors(1)
    if laid:  # the same numbers, otherwise laid in memory
        others = [part.contiguous() for part in others]
    assert float(dot(ones, others)) == pytest.approx(long(ones) @ long(others), rel=1e-5)


def test_by_hand_a_vector_is_turned_to_be_orthogonal():
    slopes = [torch.tensor([-1.0, 2.0]), torch.tensor([3.0])]
    project(slopes, [torch.tensor([2.0, 0.0]), torch.tensor([0.0])])
    assert [part.tolist() for part in slopes] == [[0.0, 2.0], [3.0]]


@pytest.mark.parametrize("seed", range(0, 20, 2))
def test_b2_the_projection_does_not_go_against_the_reference(seed):
    slopes, reference = opposed(seed)
    before = long(slopes)
    project(slopes, reference)
    assert abs(long(slopes) @ long(reference)) < 1e-6 * np.linalg.norm(before) ** 2
    gone, along = before - long(slopes), long(reference)
    assert abs(gone @ along) == pytest.approx(np.linalg.norm(gone) * np.linalg.norm(along))


def test_b2_slopes_that_need_no_turn_keep_every_bit():
    slopes, reference = opposed(0)
    slopes = [-part for part in slopes]
    before = [part.clone() for part in slopes]
    project(slopes, reference)
    assert all(torch.equal(one, two) for one, two in zip(slopes, before, strict=True))


def test_b2_a_second_projection_changes_nothing():
    slopes, reference = opposed(0)
    project(slopes, reference)
    before = long(slopes)
    project(slopes, reference)
    np.testing.assert_allclose(long(slopes), before, atol=1e-6)


def test_a_reference_of_no_length_asks_for_nothing():
    slopes = vectors(0)
    before = long(slopes)
    project(slopes, [torch.zeros_like(part) for part in slopes])
    assert (long(slopes) == before).all()


def test_a_vector_comes_back_in_its_shapes():
    parts = vectors(0)
    vector = flatten(parts)
    assert (vector.numpy() == long(parts)).all()
    back = unflatten(vector, parts)
    assert all(torch.equal(one, two) for one, two in zip(back, parts, strict=True))


def test_slopes_are_those_of_the_way_back():
    weights = [torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)]
    (2 * weights[0].sum() + 5 * weights[1].sum()).backward()
    assert [part.tolist() for part in slopes_of(weights)] == [[2, 2], [5, 5, 5]]


def gradients(seed, tasks, size=8):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=size)
    return rng.normal(size=(tasks, size)) - common, common + 0.3 * rng.normal(size=size)


def try_all_sets(products, slopes, floor):
    """The lowest of all points where some unknowns lie on the floor and the others at their best."""
    best, lowest = None, np.inf
    for free in product([False, True], repeat=len(slopes)):
        found, inner = np.full(len(slopes), floor), np.array(free)
        if inner.any():
            pull = slopes[inner] + products[np.ix_(inner, ~inner)] @ found[~inner]
            found[inner] = np.linalg.lstsq(products[np.ix_(inner, inner)], -pull)[0]
        value = found @ products @ found / 2 + slopes @ found
        if (found >= floor - 1e-12).all() and value < lowest:
            best, lowest = found, value
    return best, lowest


@pytest.mark.parametrize("floor", [0.0, 0.5])
@pytest.mark.parametrize(("seed", "tasks"), list(product(range(6), (1, 3, 6))))
def test_the_dual_is_solved_as_by_trying_every_set(seed, tasks, floor):
    old, new = gradients(seed, tasks)
    found = solve_dual(old @ old.T, old @ new, floor)
    expected, _ = try_all_sets(old @ old.T, old @ new, floor)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("floor", [0.0, 0.5])
def test_tasks_that_pull_alike_leave_the_dual_solvable(floor):
    old, new = gradients(0, 3)
    old = np.concatenate([old, old[:2], np.zeros((1, old.shape[1]))])
    found = solve_dual(old @ old.T, old @ new, floor)
    _, lowest = try_all_sets(old @ old.T, old @ new, floor)
    assert found @ (old @ old.T) @ found / 2 + old @ new @ found == pytest.approx(lowest)
    assert (found >= floor).all()


@pytest.mark.parametrize(("tasks", "size"), [(40, 200), (40, 20)])
def test_the_conditions_of_a_lowest_point_hold_for_many_tasks(tasks, size):
    old, new = gradients(1, tasks, size)
    shares = solve_dual(old @ old.T, old @ new, 0.5)
    turned = new + shares @ old
    scale = np.linalg.norm(old, axis=1) * np.linalg.norm(turned)
    assert (shares >= 0.5).all()
    assert (old @ turned >= -1e-7 * scale).all()
    assert (np.abs(old @ turned)[shares > 0.5] <= 1e-7 * scale[shares > 0.5]).all()


def test_one_past_task_is_the_projection_of_one_reference():
    slopes, reference = opposed(0)
    old, new = long(reference)[None], long(slopes)
    share = solve_dual(old @ old.T, old @ new, 0.0)
    project(slopes, reference)
    np.testing.assert_allclose(long(slopes), new + share @ old, atol=1e-6)
