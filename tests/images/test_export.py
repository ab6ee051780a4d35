"""A model as one file: what other programs compute is what predict says, or there is no file."""

import contextlib
import logging
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.linear_model import LogisticRegression

from probnb.__main__ import main
from probnb.calibrators import CALIBRATORS, HistogramBinning, IsotonicCalibration, PlattScaling
from probnb.calibrators.base import Calibrator, probability
from probnb.data import ProbabilityData
from probnb.data.inputs import channel_scale
from probnb.images import export
from probnb.images.export import Graph, Whole, export_model
from probnb.images.model import KeptModel, load_model, predict_images, save_model
from probnb.training.models import network
from probnb_book.data.drawn_faces import drawn_faces

FACES, AGES = drawn_faces(60, size=16)
Y = np.greater(AGES, np.median(AGES)).astype(int)
SMALL = network("resnet18", width=4, stem="small")
logging.getLogger("torch.__trace").propagate = False  # pytest would keep each of its records


def small(members=1, **settings):
    torch.manual_seed(0)
    weights = [SMALL.build(FACES).state_dict() for _ in range(members)]
    for one in weights:  # so that predictions spread
        one["fc.weight"] *= 5
    return KeptModel(SMALL, tuple(weights), 3, channel_scale(FACES), size=16, **settings)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(export, "CHECKED", 40)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400, 2))
    y = rng.random(400) < 1 / (1 + np.exp(-2 * np.diff(z, axis=1)[:, 0]))
    return z, {name: kind().fit(z, y) for name, kind in CALIBRATORS.items()}


@pytest.fixture(scope="module")
def logits(fitted):
    """Those of the fit, on the steps' ends; between; far out; no evidence at all."""
    far = np.array([[0, 800.0], [800, 0], [0, 1e6], [0, 0], [1e-9, 0]])
    return np.concatenate([fitted[0], fitted[0] + 1e-3, far])


class AllCalibrators(torch.nn.Module):
    def __init__(self, fitted):
        super().__init__()
        self.fitted = fitted

    def forward(self, z):
        return tuple(probability(c, z, z[:, 1] - z[:, 0], Graph) for c in self.fitted.values())


def test_every_calibrator_in_torch_and_in_onnx_is_the_calibrator(fitted, logits):
    whole, z = AllCalibrators(fitted[1]).eval(), torch.from_numpy(logits)
    every = [whole(z)]
    with contextlib.suppress(ImportError):
        import onnxruntime

        how = {"dynamic_shapes": ({0: "n"},), "dynamo": True, "verbose": False}
        program = torch.onnx.export(whole, (z[:2],), **how).model_proto.SerializeToString()
        session = onnxruntime.InferenceSession(program)
        every.append(session.run(None, {session.get_inputs()[0].name: logits}))
    for name, *found in zip(fitted[1], *every):
        expected = fitted[1][name].predict_proba(logits)[:, 1]
        assert np.ptp(expected) > 0.3
        for p in found:
            np.testing.assert_allclose(p, expected, atol=1e-12, err_msg=name)


def test_a_step_alone_is_a_constant():
    c = IsotonicCalibration().fit([1.0, 1, 1], [0, 1, 1])
    p = probability(c, None, torch.tensor([-3.0, 1, 3], dtype=torch.float64), Graph)
    np.testing.assert_allclose(p, [2 / 3] * 3)


def test_an_ensemble_with_its_calibrator_from_the_shell(few, tmp_path, capsys):
    """What an image is prepared by stands in the file, for a photograph of any shape."""
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    model = small(2).calibrated(PlattScaling(), ProbabilityData(FACES, Y))
    save_model(tmp_path / "model", model)
    large, photos = drawn_faces(6, size=150)[0].permute(0, 2, 3, 1).numpy(), tmp_path / "photos"
    photos.mkdir()
    for i, face in enumerate(large):
        Image.fromarray(face[: 100 + 10 * i]).save(photos / f"{i}.{'jpg' if i % 2 else 'png'}")
    Image.fromarray(large[0]).save(
        photos / "turned.jpg",
        exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0",
    )
    path = tmp_path / "m.onnx"
    assert main(["export", str(tmp_path / "model"), str(path)]) == 0
    printed = capsys.readouterr().out
    assert re.search(
        r"^difference: \d\.\de-\d\d\nchecked: 40 images, probabilities ", printed, re.M
    )
    facts = {p.key: p.value for p in onnx.load(path).metadata_props}
    assert facts["calibrator"] == "Platt scaling" and facts["images"] == "uint8 (n, 16, 16, 3), RGB"
    assert facts["prepare"] in printed and facts["model"].startswith("2 x resnet18")
    session = runtime.InferenceSession(path)
    (given,), (told,) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.shape[1:], told.name) == ("images", [16, 16, 3], "probability")
    for name, expected, _ in predict_images(load_model(tmp_path / "model"), photos, "cpu"):
        space = {"path": photos / name}
        exec(facts["prepare"], space)
        (p,) = session.run(["probability"], {"images": space["images"]})[0]
        assert abs(p - expected) < 1e-5
    both = session.run(["probability"], {"images": FACES.permute(0, 2, 3, 1).numpy()})[0]
    np.testing.assert_allclose(both, model.predict(FACES, "cpu"), atol=1e-5)


@pytest.mark.parametrize("aspect", ["crop", "pad", "stretch"])
def test_the_recipe_follows_the_aspect(aspect, tmp_path):
    model = small(aspect=aspect)
    face = drawn_faces(1, size=90)[0][0].permute(1, 2, 0).numpy()[:50]
    Image.fromarray(face).save(tmp_path / "wide.png")
    ((_, expected, _),) = predict_images(model, tmp_path / "wide.png", "cpu")
    space = {"path": tmp_path / "wide.png"}
    exec(export._facts(model)["prepare"], space)
    (p,) = model.predict(space["images"].transpose(0, 3, 1, 2), "cpu")
    assert abs(p - expected) < 1e-9


