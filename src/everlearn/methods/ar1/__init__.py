"""CWR, AR1, latent replay and generative negative replay: settings of one learner."""

from everlearn.methods.ar1.ar1 import AR1
from everlearn.methods.ar1.settings import (
    REPLAY_MODES,
    GeneratorSettings,
    LearningRates,
    Settings,
)

__all__ = ["AR1", "REPLAY_MODES", "GeneratorSettings", "LearningRates", "Settings"]
