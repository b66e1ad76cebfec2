"""The memory on a GPU agrees with the CPU, in full precision, without syncs and in little memory."""

from __future__ import annotations

import pytest
import torch

from everlearn.memory import Exemplars, Prototypes, search
from everlearn.memory.search import full_precision

pytestmark = pytest.mark.gpu


def random_images(count, shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, *shape), dtype=torch.uint8, generator=rng)


def memory_of(count, shape, device="cuda", crop=None):
    memory = Exemplars(shape, device, crop)
    memory.add(range(count), random_images(count, shape))
    return memory


def nearby_queries(count, shape, stored, noise=0.2):
    rng = torch.Generator().manual_seed(1)
    chosen = random_images(stored, shape)[torch.randint(0, stored, (count,), generator=rng)]
    return (chosen / 255 + noise * torch.randn(chosen.shape, generator=rng)).clamp(0, 1).cuda()


def assert_same(one, two):
    assert torch.equal(one.labels, two.labels)
    assert torch.equal(one.distances, two.distances)


@pytest.mark.parametrize(("shape", "crop"), [((1, 32, 32), None), ((3, 33, 33), 0.36)])
def test_search_agrees_on_both_devices(shape, crop):
    queries = nearby_queries(500, shape, 3000)
    on_gpu = memory_of(3000, shape, crop=crop).search(queries, 3)
    on_cpu = memory_of(3000, shape, "cpu", crop).search(queries.cpu(), 3)
    assert torch.equal(on_gpu.labels.cpu(), on_cpu.labels)
    torch.testing.assert_close(on_gpu.distances.cpu(), on_cpu.distances, rtol=1e-5, atol=1e-9)


def test_every_exemplar_is_at_distance_zero_from_itself():
    memory = memory_of(1000, (1, 32, 32))
    queries = random_images(1000, (1, 32, 32)).numpy().astype("float32") / 255
    found = memory.search(torch.from_numpy(queries).cuda(), 1)
    assert found.labels[:, 0].tolist() == memory.labels
    assert (found.distances == 0).all()


@pytest.mark.parametrize("shape", [(1, 32, 32), (1, 23, 23), (3, 7, 9)])
def test_the_rest_of_the_batch_changes_no_bit(shape):
    memory = memory_of(3000, shape)
    queries = nearby_queries(2500, shape, 3000)
    entire = memory.search(queries)
    for start, stop in [(0, 1), (1023, 1025), (2499, 2500), (3, 1270), (1, 2500)]:
        part = memory.search(queries[start:stop])
        assert_same(part, type(entire)(*(column[start:stop] for column in entire)))


@pytest.mark.parametrize("shape", [(1, 32, 32), (1, 23, 23)])
def test_the_rest_of_the_memory_changes_no_bit(shape):
    images, queries = random_images(20_000, shape), nearby_queries(8, shape, 100)
    memory = Exemplars(shape, "cuda")
    for stop in (1, 257, 5000, 20_000):
        start = len(memory)
        memory.add(range(start, stop), images[start:stop])
        for row, (labels, distances) in enumerate(zip(*memory.search(queries), strict=True)):
            for label, distance in zip(labels.tolist(), distances, strict=True):
                if label >= 0:
                    alone = Exemplars(shape, "cuda")
                    alone.add([label], images[label : label + 1])
                    assert alone.search(queries[row : row + 1], 1).distances == distance


def test_removing_and_restoring_a_class_changes_no_other_bit():
    shape = (1, 23, 23)
    memory, queries = memory_of(600, shape), nearby_queries(50, shape, 600)
    before = memory.search(queries, 600)
    order = before.labels.argsort(1)
    memory.remove([300])
    after = memory.search(queries, 599)
    others = torch.tensor([label for label in range(600) if label != 300], device="cuda")
    expected = before.distances.gather(1, order)[:, others]
    assert torch.equal(after.distances.gather(1, after.labels.argsort(1)), expected)
    memory.add([300], random_images(600, shape)[300:301])
    assert_same(memory.search(queries, 600), before)


def test_ties_go_to_the_smaller_label():
    memory = memory_of(5000, (1, 16, 16))
    twins = [90_003, 50_000, 7110, 2**62, *range(10_000, 10_040), 7000]
    memory.add(twins, random_images(1, (1, 16, 16), 9).repeat(len(twins), 1, 1, 1))
    queries = (random_images(1, (1, 16, 16), 9) / 255).cuda() * 0.9
    assert memory.search(queries, 3).labels.tolist() == [[7000, 7110, 10_000]]


def error_of_a_product():
    rng = torch.Generator("cuda").manual_seed(0)
    one, two = torch.rand(2, 256, 1024, generator=rng, device="cuda")
    return float((one @ two.T - (one.double() @ two.double().T)).abs().max())


