"""Network architectures, built by name with `build_net`."""

from everlearn.nets.build import NETS, build_net

__all__ = ["NETS", "build_net"]
