"""L2P: what is trained, which prompts are selected, which logits are masked."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cosine_similarity, cross_entropy

from everlearn import Canvas, Stream
from everlearn.learner import Learner
from everlearn.methods.l2p import L2P, Settings, build_l2p, build_lite, mask_logits
from everlearn.nets.prompted_vit import PromptedViT
from everlearn.nets.seeded import seeded
from everlearn.nets.vit import CONFIGS, ViT
from everlearn.nets.vit.weights import save_vit
from everlearn.nets.weights import digest
from everlearn.training.schedule import Schedule

from .conftest import assert_resumes, learn

STREAM = Stream(
    seed=1, tasks=3, classes_per_task=2, values_per_factor=2, canvas=Canvas(size=16),
    split=(0.6, 0.2, 0.2),
)  # fmt: skip
TASK_ROWS = len(STREAM[0].train)
TRAINED = {"prompts", "keys", "head.weight", "head.bias"}


def build(device: str = "cpu", stream: Stream = STREAM, **changes: Any) -> L2P:
    schedule = Schedule(batch_size=8, epochs=1, learning_rate=0.03)
    small = {"weights": "random", "pool_size": 6, "prompt_length": 2, "top_k": 3}
    return build_l2p(stream, Settings(**{"schedule": schedule} | small | changes), device)


def copies(learner: L2P) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in learner.net.state_dict().items()}


def images(task: int = 0) -> torch.Tensor:
    return STREAM[task].test.batch(slice(None)).images


def pretrained(path: Path, about: dict[str, Any]) -> str:
    with seeded(9):
        return str(save_vit(path, ViT(CONFIGS["vit-test"]), about))


def test_it_is_a_learner() -> None:
    assert isinstance(build(), Learner)


def test_only_prompts_keys_and_head_change() -> None:
    learner = build()
    frozen = {name: value.clone() for name, value in learner.frozen.state_dict().items()}
    before = copies(learner)
    learn(learner, [STREAM[0]])
    after = learner.net.state_dict()
    assert set(after) == TRAINED
    assert all(not torch.equal(before[name], after[name]) for name in TRAINED)
    assert all(torch.equal(frozen[name], now) for name, now in learner.frozen.state_dict().items())
    assert not any(weight.requires_grad for weight in learner.frozen.parameters())
    assert all(weight.grad is None for weight in learner.frozen.parameters())


def test_each_image_gets_the_prompts_of_its_nearest_keys() -> None:
    net = build().net
    cosines = torch.randn(20, 6, generator=torch.Generator().manual_seed(0))
    chosen = net.select(cosines)
    assert chosen.shape == (20, 3, 6)
    assert torch.equal(chosen.sum(2), torch.ones(20, 3))
    for row, ones in zip(cosines.tolist(), chosen.sum(1), strict=True):
        best = sorted(range(6), key=lambda place: -row[place])[:3]
        assert ones.nonzero().flatten().tolist() == sorted(best)


def test_prompt_tokens_stand_between_the_class_token_and_the_patches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, seen = build(), []
    encode = learner.frozen.encode

    def spy(sequence: torch.Tensor) -> torch.Tensor:
        seen.append(sequence)
        return encode(sequence)

    monkeypatch.setattr(learner.frozen, "encode", spy)
    learner.predict(images())
    plain, prompted = seen
    assert plain.shape[1] == 1 + 4 * 4
    assert prompted.shape[1] == 1 + 3 * 2 + 4 * 4
    assert torch.equal(prompted[:, :1], plain[:, :1])
    assert torch.equal(prompted[:, 7:], plain[:, 1:])


def test_logits_outside_a_mask_are_minus_infinity() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    left = mask_logits(logits, torch.tensor([True, False, True]))
    assert left.tolist() == [[1.0, -torch.inf, 3.0], [4.0, -torch.inf, 6.0]]


def test_training_moves_only_the_outputs_of_the_tasks_classes() -> None:
    learner = build()
    learn(learner, [STREAM[0]])
    before = copies(learner)
    learn(learner, [STREAM[1]])
    for name in ("head.weight", "head.bias"):
        now = learner.net.state_dict()[name]
        moved = (now != before[name]).reshape(6, -1).any(1).tolist()
        assert moved == [False, False, True, True, False, False]


def test_predictions_are_not_limited_to_the_last_task() -> None:
    learner = learn(build(), [STREAM[0], STREAM[1]])
    with torch.no_grad():
        assert learner.net(images()).isfinite().all()
        learner.net.head.bias[0] = 1e3
    assert (learner.predict(images()) == 0).all()


def test_logits_and_key_match_equal_a_plain_loop() -> None:
    learner = build()
    net, vit = learner.net.eval(), learner.frozen
    resized = torch.nn.functional.interpolate(
        images()[:5], (32, 32), mode="bilinear", antialias=True
    )
    outputs = []
    matches = []
    keys = net.keys.detach()
    for image in resized:
        tokens = vit.tokens(image[None])[0]
        query = vit(image[None])[0]
        cosines = [float(cosine_similarity(query, key, 0)) for key in keys]
        best = sorted(range(6), key=lambda place: -cosines[place])[:3]
        prompts = torch.cat([net.prompts[place] for place in best]) + vit.pos_embed[0, 0]
        sequence = torch.cat((tokens[:1], prompts, tokens[1:]))
        outputs.append(net.head(vit.encode(sequence[None])[0, 1:7].mean(0)))
        matches.append(sum(cosines[place] for place in best))
    found, key_match = net.logits_and_key_match(images()[:5])
    torch.testing.assert_close(found, torch.stack(outputs), rtol=1e-4, atol=1e-5)
    assert float(key_match.detach()) == pytest.approx(sum(matches) / 5, abs=1e-5)


def test_the_loss_is_cross_entropy_over_the_tasks_classes_less_the_key_match() -> None:
    learner = build(key_loss_weight=0.1)
    batch = next(STREAM[0].batches(8))
    with torch.no_grad():
        logits, key_match = learner.net.logits_and_key_match(batch.images)
    expected = cross_entropy(logits[:, :2], batch.labels) - 0.1 * key_match
    loss = next(iter(learner.learn(STREAM[0])))
    torch.testing.assert_close(loss, expected.float())


def test_unselected_prompts_and_keys_stay_as_they_were() -> None:
    learner, batch = build(), STREAM[0].train.batch([0])
    learner.task_classes[:2] = True
    learner.net.train()
    query = learner.frozen(torch.nn.functional.interpolate(
        batch.images, (32, 32), mode="bilinear", antialias=True))  # fmt: skip
    cosines = cosine_similarity(query[:, None], learner.net.keys[None], 2)
    chosen = set(cosines[0].topk(3).indices.tolist())
    before = copies(learner)
    learner._learn_batch(batch.images, batch.labels)
    for name in ("prompts", "keys"):
        moved = (learner.net.state_dict()[name] != before[name]).flatten(1).any(1)
        assert set(moved.nonzero().flatten().tolist()) == chosen


def test_batchwise_prompts_are_those_selected_most_often() -> None:
    net = build(batchwise_prompts=True).net.train()
    cosines = torch.randn(40, 6, generator=torch.Generator().manual_seed(2))
    votes = Counter(cosines.topk(3).indices.flatten().tolist())
    best = sorted(range(6), key=lambda place: (-votes[place], place))[:3]
    chosen = net.select(cosines)
    assert chosen.shape == (40, 3, 6)
    assert torch.equal(chosen, chosen[:1].expand_as(chosen))
    assert sorted(chosen[0].sum(0).nonzero().flatten().tolist()) == sorted(best)


def test_the_first_of_equally_often_selected_prompts_wins() -> None:
    net = build(batchwise_prompts=True, top_k=1).net.train()
    cosines = torch.eye(6)[[4, 2, 4, 2]]
    assert net.select(cosines)[:, 0].argmax(1).tolist() == [2, 2, 2, 2]


def test_prediction_selects_prompts_per_image() -> None:
    net = build(batchwise_prompts=True, top_k=1).net.eval()
    assert net.select(torch.eye(6)).argmax(2).flatten().tolist() == [0, 1, 2, 3, 4, 5]


def test_prompts_and_keys_start_uniform_from_minus_one_to_one_and_follow_from_the_seed() -> None:
    first, second = build(pool_size=100).net, build(pool_size=100).net
    other = build(stream=STREAM.with_changes(seed=2), pool_size=100).net
    for name in ("prompts", "keys"):
        values = first.state_dict()[name]
        assert values.abs().max() <= 1
        assert abs(float(values.mean())) < 0.05
        assert float(values.std()) == pytest.approx(3**-0.5, abs=0.02)
        assert torch.equal(values, second.state_dict()[name])
        assert not torch.equal(values, other.state_dict()[name])


def test_the_gradient_norm_is_clipped() -> None:
    def gradient_norm(learner: L2P) -> float:
        learner.task_classes[:2] = True
        learner._learn_batch(*STREAM[0].train.batch([0, 1])[:2])
        gradients = [weight.grad.flatten() for weight in learner.net.parameters()]
        return float(torch.cat(gradients).norm())

    assert gradient_norm(build()) > 0.02
    assert gradient_norm(build(max_gradient_norm=0.01)) == pytest.approx(0.01, rel=1e-3)


def test_the_optimizer_is_reset_unless_disabled() -> None:
    assert build().state()["optimizer"] == []
    learner = learn(build(reset_optimizer=False), [STREAM[0]])
    steps = TASK_ROWS // 8
    assert learner.state()["optimizer"][0] == steps
    learn(learner, [STREAM[1]])
    assert learner.state()["optimizer"][0] == 2 * steps


@pytest.mark.parametrize("reset_optimizer", [True, False])
def test_a_loaded_state_continues_to_the_same_bits(reset_optimizer: bool) -> None:
    assert_resumes(partial(build, reset_optimizer=reset_optimizer), [STREAM[0], STREAM[1]])


def test_a_state_has_a_digest_of_the_frozen_weights_only() -> None:
    learner = build()
    state = learner.state()
    assert set(state) == {"net", "seen", "optimizer", "frozen"}
    assert set(state["net"]) == TRAINED
    assert state["frozen"] == digest(learner.frozen)


def test_a_state_of_other_frozen_weights_is_refused() -> None:
    state = build().state()
    other = build(stream=STREAM.with_changes(seed=5))  # random weights follow from the seed
    with pytest.raises(ValueError, match=r"other frozen weights .* give the same weights"):
        other.load_state(state)


def test_predictions_are_classes_that_were_seen() -> None:
    learner = build()
    assert (learner.predict(images()) == -1).all()
    learn(learner, [STREAM[0], STREAM[1]])
    assert set(learner.predict(images()).tolist()) <= {0, 1, 2, 3}
    assert set(learner.predict(images(), [1, 5]).tolist()) <= {1, 5}


def test_prediction_changes_nothing() -> None:
    learner = build()
    before = copies(learner)
    steps = learner.learn(STREAM[0])
    next(steps)
    middle = copies(learner)
    learner.predict(images())
    assert learner.net.training
    assert all(torch.equal(middle[name], now) for name, now in copies(learner).items())
    assert not torch.equal(before["keys"], middle["keys"])


def test_images_are_resized_to_image_size() -> None:
    assert build().net.image_size == 32
    learner = build(image_size=16)
    assert learn(learner, [STREAM[0]]).predict(images()).shape == (len(images()),)
    with pytest.raises(ValueError, match="multiple of the patches' 8 pixels, found 20"):
        build(image_size=20)


def test_missing_weights_are_refused_with_an_example() -> None:
    with pytest.raises(ValueError, match=r"l2p needs .* google/vit-base-patch16-224-in21k"):
        build_l2p(STREAM, Settings(), "cpu")
    with pytest.raises(ValueError, match=r"l2p-lite needs .* `everlearn pretrain` writes"):
        build_lite(STREAM, Settings(), "cpu")


def test_l2p_refuses_weights_of_everlearn_pretrain(tmp_path: Path) -> None:
    ours = pretrained(tmp_path / "ours.npz", {"maker": "everlearn pretrain"})
    settings = Settings(weights=ours)
    assert isinstance(build_lite(STREAM, settings, "cpu"), L2P)
    with pytest.raises(ValueError, match="use l2p-lite"):
        build_l2p(STREAM, settings, "cpu")


def test_l2p_lite_refuses_other_weights(tmp_path: Path) -> None:
    settings = Settings(weights=pretrained(tmp_path / "theirs.npz", {}))
    assert isinstance(build_l2p(STREAM, settings, "cpu"), L2P)
    with pytest.raises(ValueError, match="use l2p"):
        build_lite(STREAM, settings, "cpu")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"top_k": 21}, r"top_k must lie in 1 \.\. 20 \(pool_size\)"),
        ({"max_gradient_norm": 0.0}, "max_gradient_norm"),
        ({"pool_size": 0}, "pool_size"),
        ({"prompt_length": 0}, "prompt_length"),
        ({"key_loss_weight": -1.0}, "key_loss_weight"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**changes)


@pytest.mark.gpu
@pytest.mark.parametrize("changes", [{}, {"batchwise_prompts": True, "max_gradient_norm": 1.0}])
def test_captured_steps_match_eager_ones_and_repeat_to_the_bit(
    changes: dict[str, Any],
) -> None:
    on_cpu = learn(build(**changes), [STREAM[0], STREAM[1]])
    first, second = (learn(build("cuda", **changes), [STREAM[0], STREAM[1]]) for _ in range(2))
    for name, value in first.state()["net"].items():
        assert torch.equal(value, second.state()["net"][name])
    untouched = first.net.head.weight[4:].cpu()
    assert torch.equal(untouched, on_cpu.net.head.weight[4:])
    assert isinstance(first.net, PromptedViT)
    assert (first.predict(images().cuda()) >= 0).all()
