"""The memory on a GPU answers as on the CPU, in full precision, without waiting and in little room."""

from __future__ import annotations

import pytest
import torch

from everlearn.memory import Exemplars, Prototypes, search
from everlearn.memory.search import full_precision

pytestmark = pytest.mark.gpu


def pictures(count, shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, *shape), dtype=torch.uint8, generator=rng)


def memory_of(count, shape, device="cuda", crop=None):
    memory = Exemplars(shape, device, crop)
    memory.add(range(count), pictures(count, shape))
    return memory


def near(count, shape, stored, noise=0.2):
    rng = torch.Generator().manual_seed(1)
    chosen = pictures(stored, shape)[torch.randint(0, stored, (count,), generator=rng)]
    return (chosen / 255 + noise * torch.randn(chosen.shape, generator=rng)).clamp(0, 1).cuda()


def assert_same(one, two):
    assert torch.equal(one.labels, two.labels)
    assert torch.equal(one.distances, two.distances)


@pytest.mark.parametrize(("shape", "crop"), [((1, 32, 32), None), ((3, 33, 33), 0.36)])
def test_both_devices_find_the_same(shape, crop):
    queries = near(500, shape, 3000)
    there = memory_of(3000, shape, crop=crop).search(queries, 3)
    here = memory_of(3000, shape, "cpu", crop).search(queries.cpu(), 3)
    assert torch.equal(there.labels.cpu(), here.labels)
    torch.testing.assert_close(there.distances.cpu(), here.distances, rtol=1e-5, atol=1e-9)


def test_every_exemplar_lies_at_no_distance_from_itself():
    memory = memory_of(1000, (1, 32, 32))
    queries = pictures(1000, (1, 32, 32)).numpy().astype("float32") / 255
    found = memory.search(torch.from_numpy(queries).cuda(), 1)
    assert found.labels[:, 0].tolist() == memory.labels
    assert (found.distances == 0).all()


@pytest.mark.parametrize("shape", [(1, 32, 32), (1, 23, 23), (3, 7, 9)])
def test_the_rest_of_the_batch_changes_no_bit(shape):
    memory = memory_of(3000, shape)
    queries = near(2500, shape, 3000)
    whole = memory.search(queries)
    for start, stop in [(0, 1), (1023, 1025), (2499, 2500), (3, 1270), (1, 2500)]:
        part = memory.search(queries[start:stop])
        assert_same(part, type(whole)(*(column[start:stop] for column in whole)))


@pytest.mark.parametrize("shape", [(1, 32, 32), (1, 23, 23)])
def test_the_rest_of_the_memory_changes_no_bit(shape):
    images, queries = pictures(20_000, shape), near(8, shape, 100)
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


def test_removing_a_class_leaves_all_else_bit_equal_and_adding_it_restores_all():
    shape = (1, 23, 23)
    memory, queries = memory_of(600, shape), near(50, shape, 600)
    before = memory.search(queries, 600)
    order = before.labels.argsort(1)
    memory.remove([300])
    after = memory.search(queries, 599)
    others = torch.tensor([label for label in range(600) if label != 300], device="cuda")
    expected = before.distances.gather(1, order)[:, others]
    assert torch.equal(after.distances.gather(1, after.labels.argsort(1)), expected)
    memory.add([300], pictures(600, shape)[300:301])
    assert_same(memory.search(queries, 600), before)


def test_ties_go_to_the_smaller_label():
    memory = memory_of(5000, (1, 16, 16))
    twins = [90_003, 50_000, 7110, 2**62, *range(10_000, 10_040), 7000]
    memory.add(twins, pictures(1, (1, 16, 16), 9).repeat(len(twins), 1, 1, 1))
    queries = (pictures(1, (1, 16, 16), 9) / 255).cuda() * 0.9
    assert memory.search(queries, 3).labels.tolist() == [[7000, 7110, 10_000]]


def error_of_a_product():
    rng = torch.Generator("cuda").manual_seed(0)
    one, two = torch.rand(2, 256, 1024, generator=rng, device="cuda")
    return float((one @ two.T - (one.double() @ two.double().T)).abs().max())


def test_products_are_not_in_tf32_though_the_caller_allows_it():
    memory, queries = memory_of(3000, (1, 32, 32)), near(300, (1, 32, 32), 3000)
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


def test_products_by_bfloat16_are_as_exact_as_float32s():
    shape = (1, 64, 64)
    grey = 169 + (pictures(500, shape).int() - 128) // 4  # pictures that differ little
    rows = (near(300, shape, 500) * 0.1 + 0.6).flatten(1)
    stored = (grey.cuda().flatten(1) - 128).to(torch.bfloat16)
    group = search._ask(rows)
    exact = (rows.double() * 255 - 128) @ stored.double().T
    error = (search._multiply(group, stored) - exact).abs().max() / (4096 * 255**2)
    assert error < 3e-7


def test_the_search_never_waits_for_the_gpu():
    memory, queries = memory_of(3000, (1, 32, 32)), near(700, (1, 32, 32), 3000)
    memory.search(queries)
    torch.cuda.set_sync_debug_mode("error")
    try:
        memory.search(queries)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_no_room_is_taken_for_all_distances_at_once():
    count, asked = 300_000, 4096
    memory, queries = memory_of(count, (1, 8, 8)), near(asked, (1, 8, 8), count)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    memory.search(queries)
    assert torch.cuda.max_memory_allocated() - before < 2**29 < 4 * count * asked / 8


def test_a_memory_goes_from_one_device_to_the_other(tmp_path):
    memory = memory_of(300, (1, 8, 8))
    path = memory.save(tmp_path / "memory.npz")
    here = Exemplars.load(path)
    assert here.save(tmp_path / "again.npz").read_bytes() == path.read_bytes()
    here.merge(memory)
    other = Exemplars((1, 8, 8), "cuda")
    other.merge(here)
    assert torch.equal(other.images(), memory.images())


def test_prototypes_answer_where_the_vectors_lie():
    prototypes = Prototypes(4)
    prototypes.add(torch.tensor([3, 7], device="cuda"), torch.eye(4, device="cuda")[:2])
    assert prototypes.predict(torch.eye(4, device="cuda")[:2]).tolist() == [3, 7]