def test_a_backbone_goes_with_its_head(tmp_path):
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    weights = tmp_path / "test_resnet.mine.pth"
    torch.save(timm.create_model("test_resnet").state_dict(), weights)
    spec = network("pretrained", backbone=str(weights), mirror=True)
    net = spec.build(FACES)
    model = KeptModel(spec, (net.state_dict(),), 3, net.backbone.scale, size=32)
    faces, n = drawn_faces(40, 32)[0], torch.export.Dim("n")
    example = (faces[:2].permute(0, 2, 3, 1).contiguous(),)  # ONNX's graph, in half the time
    graph = torch.export.export(Whole(model).eval(), example, dynamic_shapes=({0: n},)).module()
    found = export._check(model, lambda x: graph(torch.from_numpy(x)).numpy(), faces.numpy())
    assert float(found["difference"]) < 1e-5 and found["checked"].startswith("40 images")


def test_a_file_that_differs_gets_no_name(few, tmp_path, monkeypatch):
    """The graph is right to 1e-5 as it is; it is computed here by torch, which is quicker."""

    def written(whole, example, path, facts):
        path.write_text("half")
        return lambda images: whole(torch.from_numpy(images)).numpy()

    monkeypatch.setattr(export, "_onnx", written)
    monkeypatch.setattr(export, "find_spec", bool)
    model = small().calibrated(PlattScaling(), ProbabilityData(FACES, Y))
    export_model(model, tmp_path / "m.onnx")
    (tmp_path / "m.onnx").write_text("before")
    monkeypatch.setattr(export, "probability", lambda *given: probability(*given) + 3e-5)
    with pytest.raises(ValueError, match=r"output: of 40 images one differs .* 3\.0e-05, more"):
        export_model(model, tmp_path / "m.onnx")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("m.onnx", "before")]


def test_rounding_decides_where_a_calibrator_jumps_and_nowhere_else():
    model = small()
    logits = model.logits(FACES)
    s = np.sort(np.diff(logits[0], axis=1)[:, 0])
    c = HistogramBinning(2).fit(logits[0], np.arange(60) % 2)
    c.edges_, c.probabilities_ = s[30:31], np.array([0.2, 0.8])  # an image on the edge
    model = replace(model, calibrator=c)
    p, pixels = model.predict(FACES), FACES.numpy()
    other = np.where(np.diff(logits[0], axis=1)[:, 0] == s[30], 0.2, p)
    assert (other != p).sum() == 1
    for given, told in ((p, "0.800"), (other, "0.800; at 1 rounding decides")):
        blocks = iter([given])
        facts = export._check(model, lambda images, blocks=blocks: next(blocks), pixels)
        assert facts["difference"] == "0.0e+00" and told in facts["checked"]
    wrong, nan = p.copy(), p.copy()
    wrong[np.argmin(np.abs(s[40] - np.diff(logits[0], axis=1)[:, 0]))] = 0.2
    nan[3] = np.nan
    for given in (wrong, nan):
        with pytest.raises(ValueError, match=r"one differs from predict by (6\.0e-01|nan)"):
            export._check(model, lambda images, given=given: given, pixels)


def test_what_cannot_be_exported_is_refused_at_once(tmp_path, capsys, monkeypatch):
    save_model(tmp_path / "model", small())
    (tmp_path / "d.onnx").mkdir()
    monkeypatch.setattr(export, "find_spec", bool)  # as if all were there
    folder, out = str(tmp_path / "model"), str(tmp_path / "m.onnx")
    cases = {
        (str(tmp_path / "no"), out): "model must be a folder with a model.json",
        (folder, str(tmp_path / "m.pb")): "output must be a file, NAME.onnx; got",
        (folder, str(tmp_path / "d.onnx")): "output must be a file; ",
        (folder, folder): "output must be a file",
        (folder, str(tmp_path / "model" / "model.json" / "m.onnx")): "model.json",  # not a folder
    }
    for arguments, message in cases.items():
        assert main(["export", *arguments]) == 1
        said = capsys.readouterr().err
        assert message in said and len(said.splitlines()) == 1
    monkeypatch.setattr(export, "find_spec", lambda name: name != "onnxscript" or None)
    assert main(["export", folder, out]) == 1
    said = capsys.readouterr().err
    assert "export needs the package onnxscript: pip install 'probnb[export]'" in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.onnx", "model"]


class Halved(Calibrator):
    """A map of one's own: half the log-odds, and what it was fitted to is not looked at."""

    def _fit(self, X, log_odds, y, weights):
        self.bias_ = 0.25

    def formula(self, z, s, do):
        return s / 2 + do.number(self.bias_)


def test_one_formula_is_enough_for_a_calibrator_of_ones_own(fitted):
    """In NumPy and in torch."""
    s = np.linspace(-5, 5, 101)
    own = Halved().fit(s, s > 0)
    expected = 1 / (1 + np.exp(-(s / 2 + 0.25)))
    np.testing.assert_allclose(own.predict_proba(s)[:, 1], expected, rtol=1e-14)
    graph = probability(own, None, torch.from_numpy(s), Graph)
    np.testing.assert_allclose(graph, expected, rtol=1e-14)


def test_models_that_have_no_graph_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "find_spec", bool)
    own = small().calibrated(LogisticRegression(), ProbabilityData(FACES, Y))
    with pytest.raises(ValueError, match=r"calibrator must be one of temp.*; got LogisticRegress"):
        export_model(own, tmp_path / "m.onnx")
    with pytest.raises(ValueError, match="model must be one of images"):
        export_model(replace(small(), size=None), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
