"""A classifier predicts among the classes it has seen, or among given ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from everlearn.nets import build_net
from everlearn.nets.classifier import Classifier

LOGITS = torch.tensor([[4.0, 3, 2, 1, 0], [0, 1, 2, 3, 4], [0, 5, 0, 5, 9]])[:, :, None, None]


def identity_classifier(start=10):
    """A classifier of five classes with the image itself as logits."""
    return Classifier(nn.Flatten(), range(start, start + 5), "cpu")


def trained(seed=0):
    """A classifier with updated running statistics."""
    model = Classifier(build_net("convnet-pooled", 1, 5, 16, seed), range(10, 15), "cpu")
    model.add_classes([10, 11, 12, 13])
    model.net.train()
    model.logits(images(20))
    return model


def images(count):
    return torch.rand(count, 1, 16, 16, generator=torch.Generator().manual_seed(0))


def test_predictions_are_the_largest_logits_of_seen_classes():
    model = identity_classifier()
    model.add_classes([11, 13])
    assert model.predict(LOGITS).tolist() == [11, 13, 11]
    model.add_classes([14])
    assert model.predict(LOGITS).tolist() == [11, 14, 14]
    model.add_classes(range(10, 15))
    assert model.predict(LOGITS).tolist() == [10, 14, 14]


def test_without_a_seen_class_the_prediction_is_minus_one():
    assert identity_classifier().predict(LOGITS).tolist() == [-1, -1, -1]
    assert identity_classifier(0).predict(LOGITS).tolist() == [-1, -1, -1]


def test_predictions_can_be_restricted_to_given_classes():
    model = identity_classifier()
    model.add_classes([10])
    assert model.predict(LOGITS, among=[12, 13]).tolist() == [12, 13, 13]
    assert model.predict(LOGITS, among=[14]).tolist() == [14, 14, 14]
    assert model.predict(LOGITS, among=[]).tolist() == [-1, -1, -1]
    assert model.predict(LOGITS).tolist() == [10, 10, 10]


def test_a_logit_below_all_masked_ones_can_still_win():
    model = identity_classifier()
    model.add_classes([10])
    assert model.predict(torch.full((1, 5, 1, 1), -1e30)).tolist() == [10]


@pytest.mark.parametrize("unknown", [9, 15, -1])
def test_a_class_without_an_output_is_refused(unknown):
    model = identity_classifier()
    message = rf"unknown classes \[{unknown}\]; this net has outputs for 10 .. 14"
    with pytest.raises(ValueError, match=message):
        model.add_classes([10, unknown])
    with pytest.raises(ValueError, match=message):
        model.predict(LOGITS, among=[unknown])
    assert not model.seen.any()


def test_targets_count_from_the_first_class():
    assert identity_classifier().targets(torch.tensor([10, 14, 12])).tolist() == [0, 4, 2]


def test_a_prediction_does_not_depend_on_the_rest_of_the_batch():
    model, batch = trained(), images(20)
    together = model.predict(batch)
    assert torch.equal(together, torch.cat([model.predict(one[None]) for one in batch]))


def test_predicting_changes_nothing():
    model = trained()
    before = {key: value.clone() for key, value in model.net.state_dict().items()}
    model.predict(images(20))
    assert model.net.training
    assert all(torch.equal(before[key], value) for key, value in model.net.state_dict().items())


def test_a_state_is_restored_in_place():
    model, other = trained(0), trained(1)
    other.add_classes([14])
    addresses = [value.data_ptr() for value in (*other.net.state_dict().values(), other.seen)]
    other.load_state(model.state())
    assert torch.equal(other.seen, model.seen)
    other.net.eval(), model.net.eval()
    assert torch.equal(other.logits(images(20)), model.logits(images(20)))
    assert torch.equal(other.predict(images(20)), model.predict(images(20)))
    assert [v.data_ptr() for v in (*other.net.state_dict().values(), other.seen)] == addresses


def test_a_state_is_plain_dicts_of_tensors():
    state = trained().state()
    assert type(state["net"]) is dict
    assert all(type(value) is torch.Tensor for value in (*state["net"].values(), state["seen"]))


def test_the_loss_is_over_all_classes_or_only_seen_ones():
    model = identity_classifier()
    model.add_classes([11, 13])
    targets = torch.tensor([1, 3, 1])
    rows = LOGITS.flatten(1)
    every = -(rows[range(3), targets] - rows.exp().sum(1).log()).mean()
    seen = -(rows[range(3), targets] - rows[:, [1, 3]].exp().sum(1).log()).mean()
    torch.testing.assert_close(model.loss(rows, targets, include_unseen=True), every)
    torch.testing.assert_close(model.loss(rows, targets, include_unseen=False), seen)
