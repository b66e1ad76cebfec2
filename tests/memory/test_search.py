"""Search agrees with brute force, and no other query or image changes a bit of a result."""

from __future__ import annotations

import math

import pytest
import torch

from everlearn.memory import Exemplars
from everlearn.memory.search import full_precision

SHAPES = [(1, 12, 12), (3, 7, 9), (1, 33, 33)]


def random_images(count, shape=(1, 12, 12), seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, *shape), dtype=torch.uint8, generator=rng)


def memory_of(count, shape=(1, 12, 12), crop=None, seed=0):
    memory = Exemplars(shape, crop=crop)
    memory.add(range(count), random_images(count, shape, seed))
    return memory


def nearby_queries(memory, count, noise, seed=1):
    """Queries that lie around stored random_images."""
    rng = torch.Generator().manual_seed(seed)
    stored = memory.images()
    chosen = stored[torch.randint(0, len(stored), (count,), generator=rng)].float() / 255
    return (chosen + noise * torch.randn(chosen.shape, generator=rng)).clamp(0, 1)


def brute_force_search(memory, queries, k, rows=slice(None), columns=slice(None)):
    """Every pair in float64, sorted by distance and label."""
    stored = [(c, p.double() / 255) for c, p in zip(memory.labels, memory.images(), strict=True)]
    answers = []
    for query in queries.double():
        pairs = [
            (float((query - p)[:, rows, columns].square().mean()), label) for label, p in stored
        ]
        answers.append(sorted(pairs)[:k])
    return answers


def agree(found, answers):
    for labels, distances, answer in zip(found.labels, found.distances, answers, strict=True):
        assert labels.tolist() == [label for _, label in answer]
        assert distances.tolist() == pytest.approx([d for d, _ in answer], rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("count", "k"), [(1, 1), (40, 2), (300, 5), (700, 2)])
def test_search_agrees_with_brute_force(shape, count, k):
    memory = memory_of(count, shape)
    queries = nearby_queries(memory, 30, 0.2)
    agree(memory.search(queries, k), brute_force_search(memory, queries, k))


@pytest.mark.parametrize("autocast", [False, True])
def test_nearly_equal_images_are_distinguished(autocast):
    shape = (1, 32, 32)
    base = random_images(1, shape).clamp(10, 240)
    images = base.repeat(200, 1, 1, 1)
    for row in range(200):
        images[row].flatten()[5 * row] += 10
    memory = Exemplars(shape)
    memory.add(range(200), images)
    queries = images.float() / 255
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        found = memory.search(queries, 2)
    assert found.labels[:, 0].tolist() == list(range(200))
    assert (found.distances[:, 0] == 0).all()
    assert (found.distances[:, 1] > 0).all()


