"""A plain vision transformer, its configurations and its weights files."""

from everlearn.nets.vit.config import CONFIGS, Config
from everlearn.nets.vit.vit import ViT

__all__ = ["CONFIGS", "Config", "ViT"]
