"""VASE (Achille et al. 2018), CCI-VAE and beta-VAE."""

from everlearn.methods.vase.settings import Inference, Objective, Settings
from everlearn.methods.vase.vase import VASE

__all__ = ["VASE", "Inference", "Objective", "Settings"]