def test_seven_images_may_be_closer_than_the_rounding_of_products():
    shape = (1, 64, 64)
    images = (random_images(1, shape) // 128 * 254).repeat(7, 1, 1, 1)
    for row in range(7):
        images[row, 0, row, 3 * row] += 1
    memory = memory_of(100, shape)
    memory.add(range(100, 107), images)
    found = memory.search(images.float() / 255, 1)
    assert found.labels.flatten().tolist() == list(range(100, 107))
    assert (found.distances == 0).all()


def test_a_distance_near_zero_is_accurate():
    memory = memory_of(300, (1, 32, 32))
    queries = memory.images([17]).float() / 255
    queries[0, 0, 3, 4] += 1e-3
    off = float(queries[0, 0, 3, 4].double() - memory.images([17])[0, 0, 3, 4].double() / 255)
    found = memory.search(queries, 1)
    assert found.labels.tolist() == [[17]]
    assert float(found.distances) == pytest.approx(off**2 / 1024, rel=1e-3)


def test_only_the_crop_is_compared():
    memory = memory_of(60, (1, 20, 20), crop=0.25)
    queries = nearby_queries(memory, 20, 0.1)
    expected = memory.search(queries)
    agree(expected, brute_force_search(memory, queries, 2, slice(5, 15), slice(5, 15)))
    queries[:, :, :5] = 0.7
    queries[:, :, :, 15:] = 0.1
    assert_same(memory.search(queries), expected)


def test_a_crop_of_0_36_contains_every_canonical_shape():
    memory = Exemplars((1, 64, 64), crop=0.36)
    memory.add([0], torch.zeros(1, 1, 64, 64))
    reach = math.floor(0.354 * 64)
    queries = torch.zeros(4, 1, 64, 64)
    for row, (y, x) in enumerate([(32 - reach, 32), (31 + reach, 32), (32, 32 - reach)]):
        queries[row, 0, y, x] = 1
    queries[3, 0, 2, 2] = 1
    assert (memory.search(queries, 1).distances > 0).flatten().tolist() == [True] * 3 + [False]


def test_a_crop_of_half_the_side_compares_the_entire_image():
    entire, cropped = memory_of(50), memory_of(50, crop=0.5)
    queries = nearby_queries(entire, 20, 0.3)
    assert_same(entire.search(queries), cropped.search(queries))


def test_ties_go_to_the_smaller_label_in_any_block():
    memory = memory_of(600)
    twins = [903, 5000, 711, 2**62, 800, *range(1000, 1040), 700]
    memory.add(twins, random_images(1, seed=9).repeat(len(twins), 1, 1, 1))
    queries = nearby_queries(memory, 3, 0.1, seed=3)
    queries[1] = random_images(1, seed=9)[0].float() / 255
    queries[2] = queries[1] * 0.9
    assert memory.search(queries, 4).labels[1:].tolist() == [[700, 711, 800, 903]] * 2


def test_missing_neighbours_have_label_minus_one_and_infinite_distance():
    found = memory_of(2).search(torch.rand(3, 1, 12, 12), 4)
    assert (found.labels[:, 2:] == -1).all()
    assert (found.labels[:, :2] >= 0).all()
    assert found.distances[:, 2:].isinf().all()


def test_types_and_shapes_of_a_result():
    for count in (0, 1, 65):
        found = memory_of(5).search(torch.rand(count, 1, 12, 12, dtype=torch.float64), 3)
        assert found.labels.shape == found.distances.shape == (count, 3)
        assert (found.labels.dtype, found.distances.dtype) == (torch.int64, torch.float32)


def test_a_query_that_is_not_finite_has_no_neighbours():
    queries = torch.rand(2, 1, 12, 12)
    queries[0, 0, 0, 0] = torch.nan
    found = memory_of(5).search(queries)
    assert found.labels[0].tolist() == [-1, -1]
    assert (found.labels[1] >= 0).all()


def assert_same(one, two):
    assert torch.equal(one.labels, two.labels)
    assert torch.equal(one.distances, two.distances)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_rest_of_the_batch_changes_no_bit(shape):
    memory = memory_of(400, shape)
    queries = nearby_queries(memory, 200, 0.2)
    entire = memory.search(queries)
    for start, stop in [(0, 1), (7, 8), (199, 200), (3, 70), (60, 125), (1, 200)]:
        part = memory.search(queries[start:stop])
        assert_same(part, type(entire)(*(column[start:stop] for column in entire)))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_rest_of_the_memory_changes_no_bit(shape):
    count = 2500 if shape == SHAPES[0] else 600
    images, memory = random_images(count, shape), Exemplars(shape)
    queries = torch.rand(5, *shape, generator=torch.Generator().manual_seed(4))
    for stop in (1, 2, 255, 256, 257, 513, count):
        start = len(memory)
        memory.add(range(start, stop), images[start:stop])
        for row, (labels, distances) in enumerate(zip(*memory.search(queries), strict=True)):
            for label, distance in zip(labels.tolist(), distances, strict=True):
                if label >= 0:
                    alone = Exemplars(shape)
                    alone.add([label], images[label : label + 1])
                    assert alone.search(queries[row : row + 1], 1).distances == distance


def test_k_changes_no_bit():
    memory = memory_of(300)
    queries = nearby_queries(memory, 20, 0.3)
    many = memory.search(queries, 9)
    for k in (1, 2, 5):
        assert_same(memory.search(queries, k), type(many)(*(part[:, :k] for part in many)))


def by_label(memory, queries):
    """Every distance, (B, N), columns in the order of labels."""
    found = memory.search(queries, len(memory))
    return found.distances.gather(1, found.labels.argsort(1))


@pytest.mark.parametrize("removed", [0, 100, 255, 256, 299])
def test_removing_and_restoring_a_class_changes_no_other_bit(removed):
    memory = memory_of(300)
    queries, image = nearby_queries(memory, 10, 0.2), memory.images([removed])
    before, answers = by_label(memory, queries), memory.search(queries)
    memory.remove([removed])
    assert removed not in memory.search(queries, 300).labels
    others = [label for label in range(300) if label != removed]
    assert torch.equal(by_label(memory, queries), before[:, others])
    memory.add([1000], random_images(1, seed=5))
    memory.add([removed], image)
    memory.remove([1000])
    assert_same(memory.search(queries), answers)
    assert torch.equal(by_label(memory, queries), before)


def test_edits_between_searches_are_seen():
    memory = memory_of(20)
    queries = random_images(1, seed=7).float() / 255
    for edit, label in [
        (lambda: memory.add([50], random_images(1, seed=7)), 50),
        (lambda: memory.replace([3], random_images(1, seed=7)), 3),
        (lambda: memory.remove([3]), 50),
    ]:
        before = memory.search(queries, 1)
        edit()
        found = memory.search(queries, 1)
        assert found.labels.tolist() == [[label]] != before.labels.tolist()
        assert torch.equal(memory.gather(found.labels[0]), memory.images([label]))


def test_every_exemplar_is_its_own_nearest_neighbour():
    memory = memory_of(100, (1, 32, 32))
    found = memory.search(memory.images().float() / 255, 1)
    assert found.labels[:, 0].tolist() == memory.labels
    assert (found.distances == 0).all()


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_precision_settings_of_the_caller_change_no_bit_and_are_restored(precision):
    memory = memory_of(300)
    queries = nearby_queries(memory, 20, 0.2)
    expected = memory.search(queries)
    torch.set_float32_matmul_precision(precision)
    try:
        with torch.autocast("cpu", torch.bfloat16):
            assert_same(memory.search(queries), expected)
            assert (queries[0, 0] @ queries[0, 0]).dtype == torch.bfloat16
        assert torch.get_float32_matmul_precision() == precision
        assert torch.backends.cuda.matmul.allow_tf32 == (precision != "highest")
    finally:
        torch.set_float32_matmul_precision("highest")


def test_precision_is_restored_after_an_error():
    before = torch.backends.cuda.matmul.fp32_precision
    with pytest.raises(RuntimeError), full_precision(torch.device("cpu")):
        torch.zeros(2) @ torch.zeros(3)
    assert torch.backends.cuda.matmul.fp32_precision == before


def test_search_builds_no_graph():
    queries = torch.rand(2, 1, 12, 12, requires_grad=True)
    assert not memory_of(3).search(queries).distances.requires_grad


@pytest.mark.parametrize(
    ("queries", "error", "message"),
    [
        (
            torch.zeros(2, 1, 12, 12, dtype=torch.uint8),
            TypeError,
            "float in 0 .. 1, found torch.uint8",
        ),
        (torch.zeros(2, 1, 12, 13), ValueError, r"\(B, 1, 12, 12\), found \(2, 1, 12, 13\)"),
        (torch.zeros(1, 12, 12), ValueError, r"found \(1, 12, 12\)"),
        (torch.zeros(2, 1, 12, 12, device="meta"), ValueError, "on cpu, found meta"),
    ],
)
def test_invalid_queries_are_rejected(queries, error, message):
    with pytest.raises(error, match=message):
        memory_of(3).search(queries)


def test_an_empty_memory_cannot_be_searched():
    with pytest.raises(ValueError, match="empty: add exemplars"):
        Exemplars((1, 12, 12)).search(torch.rand(1, 1, 12, 12))
    with pytest.raises(ValueError, match=r"k must lie in 1 .. 1000, found 0"):
        memory_of(3).search(torch.rand(1, 1, 12, 12), 0)
