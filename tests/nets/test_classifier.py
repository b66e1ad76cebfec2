"""A classifier answers among the classes it has met, or is asked about."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from everlearn.nets import build_net
from everlearn.nets.classifier import Classifier

LOGITS = torch.tensor([[4.0, 3, 2, 1, 0], [0, 1, 2, 3, 4], [0, 5, 0, 5, 9]])[:, :, None, None]


def readers(start=10):
    """A classifier of five classes whose logits are the image itself."""
    return Classifier(nn.Flatten(), range(start, start + 5), "cpu")


def trained(seed=0):
    """A classifier whose kept moments have moved."""
    model = Classifier(build_net("convnet-pooled", 1, 5, 16, seed), range(10, 15), "cpu")
    model.meet([10, 11, 12, 13])
    model.net.train()
    model.logits(images(20))
    return model


def images(count):
    return torch.rand(count, 1, 16, 16, generator=torch.Generator().manual_seed(0))


def test_answers_are_the_largest_logits_of_the_classes_met():
    model = readers()
    model.meet([11, 13])
    assert model.predict(LOGITS).tolist() == [11, 13, 11]
    model.meet([14])
    assert model.predict(LOGITS).tolist() == [11, 14, 14]
    model.meet(range(10, 15))
    assert model.predict(LOGITS).tolist() == [10, 14, 14]


def test_before_any_class_was_met_there_is_no_answer():
    assert readers().predict(LOGITS).tolist() == [-1, -1, -1]
    assert readers(0).predict(LOGITS).tolist() == [-1, -1, -1]


def test_asked_about_some_classes_it_answers_among_them():
    model = readers()
    model.meet([10])
    assert model.predict(LOGITS, among=[12, 13]).tolist() == [12, 13, 13]
    assert model.predict(LOGITS, among=[14]).tolist() == [14, 14, 14]
    assert model.predict(LOGITS, among=[]).tolist() == [-1, -1, -1]
    assert model.predict(LOGITS).tolist() == [10, 10, 10]


def test_a_logit_below_all_masked_ones_can_still_win():
    model = readers()
    model.meet([10])
    assert model.predict(torch.full((1, 5, 1, 1), -1e30)).tolist() == [10]


@pytest.mark.parametrize("strange", [9, 15, -1])
def test_a_class_without_an_output_is_refused(strange):
    model = readers()
    message = rf"unknown classes \[{strange}\]; this net has outputs for 10 .. 14"
    with pytest.raises(ValueError, match=message):
        model.meet([10, strange])
    with pytest.raises(ValueError, match=message):
        model.predict(LOGITS, among=[strange])
    assert not model.met.any()


def test_units_count_classes_from_the_first():
    assert readers().unit(torch.tensor([10, 14, 12])).tolist() == [0, 4, 2]


def test_an_answer_does_not_depend_on_the_rest_of_the_batch():
    model, batch = trained(), images(20)
    whole = model.predict(batch)
    assert torch.equal(whole, torch.cat([model.predict(one[None]) for one in batch]))


def test_answering_changes_nothing():
    model = trained()
    before = {key: value.clone() for key, value in model.net.state_dict().items()}
    model.predict(images(20))
    assert model.net.training
    assert all(torch.equal(before[key], value) for key, value in model.net.state_dict().items())


def test_a_state_brings_everything_back_in_the_memory_there_is():
    model, other = trained(0), trained(1)
    other.meet([14])
    places = [value.data_ptr() for value in (*other.net.state_dict().values(), other.met)]
    other.load_state(model.state())
    assert torch.equal(other.met, model.met)
    other.net.eval(), model.net.eval()
    assert torch.equal(other.logits(images(20)), model.logits(images(20)))
    assert torch.equal(other.predict(images(20)), model.predict(images(20)))
    assert [v.data_ptr() for v in (*other.net.state_dict().values(), other.met)] == places


def test_a_state_is_plain_dicts_of_tensors():
    state = trained().state()
    assert type(state["net"]) is dict
    assert all(type(value) is torch.Tensor for value in (*state["net"].values(), state["met"]))


def test_the_loss_counts_all_classes_or_only_those_met():
    model = readers()
    model.meet([11, 13])
    units = torch.tensor([1, 3, 1])
    rows = LOGITS.flatten(1)
    every = -(rows[range(3), units] - rows.exp().sum(1).log()).mean()
    met = -(rows[range(3), units] - rows[:, [1, 3]].exp().sum(1).log()).mean()
    torch.testing.assert_close(model.loss(rows, units, unmet=True), every)
    torch.testing.assert_close(model.loss(rows, units, unmet=False), met)
