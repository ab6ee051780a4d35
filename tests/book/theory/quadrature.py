"""Integrals over standard normals by brute force: what closed forms are held against."""

import numpy as np


def gaussian_nodes(sharpness=1.0, order=40):
    """Nodes and weights over N(0, 1): Gauss-Legendre panels that shrink towards 0."""
    edges = np.r_[0.0, 12.0 * 2.0 ** np.arange(-int(np.log2(16 * max(sharpness, 1))), 1)]
    x, w = np.polynomial.legendre.leggauss(order)
    half = np.diff(edges)[:, None] / 2
    nodes = (edges[:-1, None] + half * (1 + x)).ravel()
    weights = (half * w).ravel() * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)
    return np.r_[nodes, -nodes], np.r_[weights, weights]


def gaussian_integral(function, *sharpness):
    """Expectation of a function of one or two independent N(0, 1), each with its sharpness."""
    nodes, weights = zip(*map(gaussian_nodes, sharpness))
    values = function(*np.meshgrid(*nodes, indexing="ij"))
    for own in reversed(weights):
        values = values @ own
    return values
