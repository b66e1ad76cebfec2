"""Every method by its name: METHODS, and `build` to make a learner of one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from everlearn.learner import Learner, find_device
from everlearn.methods import (
    agem,
    ar1,
    bir,
    contrastive,
    dcl,
    der,
    er,
    ewc,
    fine_tuning,
    gdumb,
    gem,
    icarl,
    joint,
    l2,
    l2p,
    lwf,
    nearest_mean,
    pcr,
    rehearsal_free,
    si,
    vase,
)
from everlearn.settings import change_settings


class Method(NamedTuple):
    """How a method is set and built."""

    settings: Callable[[], Any]
    build: Callable[[Any, Any, str], Learner]
    words: str


METHODS: dict[str, Method] = {
    "dcl": Method(dcl.Settings, dcl.DCL, "disentangled continual learning"),
    "dcl-plus": Method(
        partial(dcl.Settings, rehearse=0.25, average=0.8, own=0.001, fit=10),
        dcl.DCL,
        "DCL that rehearses its exemplars, averages its weights and fits before it answers",
    ),
    "fine-tuning": Method(
        fine_tuning.Settings, fine_tuning.FineTuning, "the current task only: the lower bound"
    ),
    "joint": Method(joint.Settings, joint.Joint, "all tasks so far together: the upper bound"),
    "cumulative": Method(
        partial(joint.Settings, again=False), joint.Joint, "joint training that goes on from before"
    ),
    "nearest-mean": Method(
        nearest_mean.Settings,
        nearest_mean.NearestMean,
        "class means of a net frozen after its first task",
    ),
    "lwf": Method(lwf.Settings, lwf.LwF, "learning without forgetting"),
    "si": Method(si.Settings, si.SI, "synaptic intelligence"),
    "ewc": Method(ewc.Settings, ewc.EWC, "elastic weight consolidation"),
    "online-ewc": Method(
        partial(ewc.Settings, decay=0.9), ewc.EWC, "elastic weight consolidation, old tasks fade"
    ),
    "l2": Method(l2.Settings, l2.L2, "L2 to the weights of the task before"),
    "rehearsal-free": Method(
        rehearsal_free.Settings,
        rehearsal_free.RehearsalFree,
        "distillation, L2 and EWC in any mixture",
    ),
    "er": Method(er.Settings, er.ER, "experience replay from a reservoir"),
    "er-balanced": Method(
        partial(er.Settings, balanced=True), er.ER, "experience replay, as much of every class"
    ),
    "agem": Method(agem.Settings, agem.AGEM, "no step against the gradient on old images"),
    "gem": Method(gem.Settings, gem.GEM, "no step against the gradient on any past task"),
    "der": Method(der.Settings, der.DER, "old images answered with their old logits"),
    "der++": Method(partial(der.Settings, beta=0.5), der.DER, "DER that asks for old classes, too"),
    "negative-replay": Method(
        partial(er.Settings, negative=True),
        er.ER,
        "replay that only pushes new classes off old images",
    ),
    "cwr": Method(
        partial(ar1.Settings, ar1.FROZEN, mode="none", head="cwr"),
        ar1.AR1,
        "a net frozen after its first task, the last rows of every class",
    ),
    "cwr-plus": Method(
        partial(ar1.Settings, ar1.FROZEN, mode="none", head="cwr+"),
        ar1.AR1,
        "CWR from zero rows, less their mean",
    ),
    "cwr-star": Method(
        partial(ar1.Settings, ar1.FROZEN, mode="none"),
        ar1.AR1,
        "CWR+ that averages rows which come back",
    ),
    "ar1": Method(
        partial(ar1.Settings, ar1.HELD, mode="none", head="cwr+", strength=8e5),
        ar1.AR1,
        "CWR+ and synaptic intelligence",
    ),
    "ar1-star": Method(
        partial(ar1.Settings, ar1.HELD, mode="none", strength=8e5),
        ar1.AR1,
        "CWR* and synaptic intelligence",
    ),
    "ar1-free": Method(
        partial(ar1.Settings, mode="pr-od"), ar1.AR1, "CWR* and replay of real latents"
    ),
    "latent-replay": Method(
        partial(ar1.Settings, mode="pr-od", head="plain", share=None),
        ar1.AR1,
        "real latents replayed, a plain head",
    ),
    "gnr": Method(
        ar1.Settings, ar1.AR1, "generative negative replay: CWR* and generated latents as negatives"
    ),
    "bir": Method(bir.Settings, bir.BIR, "brain-inspired replay: a net that generates by feedback"),
    "vase": Method(
        vase.Settings, vase.VASE, "disentangled codes for life: environments, masks and dreams"
    ),
    "cci-vae": Method(
        partial(vase.Settings, environments=False, dreams=False, masks=False),
        vase.VASE,
        "a variational autoencoder whose capacity grows: VASE with nothing against forgetting",
    ),
    "beta-vae": Method(
        partial(
            vase.Settings,
            objective=vase.Objective(beta=4.0),
            environments=False,
            dreams=False,
            masks=False,
        ),
        vase.VASE,
        "a variational autoencoder whose codes are held back by a weight",
    ),
    "gdumb": Method(gdumb.Settings, gdumb.GDumb, "a new net from a balanced memory alone"),
    "icarl": Method(
        icarl.Settings, icarl.ICaRL, "distilled sigmoids, the nearest mean of herded exemplars"
    ),
    "pcr": Method(pcr.Settings, pcr.PCR, "replay by proxies of the classes in a batch"),
    "hpcr": Method(
        partial(pcr.Settings, wave=True, alpha=0.1, beta=0.5),
        pcr.PCR,
        "PCR that keeps what it said of old images",
    ),
    "contrastive": Method(
        contrastive.Settings,
        contrastive.Contrastive,
        "a net that sees images and exemplars alike: the DCL paper's invariant baseline",
    ),
    "l2p": Method(
        l2p.Settings, l2p.build_l2p, "learning to prompt, on a frozen ViT whose weights you give"
    ),
    "l2p-lite": Method(
        l2p.Settings,
        l2p.build_lite,
        "not L2P of the paper: L2P on a small ViT of `everlearn pretrain`",
    ),
}


def find_method(name: str) -> Method:
    """Look a method up by its name."""
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; known: {', '.join(METHODS)}")
    return METHODS[name]


def build(name: str, stream: Any, device: str = "auto", **changes: Any) -> Learner:
    """Make a learner for a stream; `changes` are settings of the method, by name."""
    method, found = find_method(name), stream.canvas.dtype
    if found != "float32":
        raise ValueError(
            f"methods learn from images of dtype float32, found {found}; change the canvas"
        )
    settings = change_settings(method.settings(), changes, name)
    return method.build(stream, settings, find_device(device))
