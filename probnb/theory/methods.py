"""The methods that are compared in the logistic model: soft targets, CaPE's among them, and ridge.

As for networks, a method is a schedule of soft targets, and one loop serves all of them.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import softplus

from ..empirical import p_emp_bin, p_emp_kernel
from ..validation import check_choice
from .model import Sample

__all__ = ["calibrated_targets", "mean_cross_entropy", "ridge", "train"]


def train(sample, validation, start, eta, epochs, epoch=1, targets=None):
    """Gradient descent on soft targets; keeps the estimate of lowest validation cross entropy.

    Parameters
    ----------
    sample, validation : Sample
        Training and validation data.
    start : Tensor of shape (r, p)
        Starting estimates; they are candidates themselves.
    eta : float
        Step size.
    epochs : int
        Epochs.
    epoch : int, default=1
        Iterations per epoch.
    targets : callable, optional
        ``targets(t, theta)`` gives the soft targets (r, n) of epoch t = 1, 2, ...; the observed
        outcomes by default.

    Returns
    -------
    kept : Tensor of shape (r, p)
        Estimates of lowest validation cross entropy, one per replicate.
    when : ndarray of shape (r,)
        Epochs at which they were reached.
    norm, along : ndarray of shape (r, epochs + 1)
        Geometry of all estimates on the way.
    """
    theta, kept, seen = start.clone(), start.clone(), []
    lowest = torch.full_like(start[:, 0], torch.inf)
    when = torch.zeros_like(lowest)
    for t in range(epochs + 1):
        if t > 0:
            goal = sample.outcomes if targets is None else targets(t, theta)
            for _ in range(epoch):
                theta = theta - eta * sample.gradient(theta, goal)
        loss = mean_cross_entropy(validation, theta)
        better = loss < lowest
        lowest, when = torch.where(better, loss, lowest), torch.where(better, t, when)
        kept = torch.where(better[:, None], theta, kept)
        seen.append(torch.stack([theta.norm(dim=1), theta[:, 0]]))  # the truth is along axis 0
    norm, along = torch.stack(seen, dim=-1).cpu().numpy()
    return kept, when.cpu().numpy(), norm, along


def mean_cross_entropy(sample, theta):
    """Mean cross entropy of estimates (r, p) on a sample, in nats, of shape (r,)."""
    logits = sample.logits(theta)
    return (softplus(logits) - sample.outcomes * logits).mean(dim=1)


def calibrated_targets(sample, protocol, estimator):
    """Return CaPE's schedule: empirical probabilities in every m-th epoch, else the outcomes."""
    check_choice(estimator, ("bin", "kernel"), "estimator")
    outcomes = sample.outcomes.cpu().numpy()

    def targets(t, theta):
        if t % protocol.every:
            return sample.outcomes
        predictions = torch.sigmoid(sample.logits(theta)).cpu().numpy()
        if estimator == "bin":
            rows = [p_emp_bin(p, y, protocol.bins) for p, y in zip(predictions, outcomes)]
        else:
            settings = protocol.neighbours, protocol.sigma
            rows = [p_emp_kernel(p, y, *settings) for p, y in zip(predictions, outcomes)]
        return torch.from_numpy(np.stack(rows)).to(theta.device)

    return targets


def ridge(sample, penalties, tolerance=1e-8):
    r"""Ridge logistic regression at several strengths, by Newton's method on all replicates.

    Parameters
    ----------
    sample : Sample
        Training data.
    penalties : sequence of float
        Strengths :math:`\lambda > 0` of :math:`L_n(\theta) + \frac\lambda2\|\theta\|^2`; fastest
        from strong to weak, as each solution starts the next.
    tolerance : float, default=1e-8
        Norm of the gradient at which to stop.

    Returns
    -------
    Tensor of shape (len(penalties), r, p)
        The minimisers.

    Raises
    ------
    RuntimeError
        If Newton's method has not converged after 50 steps.
    """
    X = sample.inputs
    if X.shape[2] > X.shape[1]:  # the minimiser lies in the span of the rows: n coordinates do
        basis, square = torch.linalg.qr(X.mT)
        zero = torch.zeros_like(square[:, 0])
        inner = ridge(
            Sample(square.mT.contiguous(), sample.outcomes, zero, zero), penalties, tolerance
        )
        return (basis @ inner[..., None])[..., 0]
    n, p = X.shape[1:]
    theta, found = torch.zeros_like(sample.start), []
    identity = torch.eye(p, dtype=X.dtype, device=X.device)
    for penalty in penalties:
        for _ in range(50):
            gradient = sample.gradient(theta, sample.outcomes) + penalty * theta
            if gradient.norm(dim=1).max() < tolerance:
                break
            prediction = torch.sigmoid(sample.logits(theta))
            weight = (prediction * (1 - prediction))[..., None] / n
            hessian = X.mT @ (weight * X) + penalty * identity
            theta = (
                theta
                - torch.cholesky_solve(gradient[..., None], torch.linalg.cholesky(hessian))[..., 0]
            )
        else:
            raise RuntimeError(f"ridge did not converge at penalty {penalty!r}.")
        found.append(theta)
    return torch.stack(found)