def test_products_ignore_the_tf32_setting_of_the_caller():
    memory, queries = memory_of(3000, (1, 32, 32)), nearby_queries(300, (1, 32, 32), 3000)
    expected = memory.search(queries)
    torch.set_float32_matmul_precision("high")
    try:
        assert error_of_a_product() > 1e-3
        with full_precision(torch.device("cuda")):
            assert error_of_a_product() < 1e-3
        with torch.autocast("cuda", torch.bfloat16):
            assert_same(memory.search(queries), expected)
        assert torch.backends.cuda.matmul.allow_tf32
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_bfloat16_products_are_as_accurate_as_float32():
    shape = (1, 64, 64)
    grey = 169 + (random_images(500, shape).int() - 128) // 4  # random_images that differ little
    rows = (nearby_queries(300, shape, 500) * 0.1 + 0.6).flatten(1)
    stored = (grey.cuda().flatten(1) - 128).to(torch.bfloat16)
    group = search._prepare_queries(rows)
    exact = (rows.double() * 255 - 128) @ stored.double().T
    error = (search._multiply(group, stored).sum(0) - exact).abs().max() / (4096 * 255**2)
    assert error < 3e-7


@pytest.mark.parametrize(("columns", "k"), [(1, 1), (16, 10), (30, 30), (64, 2), (65, 2)])
def test_results_are_sorted_as_on_a_cpu(columns, k):
    rng = torch.Generator().manual_seed(2)
    labels = torch.randint(-1, 20, (300, columns), generator=rng)
    labels[0] = 2**62
    distances = torch.randint(0, 4, labels.shape, generator=rng).float()  # many ties
    distances[labels < 0] = torch.inf
    distances[1] = torch.nan
    result = search.SearchResult(labels, distances)
    expected = search.nearest_first(result, k)
    found = search.nearest_first(search.SearchResult(labels.cuda(), distances.cuda()), k)
    assert torch.equal(found.labels.cpu(), expected.labels)
    torch.testing.assert_close(
        found.distances.cpu(), expected.distances, rtol=0, atol=0, equal_nan=True
    )


@pytest.mark.parametrize("stored", [3, 300, 5000])
def test_the_kernel_selects_what_topk_selects(stored, monkeypatch):
    shape = (1, 16, 16)
    memory = memory_of(stored, shape)
    queries = nearby_queries(200, shape, stored)
    twins = random_images(1, shape, 9).repeat(20, 1, 1, 1)
    memory.add(range(10_000, 10_020), twins)
    queries[0] = twins[0].cuda() / 255
    fast = memory.search(queries, 10)
    monkeypatch.setattr(search, "_MAX_KERNEL_COLUMNS", 0)
    assert_same(memory.search(queries, 10), fast)


def test_a_query_that_is_not_finite_has_no_neighbours():
    queries = nearby_queries(3, (1, 12, 12), 50)
    queries[0, 0, 0, 0] = torch.nan
    queries[1, 0, 0, 0] = torch.inf
    found = memory_of(50, (1, 12, 12)).search(queries)
    assert (found.labels[:2] == -1).all()
    assert (found.labels[2] >= 0).all()


def test_search_does_not_synchronise():
    memory, queries = memory_of(3000, (1, 32, 32)), nearby_queries(700, (1, 32, 32), 3000)
    memory.search(queries)
    torch.cuda.set_sync_debug_mode("error")
    try:
        memory.search(queries)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_search_does_not_allocate_all_distances_at_once():
    count, num_queries = 300_000, 4096
    memory, queries = memory_of(count, (1, 8, 8)), nearby_queries(num_queries, (1, 8, 8), count)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    memory.search(queries)
    assert torch.cuda.max_memory_allocated() - before < 2**29 < 4 * count * num_queries / 8


def test_a_saved_memory_loads_on_another_device(tmp_path):
    memory = memory_of(300, (1, 8, 8))
    path = memory.save(tmp_path / "memory.npz")
    on_cpu = Exemplars.load(path)
    assert on_cpu.save(tmp_path / "again.npz").read_bytes() == path.read_bytes()
    on_cpu.merge(memory)
    other = Exemplars((1, 8, 8), "cuda")
    other.merge(on_cpu)
    assert torch.equal(other.images(), memory.images())


def test_prototypes_predict_on_the_device_of_the_vectors():
    prototypes = Prototypes(4)
    prototypes.add(torch.tensor([3, 7], device="cuda"), torch.eye(4, device="cuda")[:2])
    assert prototypes.predict(torch.eye(4, device="cuda")[:2]).tolist() == [3, 7]
