"""The vision transformer: its layers, its tokens, and prompts among them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from everlearn.nets.layers.head import Head
from everlearn.nets.precision import forward_pass, to_device
from everlearn.nets.seeded import seeded
from everlearn.nets.vit import CONFIGS, Config, ViT
from everlearn.nets.vit.layers import Block
from everlearn.nets.vit.vit import bfloat16_copy
from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import optimizer_state, optimizer_step

SMALL = Config(16, 2, 2, 4, 12, 24, 3)


def build(config: Config = SMALL) -> ViT:
    with seeded(3):
        net = ViT(config)
        for weight in net.parameters():  # also those that start at 0 or 1
            nn.init.normal_(weight, std=0.3)
    return net


def random(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(5))


def test_a_block_is_the_pre_norm_layer_of_torch() -> None:
    block = build().blocks[0]
    assert isinstance(block, Block)
    oracle = nn.TransformerEncoderLayer(
        16, 2, 24, dropout=0.0, activation="gelu", batch_first=True, norm_first=True,
        layer_norm_eps=1e-6,
    )  # fmt: skip
    ours = block.state_dict()
    names = {
        "self_attn.in_proj_weight": "attn.qkv.weight",
        "self_attn.in_proj_bias": "attn.qkv.bias",
        "self_attn.out_proj": "attn.proj",
        "linear1": "mlp.fc1",
        "linear2": "mlp.fc2",
        "norm1": "norm1",
        "norm2": "norm2",
    }
    renamed = {}
    for name in oracle.state_dict():
        known = next(one for one in names if name.startswith(one))
        renamed[name] = ours[name.replace(known, names[known])]
    oracle.load_state_dict(renamed)
    sequence = random(3, 7, 16)
    torch.testing.assert_close(block(sequence), oracle(sequence))


def test_a_layer_scale_multiplies_the_output_of_a_branch() -> None:
    block = build(replace(SMALL, scaled=True)).blocks[0]
    nn.init.zeros_(block.ls2.gamma)
    nn.init.constant_(block.ls1.gamma, 0.5)
    sequence = random(2, 5, 16)
    expected = sequence + 0.5 * block.attn(block.norm1(sequence))
    torch.testing.assert_close(block(sequence), expected)


def test_tokens_are_the_class_token_and_then_patches_row_by_row() -> None:
    net = build()
    images = torch.full((1, 3, 12, 12), 0.5)
    plain = net.tokens(images)
    assert plain.shape == (1, 10, 16)
    images[:, :, 0:4, 8:12] = 1.0  # row 0, column 2
    images[:, :, 8:12, 4:8] = 1.0  # row 2, column 1
    changed = (net.tokens(images) != plain).any(2)[0]
    assert changed.nonzero().flatten().tolist() == [1 + 2, 1 + 7]


def test_an_image_of_the_mean_gives_tokens_of_bias_and_position() -> None:
    net = build(replace(SMALL, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7)))
    images = torch.tensor([0.1, 0.2, 0.3])[None, :, None, None].expand(1, 3, 12, 12)
    expected = net.patch_embed.proj.bias + net.pos_embed[:, 1:]
    torch.testing.assert_close(net.tokens(images)[:, 1:], expected)


def test_token_outputs_do_not_depend_on_the_order_of_tokens() -> None:
    net, images, prompts = build(), random(2, 3, 12, 12), random(2, 4, 16)
    tokens = net.tokens(images)
    before = net.encode(torch.cat((prompts, tokens), 1))
    after = net.encode(torch.cat((tokens, prompts), 1))
    torch.testing.assert_close(before[:, :4], after[:, -4:])
    torch.testing.assert_close(before[:, 4:], after[:, :-4])
    assert not torch.allclose(before[:, 4:], net.encode(tokens))


def test_forward_returns_the_final_class_token() -> None:
    net, images = build(), random(2, 3, 12, 12)
    assert torch.equal(net(images), net.encode(net.tokens(images))[:, 0])


def test_position_embeddings_of_the_trained_grid_are_the_weights() -> None:
    net = build()
    assert torch.equal(net.position_embeddings(3, 3), net.pos_embed)


def test_position_embeddings_of_another_grid_are_interpolated_except_that_of_the_class_token() -> (
    None
):
    net = build()
    with torch.no_grad():
        net.pos_embed[:, 1:] = torch.arange(3.0).repeat_interleave(3)[None, :, None]  # by its row
    positions = net.position_embeddings(6, 4)
    assert torch.equal(positions[:, :1], net.pos_embed[:, :1])
    grid = positions[0, 1:].reshape(6, 4, 16)
    torch.testing.assert_close(grid, grid[:, :1, :1].expand(6, 4, 16))
    assert (grid[1:, 0, 0] > grid[:-1, 0, 0]).all()
    assert net(random(2, 3, 24, 16)).shape == (2, 16)


def test_grey_images_are_repeated_for_a_net_of_colour_images() -> None:
    net, grey = build(), random(2, 1, 12, 12)
    assert torch.equal(net(grey), net(grey.repeat(1, 3, 1, 1)))


def test_colours_are_averaged_for_a_net_of_grey_images() -> None:
    net, images = build(replace(SMALL, channels=1, mean=(0.5,), std=(0.5,))), random(2, 3, 12, 12)
    grey = (images[:, :1] + images[:, 1:2] + images[:, 2:]) / 3
    torch.testing.assert_close(net(images), net(grey))


@pytest.mark.parametrize("name", CONFIGS)
def test_known_transformers_have_the_weights_counted_by_hand(name: str) -> None:
    c = CONFIGS[name]
    with torch.device("meta"):
        net = ViT(c)
    scales = 2 * c.width if c.scaled else 0
    block = 4 * c.width + 4 * c.width * (c.width + 1) + 2 * c.width * c.hidden + c.hidden + c.width
    patch = c.width * (c.channels * c.patch**2 + 1)
    positions = c.width * (1 + (c.size // c.patch) ** 2)
    expected = c.depth * (block + scales) + patch + positions + c.width + 2 * c.width
    assert sum(weight.numel() for weight in net.parameters()) == expected


def test_weights_are_named_as_in_timm() -> None:
    names = set(build(replace(SMALL, scaled=True)).state_dict())
    top = {"cls_token", "pos_embed", "patch_embed.proj.weight", "patch_embed.proj.bias"}
    inside = {
        f"blocks.{block}.{part}"
        for block in range(2)
        for part in [
            *(f"{layer}.{parameter}" for parameter in ("weight", "bias") for layer in
              ("norm1", "norm2", "attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2")),
            "ls1.gamma", "ls2.gamma",
        ]
    }  # fmt: skip
    assert names == top | inside | {"norm.weight", "norm.bias"}


def test_a_bfloat16_copy_returns_nearly_the_same_in_float32() -> None:
    net, images = build(), random(4, 3, 12, 12)
    copy = bfloat16_copy(net)
    assert copy.blocks[0].attn.qkv.weight.dtype == torch.bfloat16
    assert copy.blocks[0].norm1.weight.dtype == torch.float32
    assert net.blocks[0].attn.qkv.weight.dtype == torch.float32
    found, truth = copy(images), net(images)
    assert found.dtype == torch.float32
    assert 0 < (found - truth).norm() < 0.05 * truth.norm()


def test_the_seed_determines_random_weights_without_advancing_the_generator() -> None:
    before = torch.random.get_rng_state()
    with seeded(1):
        first = ViT(SMALL)
    with seeded(1):
        second = ViT(SMALL)
    with seeded(2):
        other = ViT(SMALL)
    assert torch.equal(first.pos_embed, second.pos_embed)
    assert not torch.equal(first.pos_embed, other.pos_embed)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.gpu
def test_a_captured_step_of_a_transformer_gives_the_same_bits_twice() -> None:
    def train() -> list[torch.Tensor]:
        with seeded(0):
            net = to_device(nn.Sequential(ViT(CONFIGS["vit-lite"]), Head(192, 5)), "cuda").train()
        optimizer = Adam(net.parameters(), 1e-3)

        def train_step(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            loss = nn.functional.cross_entropy(forward_pass(net, images), labels)
            return optimizer_step(optimizer, loss)

        step = CapturedStep(train_step, [*net.state_dict().values(), *optimizer_state(optimizer)])
        images, labels = random(64, 1, 64, 64).cuda(), torch.arange(64).cuda() % 5
        losses = [step(images, labels) for _ in range(5)]
        return [*losses, *net.state_dict().values()]

    first, second = train(), train()
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert first[4] != first[0]
