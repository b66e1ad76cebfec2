"""Products of lists of tensors, and projections that conflict with no gradient of the past."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from everlearn.training.gradients import dot, flatten, gradients_of, project, solve_dual, unflatten

SHAPES = [(4, 3), (2, 3, 5, 5), (7,), ()]


def vectors(seed):
    generator = torch.Generator().manual_seed(seed)
    parts = [torch.randn(shape, generator=generator) for shape in SHAPES]
    return [*parts[:1], parts[1].contiguous(memory_format=torch.channels_last), *parts[2:]]


def concatenate(parts):
    return np.concatenate([part.contiguous().numpy().ravel() for part in parts]).astype(np.float64)


def opposed_gradients(seed):
    """Gradients, and a reference with a negative product."""
    gradients, reference = vectors(seed), vectors(seed + 1)
    if concatenate(gradients) @ concatenate(reference) > 0:
        gradients = [-part for part in gradients]
    return gradients, reference


@pytest.mark.parametrize("contiguous", [False, True])
def test_a_product_is_that_of_the_concatenated_vectors(contiguous):
    first, second = vectors(0), vectors(1)
    if contiguous:  # the same numbers in another memory format
        second = [part.contiguous() for part in second]
    assert float(dot(first, second)) == pytest.approx(
        concatenate(first) @ concatenate(second), rel=1e-5
    )


def test_a_conflicting_gradient_becomes_orthogonal_by_hand():
    gradients = [torch.tensor([-1.0, 2.0]), torch.tensor([3.0])]
    project(gradients, [torch.tensor([2.0, 0.0]), torch.tensor([0.0])])
    assert [part.tolist() for part in gradients] == [[0.0, 2.0], [3.0]]


@pytest.mark.parametrize("seed", range(0, 20, 2))
def test_the_projection_removes_the_component_along_the_reference(seed):
    gradients, reference = opposed_gradients(seed)
    before = concatenate(gradients)
    project(gradients, reference)
    assert abs(concatenate(gradients) @ concatenate(reference)) < 1e-6 * np.linalg.norm(before) ** 2
    removed = before - concatenate(gradients)
    along = concatenate(reference)
    assert abs(removed @ along) == pytest.approx(np.linalg.norm(removed) * np.linalg.norm(along))


def test_gradients_without_conflict_keep_every_bit():
    gradients, reference = opposed_gradients(0)
    gradients = [-part for part in gradients]
    before = [part.clone() for part in gradients]
    project(gradients, reference)
    assert all(torch.equal(one, two) for one, two in zip(gradients, before, strict=True))


def test_a_second_projection_changes_nothing():
    gradients, reference = opposed_gradients(0)
    project(gradients, reference)
    before = concatenate(gradients)
    project(gradients, reference)
    np.testing.assert_allclose(concatenate(gradients), before, atol=1e-6)


def test_a_reference_of_zeros_changes_nothing():
    gradients = vectors(0)
    before = concatenate(gradients)
    project(gradients, [torch.zeros_like(part) for part in gradients])
    assert (concatenate(gradients) == before).all()


def test_unflatten_inverts_flatten():
    parts = vectors(0)
    vector = flatten(parts)
    assert (vector.numpy() == concatenate(parts)).all()
    restored = unflatten(vector, parts)
    assert all(torch.equal(one, two) for one, two in zip(restored, parts, strict=True))


def test_gradients_are_those_of_the_backward_pass():
    weights = [torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)]
    (2 * weights[0].sum() + 5 * weights[1].sum()).backward()
    assert [part.tolist() for part in gradients_of(weights)] == [[2, 2], [5, 5, 5]]


def task_gradients(seed, tasks, size=8):
    generator = np.random.default_rng(seed)
    common = generator.normal(size=size)
    return generator.normal(size=(tasks, size)) - common, common + 0.3 * generator.normal(size=size)


def try_all_sets(products, linear, floor):
    """The minimum over all choices of the variables that lie on the floor."""
    best, lowest = None, np.inf
    for free in product([False, True], repeat=len(linear)):
        found, inner = np.full(len(linear), floor), np.array(free)
        if inner.any():
            offset = linear[inner] + products[np.ix_(inner, ~inner)] @ found[~inner]
            found[inner] = np.linalg.lstsq(products[np.ix_(inner, inner)], -offset)[0]
        value = found @ products @ found / 2 + linear @ found
        if (found >= floor - 1e-12).all() and value < lowest:
            best, lowest = found, value
    return best, lowest


@pytest.mark.parametrize("floor", [0.0, 0.5])
@pytest.mark.parametrize(("seed", "tasks"), list(product(range(6), (1, 3, 6))))
def test_the_dual_solution_equals_that_of_trying_every_active_set(seed, tasks, floor):
    old, new = task_gradients(seed, tasks)
    found = solve_dual(old @ old.T, old @ new, floor)
    expected, _ = try_all_sets(old @ old.T, old @ new, floor)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("floor", [0.0, 0.5])
def test_linearly_dependent_tasks_leave_the_dual_solvable(floor):
    old, new = task_gradients(0, 3)
    old = np.concatenate([old, old[:2], np.zeros((1, old.shape[1]))])
    found = solve_dual(old @ old.T, old @ new, floor)
    _, lowest = try_all_sets(old @ old.T, old @ new, floor)
    assert found @ (old @ old.T) @ found / 2 + old @ new @ found == pytest.approx(lowest)
    assert (found >= floor).all()


@pytest.mark.parametrize(("tasks", "size"), [(40, 200), (40, 20)])
def test_the_optimality_conditions_hold_for_many_tasks(tasks, size):
    old, new = task_gradients(1, tasks, size)
    shares = solve_dual(old @ old.T, old @ new, 0.5)
    projected = new + shares @ old
    scale = np.linalg.norm(old, axis=1) * np.linalg.norm(projected)
    assert (shares >= 0.5).all()
    assert (old @ projected >= -1e-7 * scale).all()
    assert (np.abs(old @ projected)[shares > 0.5] <= 1e-7 * scale[shares > 0.5]).all()


def test_the_dual_of_one_past_task_is_the_projection_on_one_reference():
    gradients, reference = opposed_gradients(0)
    old, new = concatenate(reference)[None], concatenate(gradients)
    share = solve_dual(old @ old.T, old @ new, 0.0)
    project(gradients, reference)
    np.testing.assert_allclose(concatenate(gradients), new + share @ old, atol=1e-6)
