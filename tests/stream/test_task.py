"""Tasks and batches: random access, order, devices, data loaders."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from everlearn import Canvas, Stream, outline, render, theta
from everlearn.factors import Factors
from everlearn.stream.torch_datasets import BatchDataset, SplitDataset

SMALL = Stream(seed=3, tasks=4, classes_per_task=3, values_per_factor=3, canvas=Canvas(size=16))


def _equal(a, b) -> bool:
    return (
        torch.equal(a.images, b.images)
        and torch.equal(a.labels, b.labels)
        and torch.equal(a.theta, b.theta)
        and all(torch.equal(x, y) for x, y in zip(a.factors, b.factors, strict=True))
    )


def test_two_passes_and_any_access_order_agree():
    first = [list(task.batches(50)) for task in SMALL]
    for index in (2, 0, 3, 1):
        again = list(SMALL[index].batches(50))
        assert all(_equal(a, b) for a, b in zip(first[index], again, strict=True))


def test_a_row_is_the_same_alone_and_in_any_batch():
    split = SMALL[1].split("train")
    whole = split.batch(slice(None))
    some = split.batch([7, 3, 7])
    assert torch.equal(some.images, whole.images[[7, 3, 7]])
    assert torch.equal(some.labels, whole.labels[[7, 3, 7]])
    for row in range(len(split)):
        assert torch.equal(split.batch([row]).images[0], whole.images[row])


def test_images_show_the_shape_and_factors_they_claim():
    batch = SMALL[2].split("test").batch(slice(None))
    for row in range(len(batch.labels)):
        factors = Factors(*(column[row : row + 1].double().numpy() for column in batch.factors))
        drawn = render(outline(SMALL.seed, int(batch.labels[row])), factors, SMALL.canvas)
        assert np.abs(drawn[0] - batch.images[row].numpy()).max() <= 1.01 / 255
        assert np.abs(theta(factors)[0] - batch.theta[row].numpy()).max() < 1e-6


def test_exemplars_are_canonical_images_in_the_order_of_the_classes():
    task = SMALL[1]
    exemplars = task.exemplars()
    assert tuple(exemplars.labels.tolist()) == task.classes == (3, 4, 5)
    assert torch.equal(exemplars.theta, torch.eye(2, 3).expand(3, 2, 3))


def test_an_epoch_shows_every_row_once_and_epochs_differ():
    task = SMALL[0]
    count = len(task.train)
    orders = [task.order(epoch) for epoch in range(2)]
    assert all(sorted(order) == list(range(count)) for order in orders)
    assert (orders[0] != orders[1]).any()
    labels = torch.cat([batch.labels for batch in task.batches(7, epochs=2)])
    assert torch.equal(labels, torch.from_numpy(task.train.labels[np.concatenate(orders)]))


def test_the_last_batch_can_be_dropped():
    task = SMALL[0]
    sizes = [len(batch.labels) for batch in task.batches(50, drop_last=True)]
    assert set(sizes) == {50}
    assert len(sizes) == len(task.train) // 50


def test_batches_can_be_made_by_their_number():
    task = SMALL[0]
    listed = list(task.batches(40, epochs=3))
    assert len(listed) == task.count_batches(40, 3)
    assert all(_equal(task.nth_batch(i, 40), batch) for i, batch in enumerate(listed))


def test_a_split_goes_through_its_rows_in_order():
    split = SMALL[0].test
    labels = torch.cat([batch.labels for batch in split.batches(4)])
    assert torch.equal(labels, torch.from_numpy(split.labels))


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_any_number_of_workers_gives_the_same_batches(workers):
    data = BatchDataset(SMALL, 60, epochs=2, tasks=range(1, 4))
    loaded = list(DataLoader(data, batch_size=None, num_workers=workers))
    expected = [batch for t in (1, 2, 3) for batch in SMALL[t].batches(60, epochs=2)]
    assert SMALL[1].count_batches(60, 2) % 3  # the share of a worker starts anew in every task
    assert len(loaded) == len(expected)
    assert all(_equal(a, b) for a, b in zip(loaded, expected, strict=True))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_split_works_in_a_plain_data_loader(workers):
    split = SMALL[0].test
    loader = DataLoader(SplitDataset(split), batch_size=3, num_workers=workers)
    images = torch.cat([images for images, _ in loader])
    assert torch.equal(images, split.batch(slice(None)).images)
    image, label = SplitDataset(split)[1]
    assert torch.equal(image, images[1])
    assert int(label) == split.labels[1]


def test_an_online_task_is_seen_once():
    task = Stream(tasks=1, values_per_factor=2, online=True)[0]
    assert len(list(task.batches(64))) > 0
    with pytest.raises(ValueError, match="online: one pass"):
        task.batches(64, epochs=2)


def test_uint8_streams_give_uint8():
    stream = Stream(tasks=1, values_per_factor=2, canvas=Canvas(size=16, dtype="uint8"))
    assert next(stream[0].batches(4)).images.dtype == torch.uint8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda task: task.split("dev"), "unknown split 'dev'; known: train, val, test"),
        (lambda task: task.batches(0), "batch_size"),
        (lambda task: task.batches(-1), "batch_size"),
        (lambda task: task.batches(2.5), "batch_size"),
        (lambda task: task.batches(8, epochs=0), "epochs"),
        (lambda task: task.train.batch([0], "mars"), "unknown device 'mars'"),
        (lambda task: task.train.batch([10**6]), "rows must lie in"),
        (lambda task: task.train.batch([-1]), "rows must lie in"),
        (lambda task: task.train.batch([0.5]), "rows must be whole numbers"),
    ],
)
def test_bad_requests_are_refused(call, message):
    with pytest.raises((ValueError, IndexError, TypeError), match=message):
        call(SMALL[0])


@pytest.mark.integration
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_split_that_was_used_can_be_sent_to_workers(method):
    split = SMALL[0].test
    expected = split.batch(slice(None)).images
    loader = DataLoader(
        SplitDataset(split), batch_size=4, num_workers=1, multiprocessing_context=method
    )
    assert torch.equal(torch.cat([images for images, _ in loader]), expected)


def test_a_device_may_be_a_torch_device():
    batch = SMALL[0].train.batch([0], device=torch.device("cpu"))
    assert torch.equal(batch.images, SMALL[0].train.batch([0]).images)


def test_an_unknown_device_is_refused_before_the_first_batch():
    with pytest.raises(ValueError, match="unknown device"):
        SMALL[0].batches(4, device="tpu")


def test_batches_are_counted_with_and_without_the_last():
    task = SMALL[0]
    assert task.count_batches(50) == len(list(task.batches(50)))
    assert task.count_batches(50, drop_last=True) == len(list(task.batches(50, drop_last=True)))


def test_a_batch_number_out_of_range_is_an_index_error():
    online = Stream(tasks=1, values_per_factor=2, online=True)[0]
    with pytest.raises(IndexError, match="not among"):
        online.nth_batch(online.count_batches(64), 64)
    with pytest.raises(IndexError, match="not among"):
        SMALL[0].nth_batch(-1, 64)
