"""What is unlike the training images is flagged, and of what is like them one in a hundred."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom, chi2

from probnb.__main__ import main
from probnb.calibrators import PlattScaling
from probnb.data import ProbabilityData, Splits
from probnb.images import model as kept
from probnb.images.card import model_card
from probnb.images.predict import distances, summarize
from probnb.training.models import network

NORMAL = torch.Generator().manual_seed(0)
MIX = torch.tensor([[2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.5, 0.1]])


def normal(rows):
    """Rows of three correlated columns, unequal in scale."""
    return torch.randn(rows, 3, generator=NORMAL) @ MIX.T + 5


def flagged(expected, rows):
    """Counts that a flag of one in a hundred gives but once in ten thousand."""
    return binom.ppf([5e-5, 1 - 5e-5], rows, expected)


@pytest.fixture(scope="module")
def table():
    x = normal(9000)
    parts = [ProbabilityData(part, (part[:, 0] > 5).float()) for part in x.split(3000)]
    return Splits(*parts, "drawn")


@pytest.fixture(scope="module")
def ensemble(table):
    torch.manual_seed(0)
    spec = network("mlp", hidden=(8,))
    members = tuple(spec.build(torch.zeros(1, 3)).state_dict() for _ in range(3))
    scale = tuple(torch.tensor([[v]]).expand(1, 3) for v in (5.0, 2.0))
    model = kept.KeptModel(spec, members, 3, scale).calibrated(PlattScaling(), table.val)
    return model.summarized(table, "cpu")


def test_of_a_normal_distribution_it_is_the_quantile_of_chi_squared():
    summary = summarize(normal(20_000), normal(20_000))
    assert float(summary["limit"]) == pytest.approx(chi2.ppf(0.99, 3), rel=0.05)
    np.testing.assert_allclose(
        summary["precision"].inverse(), MIX @ MIX.T, atol=0.03 * float((MIX @ MIX.T).max())
    )
    one = summary["mean"] + 3 * MIX[:, 2]  # three deviations along the narrowest direction
    assert distances(summary, one[None])[0] == pytest.approx(9, rel=0.1)


@pytest.mark.parametrize("rows, limit", [(98, None), (99, 99), (100, 100), (199, 198), (299, 297)])
def test_the_limit_has_the_rank_of_conformal_prediction(rows, limit):
    val = normal(rows)
    summary = summarize(normal(300), val)
    if limit is None:
        assert summary is None
    else:
        assert (distances(summary, val) <= float(summary["limit"])).sum() == limit


def test_one_in_a_hundred_is_flagged_and_all_that_is_far(ensemble, table):
    def count(x):
        return ensemble.describe(x, "cpu")["unlike_training"].sum()

    low, high = flagged(0.01, 3000)
    assert low / 1.5 <= count(table.test.inputs) <= 1.5 * high  # the limit has an error of its own
    assert count(3 + 4 * torch.rand(500, 3, generator=NORMAL)) > 400
    assert count(table.test.inputs[:0]) == 0


def test_the_range_is_that_of_the_members(ensemble, table):
    told = ensemble.describe(table.test, "cpu")
    alone = [
        replace(ensemble, members=(m, m), summary=None).predict(table.test, "cpu")
        for m in ensemble.members
    ]
    np.testing.assert_allclose(told["lowest_member"], np.min(alone, axis=0), atol=1e-12)
    np.testing.assert_allclose(told["highest_member"], np.max(alone, axis=0), atol=1e-12)
    np.testing.assert_array_equal(told["probability"], ensemble.predict(table.test, "cpu"))
    single = replace(ensemble, members=ensemble.members[:1])
    assert [*single.describe(table.test, "cpu")] == ["probability", "unlike_training"]


def test_a_summary_is_kept_with_the_model_and_a_flipped_bit_refused(ensemble, table, tmp_path):
    folder = kept.save_model(tmp_path / "m", ensemble)
    told, again = (m.describe(table.test, "cpu") for m in (ensemble, kept.load_model(folder)))
    pd.testing.assert_frame_equal(pd.DataFrame(again), pd.DataFrame(told), check_exact=True)
    content = bytearray((folder / kept.SUMMARY).read_bytes())
    for at in np.random.default_rng(0).integers(0, len(content), 20):
        content[at] ^= 4
        (folder / kept.SUMMARY).write_bytes(content)
        with pytest.raises(ValueError, match=rf"model: .*{kept.SUMMARY} is damaged"):
            kept.load_model(folder)
        content[at] ^= 4
    assert "unlike_training" in model_card(ensemble)
    assert "unlike_training" not in model_card(replace(ensemble, summary=None))


def test_of_a_network_without_such_a_layer_there_is_no_summary(table):
    class Sums(torch.nn.Module):
        def __init__(self, features):
            super().__init__()
            self.factor = torch.nn.Parameter(torch.ones(1, 2))

        def forward(self, x):
            return x.sum(1, keepdim=True) * self.factor

    spec = network(Sums)
    model = kept.KeptModel(spec, (spec.build(torch.zeros(1, 3)).state_dict(),), 3)
    assert model.summarized(table, "cpu").columns == ("probability",)


@pytest.fixture(scope="module")
def pictures():
    """Smooth patches of colour, and an untrained network that has seen them."""
    draw = torch.rand(900, 3, 3, 3, generator=NORMAL)
    smooth = torch.nn.functional.interpolate(draw, (24, 24), mode="bilinear")
    smooth = (255 * smooth).to(torch.uint8)
    parts = [ProbabilityData(x, torch.arange(300) % 2) for x in smooth.split(300)]
    torch.manual_seed(0)
    spec = network("resnet18", width=8, stem="small")
    scale = tuple(torch.full((1, 3, 1, 1), v) for v in (128.0, 64.0))
    model = kept.KeptModel(spec, (spec.build(smooth).state_dict(),), 3, scale, size=24)
    return model.summarized(Splits(*parts, "drawn"), "cpu"), parts[2].inputs


def test_the_command_flags_noise(pictures, tmp_path, capsys, monkeypatch):
    model, new = pictures
    noise = torch.randint(0, 2, (60, 3, 12, 12), generator=NORMAL, dtype=torch.uint8)
    noise = 255 * noise.repeat_interleave(2, 2).repeat_interleave(2, 3)
    np.save(tmp_path / "new.npy", torch.cat([new, noise]).permute(0, 2, 3, 1).numpy())
    folder = kept.save_model(tmp_path / "m", model)
    command = ["predict", str(folder), str(tmp_path / "new.npy"), "--device", "cpu", "--quiet"]
    assert main(command) == 0
    printed = capsys.readouterr()
    table = pd.read_csv(io.StringIO(printed.out))
    assert [*table] == ["path", "probability", "reason", "unlike_training"]
    flags = table["unlike_training"].to_numpy()
    assert flags[300:].all() and flags[:300].sum() <= 1.5 * flagged(0.01, 300)[1]
    assert f"{flags.sum()} are unlike the training images (unlike_training)" in printed.err
    monkeypatch.setattr(kept, "FORMAT", 2)  # as it was kept before there were summaries
    command[1] = str(kept.save_model(tmp_path / "old", replace(model, summary=None)))
    monkeypatch.undo()
    assert main(command) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("path,probability,reason\n")
    assert "of which the model has no summary" in printed.err
