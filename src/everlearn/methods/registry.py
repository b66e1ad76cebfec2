"""METHODS: one record a method. Lists, tables, presets, figures and tests are made from these records."""

from __future__ import annotations

from everlearn.methods.method import Changes, Method
from everlearn.methods.tuned import TUNED

_DCL_PAPER = "Dziadzio et al. 2023, arXiv 2312.16731"
_EWC_PAPER = "Kirkpatrick et al. 2017, arXiv 1612.00796"
_ER_PAPER = "Chaudhry et al. 2019, arXiv 1902.10486"
_GNR_PAPER = "Graffieti et al. 2022, arXiv 2204.05842"
_AR1_PAPER = "Maltoni and Lomonaco 2019, arXiv 1806.08568"
_AR1_STAR_PAPER = "Lomonaco et al. 2020, arXiv 1907.03799"
_LATENT_REPLAY_PAPER = "Pellegrini et al. 2020, arXiv 1912.01100"
_REHEARSAL_FREE_PAPER = "Smith et al. 2023, arXiv 2203.17269"
_DER_PAPER = "Buzzega et al. 2020, arXiv 2004.07211"
_L2P_PAPER = "Wang et al. 2022, arXiv 2112.08654"

_LABELS = "labels, task boundaries"
_NO_LABELS = "task boundaries; labels only to read classes off the codes"
_DCL_SUPERVISION = "labels, task boundaries, true affine maps, one exemplar per class"
# CWR+ and what builds on it subtract one mean of all rows; generative negative replay that of each row.
_GLOBAL_SHIFT: Changes = {"mean_shift": "global"}
_CWR_STORES = "one row of head weights per class"
_CWR_FIRST_TASK = "a head without bias that starts at 0, and learning rates of its own"
_NO_CLASSIFIER = "no classifier"

# At 1e-3 a ResNet-18 that sees the current task only does not learn it in 5 epochs (decision 12).
_CURRENT_TASK_ONLY: dict[str, Changes] = {"paper": {"learning_rate": 1e-4}}
_BIR_ON_POINTS: Changes = {"learning_rate": 1e-3, "hidden_units": 200}  # of Adam
# New rows of a CWR head should become as long as old ones (docs/methods/gnr.md, "Balance").
# The streams of latents follow the protocol of CORe50: all 50 classes are in the softmax from the start.
_SPLIT_NET: dict[str, dict[str, object]] = {
    "toy": {
        "later_learning_rate": 5e-3,
        "head_learning_rate": 0.05,
        "later_head_learning_rate": 0.05,
    },
    "latents-nc": {
        "net": "mlp-wide",
        "batch_size": 128,
        "include_unseen": True,
        "learning_rate": 3e-2,
        "later_learning_rate": 1e-3,
        "head_learning_rate": 3e-2,
        "later_head_learning_rate": 5e-2,
        "epochs": 8,
    },
    "latents-nic": {
        "net": "mlp-wide",
        "batch_size": 128,
        "include_unseen": True,
        "learning_rate": 1e-2,
        "later_learning_rate": 1e-3,
        "head_learning_rate": 1e-2,
        "later_head_learning_rate": 1e-2,
        "buffer_size": 300,
        "replay_fraction": 0.5,
        "generator_replay_fraction": 0.5,
    },
    "cpu": {"later_head_learning_rate": 1e-2},
    "paper": {"later_head_learning_rate": 3e-3, "buffer_size": 5000},
}
_FROZEN_NET = {name: changes | {"later_learning_rate": 0.0} for name, changes in _SPLIT_NET.items()}
# A strong penalty oscillates at a large learning rate; for images the defaults are small enough.
_SI_NET = _SPLIT_NET | {"toy": _SPLIT_NET["toy"] | {"later_learning_rate": 1e-3}, "paper": {}}
_ONE_LEARNING_RATE: Changes = {
    "learning_rate": 3e-4,
    "later_learning_rate": 3e-4,
    "head_learning_rate": 3e-4,
    "later_head_learning_rate": 3e-4,
}
# Capacity grows for 3/5 of the steps of an environment.
_CODES: dict[str, Changes] = {
    "cpu": {
        "net": "vase-flat",
        "latent_dim": 10,
        "max_environments": 5,
        "batch_size": 64,
        "epochs": 1,
        "learning_rate": 1e-3,
        "gamma": 20.0,
        "capacity": 12.0,
        "capacity_steps": 360,
        "atypicality_threshold": 0.35,
        "kappa": 1.25,
    },
    "vase-a": {"capacity_steps": 3600},
    "vase-b": {"capacity_steps": 2400},
    "vase-sprites": {"capacity_steps": 2400},
}
_MAPS: dict[str, Changes] = {
    "cpu": {"net": "convnet"},
    "small-scale": {"net": "convnet", "batch_size": 32, "epochs": 5},
}

