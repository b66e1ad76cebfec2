"""How nets are trained: trainer, schedule, optimizers, captured steps, regularizers, pre-training."""
