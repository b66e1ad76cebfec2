"""Every figure and table: EXPERIMENTS, one module each. No torch is loaded before something is run."""

from __future__ import annotations

from types import ModuleType

from everlearn.experiments import (
    ar1_long,
    continuous,
    cost,
    fig2_shapes,
    fig3_regularisation,
    fig4_replay,
    fig5_l2p,
    fig6_choice,
    fig7_invariance,
    fig8_online,
    fig9_open_set,
    fig10_mistakes,
    figa1_agem,
    figa2_der,
    gnr_ablation,
    gnr_balance,
    gnr_generator,
    gnr_long,
    gnr_nc,
    gnr_nic,
    gnr_share,
    million,
    overview,
    scenarios,
    separability,
    stability,
    table1_one_shot,
    unlearning,
    vase_disentangled,
    vase_fig2,
    vase_fig3,
    vase_fig4,
    vase_fig5,
    vase_table1,
)
from everlearn.experiments.trial import at_scale

EXPERIMENTS: dict[str, ModuleType] = {
    "overview": overview,
    "fig2": fig2_shapes,
    "fig3": fig3_regularisation,
    "fig4": fig4_replay,
    "fig5": fig5_l2p,
    "fig6": fig6_choice,
    "fig7": fig7_invariance,
    "fig8": fig8_online,
    "table1": table1_one_shot,
    "fig9": fig9_open_set,
    "fig10": fig10_mistakes,
    "figA1": figa1_agem,
    "figA2": figa2_der,
    "continuous": continuous,
    "stability": stability,
    "separability": separability,
    "unlearning": unlearning,
    "million": million,
    "scenarios": scenarios,
    "cost": cost,
    "gnr-nc": gnr_nc,
    "gnr-nic": gnr_nic,
    "gnr-ablation": gnr_ablation,
    "gnr-share": gnr_share,
    "gnr-balance": gnr_balance,
    "gnr-generator": gnr_generator,
    "ar1": ar1_long,
    "gnr-long": gnr_long,
    "vase-table1": vase_table1,
    "vase-fig2": vase_fig2,
    "vase-fig3": vase_fig3,
    "vase-fig4": vase_fig4,
    "vase-fig5": vase_fig5,
    "vase-disentangled": vase_disentangled,
}


def names_of(module: ModuleType, scale: str) -> set[str]:
    """The names of an experiment's runs and measurements."""
    trials = at_scale(module.SETTINGS, scale).trials
    runs = {trial.folder(seed) for trial in trials for seed in trial.seeds}
    return runs | set(getattr(module, "PARTS", ()))


def find_experiment(name: str) -> ModuleType:
    """Look an experiment up by its name."""
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; known: all, {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
