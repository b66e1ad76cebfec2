"""Merged prototypes equal those of the pooled vectors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everlearn.memory import Prototypes


def random_vectors(count, size=6, classes=5, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, count)
    return labels, torch.from_numpy(rng.normal(size=(count, size)).astype(np.float32))


def prototypes_of(labels, vectors):
    prototypes = Prototypes(vectors.shape[1])
    prototypes.add(labels, vectors)
    return prototypes


def test_means_and_counts_agree_with_a_loop():
    labels, vectors = random_vectors(200)
    prototypes = Prototypes(6)
    for start in range(0, 200, 30):
        prototypes.add(labels[start : start + 30], vectors[start : start + 30])
    assert prototypes.labels == [0, 1, 2, 3, 4]
    for row, label in enumerate(prototypes.labels):
        members = vectors.numpy()[labels == label].astype(np.float64)
        assert prototypes.counts[row] == len(members)
        assert (prototypes.means()[row].numpy() == members.mean(0).astype(np.float32)).all()


def test_merging_equals_pooling():
    parts = [random_vectors(300, classes=8, seed=seed) for seed in range(5)]
    merged = Prototypes(6)
    for labels, vectors in parts:
        merged.merge(prototypes_of(labels, vectors))
    pooled = prototypes_of(np.concatenate([a for a, _ in parts]), torch.cat([b for _, b in parts]))
    assert merged.labels == pooled.labels
    assert torch.equal(merged.counts, pooled.counts)
    # Each mean received was rounded once to float32; they are of size 1 or less.
    assert (merged.means() - pooled.means()).abs().max() <= 2**-23


def test_merge_of_a_hand_calculation():
    one = prototypes_of([3, 3, 3], torch.tensor([[1.0], [2.0], [3.0]]))
    two = prototypes_of([3, 8], torch.tensor([[6.0], [5.0]]))
    one.merge(two)
    assert one.labels == [3, 8]
    assert one.means().tolist() == [[3.0], [5.0]]
    assert one.counts.tolist() == [4, 1]
    assert two.labels == [3, 8]
    assert two.counts.tolist() == [1, 1]


def test_bytes_are_4_times_d_plus_1_per_class():
    prototypes = prototypes_of([1, 2, 2], torch.zeros(3, 10))
    sent = prototypes.means().numpy().nbytes + prototypes.counts.int().numpy().nbytes
    assert prototypes.bytes == sent == 2 * 4 * (10 + 1)


def test_predict_returns_the_nearest_mean():
    labels, vectors = random_vectors(100)
    prototypes = prototypes_of(labels * 10, vectors)
    _, queries = random_vectors(50, seed=1)
    difference = queries.double()[:, None] - prototypes.means().double()
    expected = [prototypes.labels[row] for row in difference.square().sum(2).argmin(1)]
    assert prototypes.predict(queries).tolist() == expected


def test_ties_go_to_the_smaller_label():
    prototypes = prototypes_of([9, 4, 6], torch.tensor([[1.0], [-1.0], [1.0]]))
    assert prototypes.predict(torch.tensor([[0.0], [2.0]])).tolist() == [4, 6]


def test_invalid_vectors_are_rejected():
    prototypes = Prototypes(3)
    with pytest.raises(ValueError, match="no prototypes yet"):
        prototypes.predict(torch.zeros(1, 3))
    with pytest.raises(ValueError, match=r"must be \(B, 3\) float, found \(2, 4\)"):
        prototypes.add([1, 2], torch.zeros(2, 4))
    with pytest.raises(ValueError, match="found 1 labels for 2 vectors"):
        prototypes.add([1], torch.zeros(2, 3))
    with pytest.raises(ValueError, match="size 3 here and 4 in the other"):
        prototypes.merge(Prototypes(4))
    assert len(prototypes) == 0
