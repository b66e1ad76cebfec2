"""Network architectures, built by name with `build_net` and `build_classifier`."""

from everlearn.nets.build import NETS, build_classifier, build_net

__all__ = ["NETS", "build_classifier", "build_net"]
