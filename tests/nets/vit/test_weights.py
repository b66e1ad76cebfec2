"""Weights of a vision transformer: from files of two namings, checked, and never from pickle."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from everlearn.nets.seeded import seeded
from everlearn.nets.vit import CONFIGS, Config, ViT
from everlearn.nets.vit.weights import find_config, load_vit, save_vit
from everlearn.nets.weights import digest

from ...conftest import data_file

SMALL = Config(16, 2, 2, 4, 12, 24, 3, mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6))
DINOV2_FILE = "weights/vit_small_patch14_dinov2_saliency_fp16.npz"
Tensors = dict[str, torch.Tensor]


def build(config: Config = SMALL, seed: int = 3) -> ViT:
    with seeded(seed):
        net = ViT(config)
        for weight in net.parameters():
            torch.nn.init.normal_(weight)
    return net


def by_transformers(net: ViT, prefix: str = "") -> Tensors:
    """The same weights by the names of transformers, written out."""
    weights = net.state_dict()
    out = {
        "embeddings.cls_token": weights["cls_token"],
        "embeddings.position_embeddings": weights["pos_embed"],
        "embeddings.patch_embeddings.projection.weight": weights["patch_embed.proj.weight"],
        "embeddings.patch_embeddings.projection.bias": weights["patch_embed.proj.bias"],
        "layernorm.weight": weights["norm.weight"],
        "layernorm.bias": weights["norm.bias"],
    }
    for block in range(net.config.depth):
        ours, theirs = f"blocks.{block}", f"encoder.layer.{block}"
        for dtype in ("weight", "bias"):
            query, key, value = weights[f"{ours}.attn.qkv.{dtype}"].chunk(3)
            out[f"{theirs}.attention.attention.query.{dtype}"] = query
            out[f"{theirs}.attention.attention.key.{dtype}"] = key
            out[f"{theirs}.attention.attention.value.{dtype}"] = value
            out[f"{theirs}.attention.output.dense.{dtype}"] = weights[f"{ours}.attn.proj.{dtype}"]
            out[f"{theirs}.layernorm_before.{dtype}"] = weights[f"{ours}.norm1.{dtype}"]
            out[f"{theirs}.layernorm_after.{dtype}"] = weights[f"{ours}.norm2.{dtype}"]
            out[f"{theirs}.intermediate.dense.{dtype}"] = weights[f"{ours}.mlp.fc1.{dtype}"]
            out[f"{theirs}.output.dense.{dtype}"] = weights[f"{ours}.mlp.fc2.{dtype}"]
    return {prefix + name: tensor for name, tensor in out.items()}


def write_safetensors(path: Path, tensors: Tensors, dtype: str = "F32") -> Path:
    dtypes = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, tensor in tensors.items():
        content = tensor.to(dtypes[dtype]).contiguous().view(torch.uint8).numpy().tobytes()
        offsets = [len(body), len(body) + len(content)]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": offsets}
        body += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


def write_npz(path: Path, tensors: Tensors) -> Path:
    np.savez(path, **{name: tensor.numpy() for name, tensor in tensors.items()})
    return path


def write_folder(folder: Path, tensors: Tensors) -> Path:
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps({"num_attention_heads": SMALL.heads}))
    (folder / "preprocessor_config.json").write_text(
        json.dumps({"image_mean": SMALL.mean, "image_std": SMALL.std})
    )
    return folder


def assert_same(one: ViT, two: ViT) -> None:
    assert one.config == two.config
    ours, theirs = one.state_dict(), two.state_dict()
    assert set(ours) == set(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_weights_are_loaded_with_their_description(tmp_path: Path) -> None:
    net = build()
    path = save_vit(tmp_path / "deep" / "net.npz", net, {"maker": "a test", "steps": 3})
    loaded = load_vit(path)
    assert_same(loaded.net, net)
    assert (loaded.about["maker"], loaded.about["steps"]) == ("a test", 3)
    assert [one.name for one in path.parent.iterdir()] == ["net.npz"]


def test_loading_does_not_advance_the_generator(tmp_path: Path) -> None:
    path, before = save_vit(tmp_path / "net.npz", build(), {}), torch.random.get_rng_state()
    load_vit(path)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("prefix", ["", "vit."])
def test_a_folder_of_transformers_is_the_same_net(tmp_path: Path, prefix: str) -> None:
    net = build()
    heads = {"pooler.dense.weight": torch.zeros(16, 16), "classifier.bias": torch.zeros(10)}
    folder = write_folder(tmp_path / "model", by_transformers(net, prefix) | heads)
    assert_same(load_vit(folder).net, net)


def test_the_config_of_a_file_of_timm_is_inferred_from_shapes(tmp_path: Path) -> None:
    net = build(CONFIGS["vit-test"])
    found = load_vit(write_npz(tmp_path / "net.npz", net.state_dict())).net
    assert_same(found, net)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_config_of_known_transformers_is_inferred_from_shapes(name: str) -> None:
    with torch.device("meta"):
        net = ViT(CONFIGS[name])
    assert find_config(net.state_dict(), {}) == CONFIGS[name]


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_16_bit_weights_become_float32(tmp_path: Path, dtype: str) -> None:
    net = build(CONFIGS["vit-test"])
    path = write_safetensors(tmp_path / "net.safetensors", net.state_dict(), dtype)
    short = torch.float16 if dtype == "F16" else torch.bfloat16
    found = load_vit(path).net.pos_embed
    assert found.dtype == torch.float32
    assert torch.equal(found, net.pos_embed.to(short).float())


def test_missing_unexpected_and_misshapen_weights_are_listed(tmp_path: Path) -> None:
    weights = build(CONFIGS["vit-test"]).state_dict()
    del weights["blocks.1.norm2.bias"]
    weights["reg_token"] = torch.zeros(1, 4, 64)
    weights["norm.weight"] = torch.zeros(63)
    path = write_npz(tmp_path / "net.npz", weights)
    message = (
        r"missing: blocks.1.norm2.bias; unexpected: reg_token; of another shape: norm.weight \(63,\), "
        r"not \(64,\)"
    )
    with pytest.raises(ValueError, match=message):
        load_vit(path)


def test_without_a_key_matrix_qkv_is_missing_and_the_query_unexpected(tmp_path: Path) -> None:
    weights = by_transformers(build())
    del weights["encoder.layer.0.attention.attention.key.weight"]
    folder = write_folder(tmp_path / "model", weights)
    with pytest.raises(ValueError, match=r"missing: blocks.0.attn.qkv.weight; unexpected: .*query"):
        load_vit(folder)


def test_weights_of_something_else_are_refused(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "net.npz", {"conv1.weight": torch.zeros(3, 3)})
    with pytest.raises(ValueError, match=r"no weights of a vision transformer: it lacks pos_embed"):
        load_vit(path)


def test_a_grid_of_positions_that_is_not_square_is_refused(tmp_path: Path) -> None:
    weights = build(CONFIGS["vit-test"]).state_dict() | {"pos_embed": torch.zeros(1, 16, 64)}
    with pytest.raises(ValueError, match="16 positions and width 64"):
        load_vit(write_npz(tmp_path / "net.npz", weights))


def test_pickle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.npz"
    np.savez(path, pos_embed=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        load_vit(path)
    other = tmp_path / "net.pt"
    other.write_bytes(b"")
    with pytest.raises(ValueError, match=r"give a \.npz or \.safetensors file"):
        load_vit(other)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_refused(tmp_path: Path, suffix: str, share: float) -> None:
    write = write_npz if suffix == ".npz" else write_safetensors
    path = write(tmp_path / f"net{suffix}", build(CONFIGS["vit-test"]).state_dict())
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="truncated, damaged or of another type"):
        load_vit(path)


def test_a_folder_without_safetensors_lists_its_files(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=r"no model.safetensors in .*pytorch_model.bin"):
        load_vit(tmp_path)


@pytest.mark.parametrize("source", ["out/lost.npz", "lost", "/lost/model"])
def test_a_missing_file_lists_the_possible_sources(source: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"no weights at '.*lost.*a name of the hub"):
        load_vit(source)


def test_the_hub_without_transformers_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers.utils.hub", None)
    with pytest.raises(ImportError, match=r"everlearn\[transformers\]"):
        load_vit("google/vit-base-patch16-224-in21k")


def test_the_hub_is_read_through_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = build()
    requested = []
    folder = write_folder(tmp_path / "snapshot", by_transformers(net))

    def cached_file(name: str, file: str, **_: bool) -> str:
        requested.append((name, file))
        return str(folder / file)

    monkeypatch.setitem(
        sys.modules, "transformers.utils.hub", SimpleNamespace(cached_file=cached_file)
    )
    assert_same(load_vit("some/model").net, net)
    assert requested[0] == ("some/model", "model.safetensors")


def test_a_digest_depends_on_weights_only() -> None:
    net = build()
    known = digest(net)
    assert digest(net.to(memory_format=torch.channels_last)) == known
    assert digest(build()) == known
    with torch.no_grad():
        net.norm.bias[3] += 1e-6
    assert digest(net) != known


def test_the_dinov2_file_is_a_small_transformer() -> None:
    net = load_vit(data_file(DINOV2_FILE)).net
    assert net.config == CONFIGS["vit-s14"]
    images = torch.rand(2, 1, 112, 112, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        features = net(images)
    assert features.shape == (2, 384)
    assert features.isfinite().all()