_RECORDS: dict[str, Method] = {
    "dcl": Method(
        summary="disentangled continual learning: regress the pose, compare with exemplars",
        group="DCL",
        paper=_DCL_PAPER,
        supervision=_DCL_SUPERVISION,
        stores="one exemplar per class",
        learner="dcl:DCL",
        style=0,
        presets=_MAPS | {"quickstart": {"batch_size": 64, "epochs": 10}},
        needs_images=True,
        grows=True,
        first_task=_NO_CLASSIFIER,
    ),
    "dcl-plus": Method(
        summary="DCL with exemplar replay, edge jitter, averaged weights, instance statistics, fitting",
        group="DCL",
        paper=_DCL_PAPER,
        supervision=_DCL_SUPERVISION,
        stores="one exemplar per class, averaged weights",
        learner="dcl:DCL",
        style=6,
        changes={
            "exemplar_replay": 0.25,
            "weight_averaging": 0.8,
            "instance_stats": 0.001,
            "fit_candidates": 10,
            "edge_jitter": 0.25,
        },
        presets={
            **_MAPS,
            "quickstart": {"batch_size": 64, "epochs": 3},
            "small-scale": {**_MAPS["small-scale"], "fit_candidates": 3},
        },
        needs_images=True,
        grows=True,
        first_task=_NO_CLASSIFIER,
    ),
    "fine-tuning": Method(
        summary="the current task only: the lower bound",
        group="reference points",
        paper="",
        supervision=_LABELS,
        stores="nothing",
        learner="fine_tuning:FineTuning",
        style=1,
        presets=_CURRENT_TASK_ONLY,
    ),
    "joint": Method(
        summary="a new net on all tasks so far: the upper bound",
        group="reference points",
        paper="",
        supervision="labels, all images of all tasks so far",
        stores="nothing; the stream redraws every task",
        learner="joint:Joint",
        style=2,
        presets={"quickstart": {"batch_size": 64, "epochs": 2}},
    ),
    "cumulative": Method(
        summary="joint training that continues from its last weights",
        group="reference points",
        paper="",
        supervision="labels, all images of all tasks so far",
        stores="nothing; the stream redraws every task",
        learner="joint:Joint",
        style=18,
        changes={"from_scratch": False},
    ),
    "nearest-mean": Method(
        summary="nearest class mean on a net frozen after its first task",
        group="reference points",
        paper="Mensink et al. 2013, TPAMI 35 (11)",
        supervision=_LABELS,
        stores="one mean feature vector per class",
        learner="nearest_mean:NearestMean",
        style=14,
        first_task="predicts by class means",
    ),
    "lwf": Method(
        summary="learning without forgetting: distillation from the net before the task",
        group="regularisation",
        paper="Li and Hoiem 2016, arXiv 1606.09282",
        supervision=_LABELS,
        stores="the net before the current task",
        learner="lwf:LwF",
        style=5,
        presets=_CURRENT_TASK_ONLY,
    ),
    "si": Method(
        summary="synaptic intelligence: a penalty by path-integral importance",
        group="regularisation",
        paper="Zenke et al. 2017, arXiv 1703.04200",
        supervision=_LABELS,
        stores="previous weights, one importance per weight",
        learner="si:SI",
        style=8,
        presets=_CURRENT_TASK_ONLY,
    ),
    "ewc": Method(
        summary="elastic weight consolidation: a penalty by Fisher information",
        group="regularisation",
        paper=_EWC_PAPER,
        supervision=_LABELS,
        stores="previous weights, one importance per weight",
        learner="ewc:EWC",
        style=4,
        presets=_CURRENT_TASK_ONLY,
    ),
    "online-ewc": Method(
        summary="elastic weight consolidation with one decaying Fisher estimate",
        group="regularisation",
        paper="Schwarz et al. 2018, arXiv 1805.06370",
        supervision=_LABELS,
        stores="previous weights, one importance per weight",
        learner="ewc:EWC",
        style=16,
        changes={"decay": 0.9},
        presets=_CURRENT_TASK_ONLY,
    ),
    "l2": Method(
        summary="L2 penalty on the distance from the weights of the task before",
        group="regularisation",
        paper=_REHEARSAL_FREE_PAPER,
        supervision=_LABELS,
        stores="previous weights",
        learner="l2:L2",
        style=17,
        presets=_CURRENT_TASK_ONLY,
    ),
    "rehearsal-free": Method(
        summary="any mixture of prediction and feature distillation, L2 and EWC",
        group="regularisation",
        paper=_REHEARSAL_FREE_PAPER,
        supervision=_LABELS,
        stores="the net before the current task, one importance per weight for EWC",
        learner="rehearsal_free:RehearsalFree",
        style=23,
        presets=_CURRENT_TASK_ONLY,
    ),
    "er": Method(
        summary="experience replay from a reservoir",
        group="replay",
        paper=_ER_PAPER,
        supervision=_LABELS,
        stores="a buffer of images with labels",
        learner="er:ER",
        style=3,
    ),
    "er-balanced": Method(
        summary="experience replay from a class-balanced buffer",
        group="replay",
        paper=_ER_PAPER,
        supervision=_LABELS,
        stores="a buffer of images with labels",
        learner="er:ER",
        style=19,
        changes={"balanced": True},
    ),
    "agem": Method(
        summary="A-GEM: project the gradient where it conflicts with old images",
        group="replay",
        paper="Chaudhry et al. 2018, arXiv 1812.00420",
        supervision=_LABELS,
        stores="some images of every task with labels",
        learner="agem:AGEM",
        style=11,
        presets=_CURRENT_TASK_ONLY,
        grows=True,
    ),
    "gem": Method(
        summary="GEM: project the gradient where it conflicts with any past task",
        group="replay",
        paper="Lopez-Paz and Ranzato 2017, arXiv 1706.08840",
        supervision=_LABELS,
        stores="some images of every task with labels",
        learner="gem:GEM",
        style=20,
        presets=_CURRENT_TASK_ONLY,
        grows=True,
    ),
    "der": Method(
        summary="dark experience replay: match the stored logits of old images",
        group="replay",
        paper=_DER_PAPER,
        supervision=_LABELS,
        stores="a buffer of images with labels and logits",
        learner="der:DER",
        style=15,
        presets=_CURRENT_TASK_ONLY,
    ),
    "der++": Method(
        summary="DER with cross-entropy on old images, too",
        group="replay",
        paper=_DER_PAPER,
        supervision=_LABELS,
        stores="a buffer of images with labels and logits",
        learner="der:DER",
        style=7,
        changes={"beta": 0.5},
        presets=_CURRENT_TASK_ONLY,
    ),
    "negative-replay": Method(
        summary="replay in which old images only push down the logits of new classes",
        group="replay",
        paper=_GNR_PAPER,
        supervision=_LABELS,
        stores="a buffer of images with labels",
        learner="negative_replay:NegativeReplay",
        style=31,
    ),
    "cwr": Method(
        summary="a net frozen after its first task, a copy of each class's head weights",
        group="CWR heads",
        paper="Lomonaco and Maltoni 2017, arXiv 1705.03550",
        supervision=_LABELS,
        stores=_CWR_STORES,
        learner="ar1:AR1",
        style=34,
        changes={"later_learning_rate": 0.0, "replay_mode": "none", "head": "cwr"},
        presets=_FROZEN_NET,
        first_task=_CWR_FIRST_TASK,
    ),
    "cwr-plus": Method(
        summary="CWR with rows that start at zero and are centred",
        group="CWR heads",
        paper=_AR1_PAPER,
        supervision=_LABELS,
        stores=_CWR_STORES,
        learner="ar1:AR1",
        style=33,
        changes={
            **_GLOBAL_SHIFT,
            "later_learning_rate": 0.0,
            "replay_mode": "none",
            "head": "cwr+",
        },
        presets=_FROZEN_NET,
        first_task=_CWR_FIRST_TASK,
    ),
    "cwr-star": Method(
        summary="CWR+ that averages the rows of classes that come back",
        group="CWR heads",
        paper=_AR1_STAR_PAPER,
        supervision=_LABELS,
        stores=_CWR_STORES,
        learner="ar1:AR1",
        style=28,
        changes={**_GLOBAL_SHIFT, "later_learning_rate": 0.0, "replay_mode": "none"},
        presets=_FROZEN_NET,
        first_task=_CWR_FIRST_TASK,
    ),
    "ar1": Method(
        summary="CWR+ and synaptic intelligence",
        group="CWR heads",
        paper=_AR1_PAPER,
        supervision=_LABELS,
        stores=f"{_CWR_STORES}, previous weights, one importance per weight",
        learner="ar1:AR1",
        style=32,
        changes={
            **_ONE_LEARNING_RATE,
            **_GLOBAL_SHIFT,
            "replay_mode": "none",
            "head": "cwr+",
            "strength": 8e5,
        },
        presets=_SI_NET,
        first_task=_CWR_FIRST_TASK,
    ),
    "ar1-star": Method(
        summary="CWR* and synaptic intelligence",
        group="CWR heads",
        paper=_AR1_STAR_PAPER,
        supervision=_LABELS,
        stores=f"{_CWR_STORES}, previous weights, one importance per weight",
        learner="ar1:AR1",
        style=26,
        changes={**_ONE_LEARNING_RATE, **_GLOBAL_SHIFT, "replay_mode": "none", "strength": 8e5},
        presets=_SI_NET,
        first_task=_CWR_FIRST_TASK,
    ),
    "ar1-free": Method(
        summary="CWR* and replay of stored latents",
        group="latent and generative replay",
        paper=_LATENT_REPLAY_PAPER,
        supervision=_LABELS,
        stores=f"{_CWR_STORES}, a buffer of latents with labels",
        learner="ar1:AR1",
        style=27,
        changes={**_GLOBAL_SHIFT, "replay_mode": "pr-od"},
        presets=_SPLIT_NET,
        first_task=_CWR_FIRST_TASK,
    ),
    "latent-replay": Method(
        summary="replay of stored latents with a plain head",
        group="latent and generative replay",
        paper=_LATENT_REPLAY_PAPER,
        supervision=_LABELS,
        stores="a buffer of latents with labels",
        learner="ar1:AR1",
        style=29,
        changes={"replay_mode": "pr-od", "head": "plain", "replay_fraction": None},
        presets={
            **_SPLIT_NET,
            "latents-nic": _SPLIT_NET["latents-nic"] | {"replay_fraction": None},
        },
        first_task=_CWR_FIRST_TASK,
    ),
    "gnr": Method(
        summary="generative negative replay: CWR* and generated latents as negatives",
        group="latent and generative replay",
        paper=_GNR_PAPER,
        supervision=_LABELS,
        stores=f"{_CWR_STORES}, a generator of latents",
        learner="ar1:AR1",
        style=25,
        presets=_SPLIT_NET,
        first_task=_CWR_FIRST_TASK,
    ),
    "bir": Method(
        summary="brain-inspired replay: the classifier generates its replay by feedback",
        group="latent and generative replay",
        paper="van de Ven et al. 2020, Nature Communications 11, 4069",
        supervision=_LABELS,
        stores="the net before the current task, which is also the generator",
        learner="bir:BIR",
        style=30,
        presets={
            "toy": _BIR_ON_POINTS,
            "latents-nc": _BIR_ON_POINTS,
            "latents-nic": _BIR_ON_POINTS,
        },
        first_task="a generator in the same net",
    ),
    "vase": Method(
        summary="life-long disentangled codes: environments, masks and generative replay",
        group="disentangled codes",
        paper="Achille et al. 2018, arXiv 1808.06508",
        supervision=_NO_LABELS,
        stores="a snapshot of the net, statistics of every environment, one mean code per class",
        learner="vase:VASE",
        style=42,
        presets=_CODES,
        needs_images=True,
        first_task=_NO_CLASSIFIER,
    ),
    "cci-vae": Method(
        summary="a variational autoencoder with growing capacity: VASE without its three parts",
        group="disentangled codes",
        paper="Burgess et al. 2018, arXiv 1804.03599",
        supervision=_NO_LABELS,
        stores="one mean code per class",
        learner="vase:VASE",
        style=43,
        changes={"environments": False, "dreams": False, "masks": False},
        presets=_CODES,
        needs_images=True,
        first_task=_NO_CLASSIFIER,
    ),
    "beta-vae": Method(
        summary="a variational autoencoder with a weight on the KL divergence",
        group="disentangled codes",
        paper="Higgins et al. 2017, ICLR",
        supervision=_NO_LABELS,
        stores="one mean code per class",
        learner="vase:VASE",
        style=44,
        changes={"beta": 4.0, "environments": False, "dreams": False, "masks": False},
        presets=_CODES,
        needs_images=True,
        first_task=_NO_CLASSIFIER,
    ),
    "gdumb": Method(
        summary="a new net trained on a class-balanced buffer alone",
        group="replay",
        paper="Prabhu et al. 2020, ECCV",
        supervision=_LABELS,
        stores="a buffer of images with labels",
        learner="gdumb:GDumb",
        style=13,
        presets={
            "toy": {"batch_size": 16, "final_learning_rate": 5e-4},
            "quickstart": {"epochs": 32},  # passes over its buffer, not over a task
            "environments": {"epochs": 32},
            "small-scale": {"epochs": 64},
            "gpu": {"batch_size": 256, "epochs": 64},
            "paper": {"retrain_every": 100},  # as often as is affordable
        },
        first_task="learns from its buffer alone",
    ),
    "icarl": Method(
        summary="iCaRL: distilled sigmoids, the nearest mean of herded exemplars",
        group="replay",
        paper="Rebuffi et al. 2017, arXiv 1611.07725",
        supervision=_LABELS,
        stores="a buffer of images with labels",
        learner="icarl:ICaRL",
        style=12,
        # The paper's stream has 5,000 classes: one exemplar of each.
        presets={"toy": {"include_unseen": False}, "paper": {"buffer_size": 5000}},
        first_task="sigmoid outputs",
    ),
    "pcr": Method(
        summary="proxy-based contrastive replay: a softmax over the classes of the batch",
        group="replay",
        paper="Lin et al. 2023, arXiv 2304.04408",
        supervision=_LABELS,
        stores="a buffer of images with labels",
        learner="pcr:PCR",
        style=21,
        first_task="proxies of the classes in a batch",
    ),
    "hpcr": Method(
        summary="PCR with distillation of stored logits and similarities",
        group="replay",
        paper="Lin et al. 2023, arXiv 2309.15038",
        supervision=_LABELS,
        stores="a buffer of images with labels, features and logits",
        learner="pcr:PCR",
        style=22,
        changes={"cosine_loss_scale": True, "alpha": 0.1, "beta": 0.5},
        first_task="proxies of the classes in a batch",
    ),
    "contrastive": Method(
        summary="an embedding that maps images near their exemplars: the DCL paper's invariant baseline",
        group="invariant",
        paper=_DCL_PAPER,
        supervision="labels, task boundaries, one exemplar per class",
        stores="one exemplar per class",
        learner="contrastive:Contrastive",
        style=10,
        presets={
            "toy": {"learning_rate": 1e-3, "final_learning_rate": 1e-5},  # of Adam
            "quickstart": {"batch_size": 64, "epochs": 5, "patience": 0},
            "small-scale": {"batch_size": 64, "epochs": 3, "patience": 0},
        },
        grows=True,
        first_task=_NO_CLASSIFIER,
    ),
    "l2p": Method(
        summary="learning to prompt, on a pre-trained ViT that you provide",
        group="prompts",
        paper=_L2P_PAPER,
        supervision="labels, task boundaries, pre-training on other images",
        stores="a pool of prompts",
        learner="l2p:build_l2p",
        style=24,
        needs_images=True,
        first_task="prompts of a frozen net",
    ),
    "l2p-lite": Method(
        summary="L2P on a small ViT of `everlearn pretrain`; not L2P of the paper",
        group="prompts",
        paper=_L2P_PAPER,
        supervision="labels, task boundaries, pre-training on other images",
        stores="a pool of prompts",
        learner="l2p:build_lite",
        style=9,
        presets={
            "small-scale": {"epochs": 1, "batch_size": 64, "image_size": 32},
        },
        needs_images=True,
        first_task="prompts of a frozen net",
    ),
}

METHODS: dict[str, Method] = {
    name: record.with_preset("paper", TUNED.get(name, {})) for name, record in _RECORDS.items()
}


def find_method(name: str) -> Method:
    """Return the record of a method, or raise an error that lists the known names."""
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; known: {', '.join(METHODS)}")
    return METHODS[name]


def group_methods() -> dict[str, list[str]]:
    """Return the names of methods by group, both in the order of METHODS."""
    groups: dict[str, list[str]] = {}
    for name, method in METHODS.items():
        groups.setdefault(method.group, []).append(name)
    return groups


def describe_methods(pages: str) -> str:
    """Return a Markdown table of all methods; the page of `er` is at `{pages}/er.md`."""
    lines = ["| group | method | what it is | given | stores |", "|---|---|---|---|---|"]
    for group, names in group_methods().items():
        for name in names:
            method = METHODS[name]
            cells = (method.summary, method.supervision, method.stores)
            text = " | ".join(cells).replace("*", r"\*")
            lines.append(f"| {group} | [{name}]({pages}/{name}.md) | {text} |")
            group = ""  # only beside its first method
    return "\n".join(lines).replace("|  |", "| |")
