"""The budget of the error, small: what a label is, and what is kept of each cell."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from probnb_book import storage, studies
from probnb_book.budget import Told


def faces(ids):
    ids = torch.as_tensor(ids)
    return SimpleNamespace(ids=ids, probabilities=ids / 4000, outcomes=torch.zeros(len(ids)))


def test_a_label_belongs_to_a_face():
    every, some = np.arange(4000), [7, 3999, 12, 12]
    of = {labels: Told(labels, 3)(1, faces(every), None, 0) for labels in (1, 4)}
    assert torch.equal(Told(4, 3)(9, faces(some), None, 5), of[4][some])
    assert set(of[4].tolist()) == {0, 0.25, 0.5, 0.75, 1}
    gap = {labels: (y - faces(every).probabilities).numpy() for labels, y in of.items()}
    assert abs(gap[4].mean()) < 0.02
    assert (gap[1] ** 2).mean() == pytest.approx(1 / 6, abs=0.01)  # p (1 - p) over all p
    assert (gap[4] ** 2).mean() == pytest.approx(1 / 24, abs=0.003)
    assert not torch.equal(of[4], Told(4, 2)(1, faces(every), None, 0))


def test_no_label_is_the_probability():
    data = faces([5, 2])
    assert torch.equal(Told(0, 3)(1, data, None, 0), data.probabilities)


def test_two_networks_on_the_probability(tmp_path):
    places = ["--results", str(tmp_path), "--runs", str(tmp_path / "runs"), "--device", "cpu"]
    given = ["--profile", "smoke", "--scenarios", "linear", "--workers", "1"]
    studies.main(["budget", *given, *places])
    (line,) = storage.read(tmp_path, "budget", "budget").to_dict("records")
    assert (line["labels"], line["faces"]) == (0, 211) and line["noise"] > 0  # of two trainings
    assert 0 < line["best_epoch"] <= line["epochs"] and 0 < line["mse_p"] < 0.25
