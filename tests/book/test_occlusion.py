"""What a model looks at: maps of a model whose sight is known; images stay out unless asked for."""

import ast
from dataclasses import replace

import numpy as np
import pytest
import torch

from probnb.calibrators import PlattScaling
from probnb.data import ProbabilityData
from probnb.images.model import KeptModel
from probnb.training.models import network
from probnb_book.occlusion import look_inside, occlusion, surest

from .pages import ROOT

BOOK = ROOT / "book"


class Corner(torch.nn.Module):
    """Log-odds: a weight times the mean of the first channel in the upper left quarter."""

    def __init__(self, in_channels):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(0.02))

    def forward(self, x):
        seen = self.weight * x[:, 0, :16, :16].mean((1, 2))
        return torch.stack([-seen / 2, seen / 2], 1)


def made(*weights):
    members = tuple({"weight": torch.tensor(w)} for w in weights)
    scale = torch.zeros(1, 3, 1, 1), torch.ones(1, 3, 1, 1)
    return KeptModel(network(Corner), members, 3, scale, size=32)


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (3, 3, 32, 32)).astype(np.uint8)


def test_a_map_is_what_covering_does(images):
    maps = occlusion(made(0.02), images, "cpu", side=4)
    assert maps.shape == (3, 4, 4)
    assert (maps[:, 3] == 0).all() and (maps[:, :, 3] == 0).all()  # not seen there
    covered = images[1].copy()  # place (1, 2): rows 4 to 20, columns 12 to 28
    covered[:, 4:20, 12:28] = covered.mean((1, 2), keepdims=True).round()
    change = 0.02 * (images[1, 0, :16, :16].mean() - covered[0, :16, :16].mean())
    assert maps[1, 1, 2] == pytest.approx(change, abs=1e-5) and abs(change) > 1e-3


def test_a_calibrator_does_not_change_the_map_and_an_ensemble_is_averaged(images):
    plain, platt = made(0.02), PlattScaling().fit([[0, -1.0], [0, 1], [1, 0], [1, 2]], [0, 1, 1, 1])
    maps = occlusion(plain, images, "cpu")
    calibrated = replace(plain, calibrator=platt)
    np.testing.assert_array_equal(occlusion(calibrated, images, "cpu"), maps)
    np.testing.assert_allclose(occlusion(made(0.02, 0.02), images, "cpu"), maps, atol=1e-5)


def test_the_most_and_the_least_sure():
    p = np.array([0.5, 0.9, 0.02, 0.6, 0.5, 1.0])
    sure, unsure = surest(p, 2)
    assert sure.tolist() == [5, 2] and set(unsure) == {0, 4}
    sure, unsure = surest(p, 12)
    assert sorted([*sure, *unsure]) == list(range(6))
    with pytest.raises(ValueError, match="n must be"):
        surest(p, 0)


def test_the_figure_pairs_images_with_maps_on_one_scale(images):
    data, p = ProbabilityData(torch.from_numpy(images), [0, 1, 1]), np.array([0.1, 0.876, 0.5])
    axes = look_inside(made(0.02), data, p, [2, 1], "cpu")
    assert [ax.get_title("left") for ax in axes] == [
        "p 0.50, outcome 1",
        "",
        "p 0.88, outcome 1",
        "",
    ]
    np.testing.assert_array_equal(axes[2].images[0].get_array(), images[1].transpose(1, 2, 0))
    limits = {ax.images[0].get_clim() for ax in axes[1::2]}
    assert len(limits) == 1 and sum(*limits) == 0
    assert axes[0].figure.axes[-1].get_xlabel() == "log-odds lost when covered"


def test_the_page_shows_no_image_of_the_users_unless_asked():
    """Each call that draws pixels hangs on `show_images`, False for images of one's own."""
    tree = ast.parse((BOOK / "images.py").read_text().replace("%matplotlib", "# %matplotlib"))

    def draws(node):
        drawing = ("look_inside", "face_grid")
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        return [n for n in calls if getattr(n.func, "id", "") in drawing]

    guarded = [n for n in ast.walk(tree) if isinstance(n, ast.IfExp) and draws(n.body)]
    assert all(ast.unparse(n.test) == "show_images" for n in guarded)
    assert len(guarded) == len(draws(tree)) == 3
    set_to = [
        ast.unparse(n.value)
        for n in ast.walk(tree)
        if isinstance(n, ast.Assign) and "show_images" in map(ast.unparse, n.targets)
    ]
    assert set_to == ["None", "example if show_images is None else show_images"]
