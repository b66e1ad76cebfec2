"""Pre-training: a transformer on MNIST and Fashion-MNIST, extractors on shapes outside every stream."""

from everlearn.training.pretraining.pretraining import Pretraining
from everlearn.training.pretraining.schedule import Score, TrainingProgress
from everlearn.training.pretraining.settings import Settings

__all__ = ["Pretraining", "Score", "Settings", "TrainingProgress"]
