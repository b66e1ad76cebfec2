"""Edge lists of outlines."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn.render.edges import (
    MARK_BOUNDARY_EDGE,
    MARK_EDGE,
    NO_EDGE,
    SHAPE_EDGE,
    build_edges,
)
from everlearn.shapes import outlines


@pytest.mark.parametrize("max_length", [None, 0.9])
def test_edges_form_closed_loops_no_longer_than_the_limit(max_length):
    """Signed edges on either side of the mark sum to zero, so no area leaks along a row."""
    edges = build_edges(outlines(0, np.arange(30)), 28.8, max_length)
    for start, end in zip(edges.starts[:-1], edges.starts[1:], strict=True):
        edge_types = edges.edge_types[start:end]
        step = np.diff(edges.points[start:end].astype(float), axis=0)
        sums = {
            edge_type: step[edge_types[:-1] == edge_type].sum(axis=0)
            for edge_type in (SHAPE_EDGE, MARK_EDGE, MARK_BOUNDARY_EDGE)
        }
        assert np.abs(sums[MARK_EDGE] + sums[MARK_BOUNDARY_EDGE]).max() < 1e-5
        assert np.abs(sums[SHAPE_EDGE] - sums[MARK_BOUNDARY_EDGE]).max() < 1e-5
        assert edge_types[-1] == NO_EDGE
        if max_length:
            rendered = edge_types[:-1] != NO_EDGE
            assert np.linalg.norm(step[rendered], axis=1).max() * 28.8 <= max_length * 1.001
