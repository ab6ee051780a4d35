"""A model as a folder: the same predictions elsewhere, nothing damaged read, and the command."""

import io
import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from probnb.__main__ import main
from probnb.calibrators import PlattScaling, VennAbers
from probnb.data import ProbabilityData
from probnb.data.inputs import channel_scale
from probnb.images.files import list_files
from probnb.images.model import (
    KeptModel,
    check_model_folder,
    load_model,
    map_input,
    predict_images,
    save_model,
)
from probnb.images.predict import at_base_rate
from probnb.training.models import network
from probnb_book.data.drawn_faces import drawn_faces

from ..made import encode, write_files

FACES, AGES = drawn_faces(48, size=24)
Y = np.greater(AGES, np.median(AGES)).astype(int)


def weights(spec, seed):
    """A network whose batch statistics are those of the faces, so that its predictions spread."""
    torch.manual_seed(seed)
    net = spec.build(FACES)
    mean, deviation = channel_scale(FACES)
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    for _ in range(12):
        loss = torch.nn.functional.cross_entropy(net((FACES - mean) / deviation), torch.tensor(Y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net.state_dict()


@pytest.fixture(scope="module")
def model():
    spec = network("resnet18", width=8, stem="small")
    bare = KeptModel(
        spec, (weights(spec, 0),), 3, channel_scale(FACES), size=24, record={"seed": 0}
    )
    return bare.calibrated(PlattScaling(), ProbabilityData(FACES, Y))


@pytest.fixture
def saved(model, tmp_path):
    return save_model(tmp_path / "model", model)


def write_faces(folder, images=FACES):
    faces = enumerate(images.permute(0, 2, 3, 1).numpy())
    return write_files(folder, {f"{i:02d}.png": encode(face) for i, face in faces})


def test_probabilities_are_those_of_the_network_and_its_calibrator(model):
    net = model.network.build(FACES)
    net.load_state_dict(model.members[0])
    mean, deviation = model.scale
    with torch.no_grad():
        logits = net.eval()((FACES - mean) / deviation).double().numpy()
    expected = model.calibrator.predict_proba(logits)[:, 1]
    np.testing.assert_allclose(model.predict(FACES, "cpu"), expected, atol=1e-6)
    assert np.ptp(expected) > 0.2


def test_a_saved_model_predicts_the_same_bit_for_bit(model, saved):
    again = load_model(saved)
    assert (again.predict(FACES, "cpu") == model.predict(FACES, "cpu")).all()
    assert again.record == model.record and again.record["seed"] == 0
    assert (again.size, again.aspect) == (24, "crop")
    names = sorted(path.name for path in saved.iterdir())
    assert names == ["MODEL_CARD.md", "member-0.safetensors", "model.json"]
    assert json.loads((saved / "model.json").read_text())["version"]


def test_members_are_averaged_before_calibration(tmp_path):
    spec = network("mlp", hidden=(8,))
    x = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    members = tuple(spec.build(x).state_dict() for _ in range(11))
    scale = torch.full((1, 5), 0.1), torch.full((1, 5), 2.0)  # of a table
    model = KeptModel(spec, members, 5, scale)
    each = [KeptModel(spec, (m,), 5, scale).predict(x) for m in members]
    np.testing.assert_allclose(model.predict(x), np.mean(each, axis=0), atol=1e-12)
    for other in (x.double(), x.numpy(), ProbabilityData(x.double(), torch.zeros(40))):
        np.testing.assert_allclose(model.predict(other, "cpu"), model.predict(x), atol=1e-6)
    y = np.arange(40) % 2
    calibrated = model.calibrated(PlattScaling(), ProbabilityData(x, y))
    p = model.predict(x)
    by_hand = PlattScaling().fit(np.log(p / (1 - p)), y).predict_proba(np.log(p / (1 - p)))[:, 1]
    np.testing.assert_allclose(calibrated.predict(x), by_hand, atol=1e-6)
    again = load_model(save_model(tmp_path / "m", calibrated))
    assert (again.predict(x) == calibrated.predict(x)).all()  # member 10 comes after member 2


def test_whatever_it_was_kept_in_it_predicts_in_full_precision(model, tmp_path):
    """As a model has its weights that was cast before it was kept."""
    for kind in (torch.float64, torch.bfloat16):
        cast = {k: v.to(kind) if v.is_floating_point() else v for k, v in model.members[0].items()}
        other = replace(model, members=(cast,))
        again = load_model(save_model(tmp_path / str(kind), other))
        assert again.members[0]["fc.weight"].dtype == kind
        here = again.predict(FACES, "cpu")
        np.testing.assert_array_equal(here, other.predict(FACES, "cpu"))
        if kind == torch.float64:  # a cast to fewer digits makes another network
            np.testing.assert_allclose(here, model.predict(FACES, "cpu"), atol=1e-6)


@pytest.mark.parametrize("name", ["model.json", "member-0.safetensors"])
def test_one_flipped_bit_is_refused(saved, name):
    content = bytearray((saved / name).read_bytes())
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(content), 40):
        bit = 1 << int(rng.integers(8))
        content[at] ^= bit
        (saved / name).write_bytes(content)
        with pytest.raises(ValueError, match=rf"model: .*{name} is damaged"):
            load_model(saved)
        content[at] ^= bit
    (saved / name).write_bytes(content)
    load_model(saved)


def test_other_folders_are_refused(saved, tmp_path, model):
    with pytest.raises(FileNotFoundError, match=r"folder with a model\.json"):
        load_model(tmp_path / "nowhere")
    (saved / "member-0.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"member-0\.safetensors"):
        load_model(saved)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.txt").write_text("mine")
    for check in (lambda place: save_model(place, model), check_model_folder):
        with pytest.raises(ValueError, match=r"model_dir must be empty or hold a model; .*photos"):
            check(tmp_path / "photos")
        with pytest.raises(ValueError, match=r"model_dir must be a folder; .*a\.txt is a file"):
            check(tmp_path / "photos" / "a.txt")
    assert check_model_folder(saved) == saved and check_model_folder(tmp_path / "new" / "m")
    assert not (tmp_path / "new").exists()
    save_model(saved, model)  # over a model, even a damaged one
    load_model(saved)
    assert not [*tmp_path.glob(f"{saved.name}.*")]


def test_a_network_of_ones_own_is_refused(tmp_path):
    class Own(torch.nn.Linear):
        def __init__(self, features):
            super().__init__(features, 2)

    spec = network(Own)
    model = KeptModel(spec, (spec.build(torch.zeros(1, 3)).state_dict(),), 3)
    assert model.predict(torch.zeros(4, 3)).shape == (4,)
    with pytest.raises(ValueError, match=r"network must be one of resnet18, mlp.*Own"):
        save_model(tmp_path / "m", model)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (FACES[:, :1], "inputs must have 3 channels; got 1"),
        (np.zeros((2, 3, 40, 40), np.uint8), "inputs must be uint8 of 24 x 24 pixels; got"),
        (np.zeros((2, 3, 24, 24)), "inputs must be uint8 of 24 x 24 pixels; got"),
    ],
)
def test_images_of_another_kind_are_refused(model, images, words):
    with pytest.raises(ValueError, match=words):
        model.predict(torch.as_tensor(images), "cpu")
    assert model.predict(FACES[:0]).shape == (0,)


def test_images_are_predicted_as_they_were_in_memory(model, tmp_path):
    folder = write_faces(tmp_path / "new")
    rows = list(predict_images(model, folder, "cpu", batch_size=10))
    assert [name for name, _, _ in rows] == [f"{i:02d}.png" for i in range(48)]
    np.testing.assert_allclose([p for _, p, _ in rows], model.predict(FACES, "cpu"), atol=1e-5)
    np.save(tmp_path / "new.npy", FACES.permute(0, 2, 3, 1).numpy())
    array = list(predict_images(model, tmp_path / "new.npy", "cpu"))
    assert [name for name, _, _ in array] == list(range(48))
    np.testing.assert_allclose([p for _, p, _ in array], [p for _, p, _ in rows], atol=1e-5)
    for kind in ("gztar", "zip"):
        archive = shutil.make_archive(tmp_path / "packed", kind, folder)
        packed = {name: p for name, p, _ in predict_images(model, archive, "cpu", batch_size=7)}
        np.testing.assert_allclose([packed[r[0]] for r in rows], [r[1] for r in rows], atol=1e-5)
    ((name, one, _),) = predict_images(model, folder / "03.png", "cpu")
    assert name == "03.png" and abs(one - rows[3][1]) < 1e-5


# The command


def test_command_writes_csv_and_goes_on_after_bad_files(saved, tmp_path, capsys):
    folder = write_faces(tmp_path / "new", FACES[:5])
    (folder / "sub").mkdir()
    (folder / "sub" / "empty.jpg").write_bytes(b"")
    (folder / "cut.png").write_bytes((folder / "00.png").read_bytes()[:300])
    (folder / "out.png").symlink_to(saved / "model.json")
    (folder / "notes.txt").write_text("no image")
    assert main(["predict", str(saved), str(folder), "--device", "cpu"]) == 3
    printed = capsys.readouterr()
    table = pd.read_csv(io.StringIO(printed.out)).set_index("path")
    good = table.loc[[f"{i:02d}.png" for i in range(5)]]
    expected = load_model(saved).predict(FACES[:5], "cpu")
    np.testing.assert_allclose(good["probability"], expected, atol=1e-5)
    bad = table.drop(good.index)
    assert bad["probability"].isna().all() and good["reason"].isna().all()
    assert bad["reason"]["sub/empty.jpg"] == "empty"
    assert bad["reason"]["out.png"] == "a link that leads out" and bad["reason"]["cut.png"]
    assert "5 of 8 images predicted." in printed.err


def test_an_archive_that_breaks_off_leaves_no_half_written_file(saved, tmp_path, capsys):
    """A file of predictions is there as a whole, or not at all."""
    archive = shutil.make_archive(tmp_path / "x", "tar", write_faces(tmp_path / "new"))
    archive = Path(archive)
    content = archive.read_bytes()
    out, options = tmp_path / "p.csv", ["--device", "cpu", "--batch-size", "4"]
    listed = list_files(archive)
    with pytest.MonkeyPatch.context() as patch:  # whole when it was listed, cut when it is read
        patch.setattr("probnb.images.predict.list_files", lambda path: listed)
        archive.write_bytes(content[: len(content) // 2 + 100])
        assert main(["predict", str(saved), str(archive), "-o", str(out), *options]) == 1
    assert "cannot be read as an archive" in capsys.readouterr().err
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("p.csv")]


def test_command_writes_to_a_file_and_says_what_is_wrong(saved, tmp_path, capsys):
    folder, out = write_faces(tmp_path / "new", FACES[:3]), tmp_path / "p.csv"
    options = ["--output", str(out), "--device", "cpu", "--batch-size", "2"]
    assert main(["predict", str(saved), str(folder), *options]) == 0
    assert len(pd.read_csv(out)) == 3
    np.save(tmp_path / "none.npy", np.zeros((0, 16, 16, 3), np.uint8))
    cases = {
        (str(saved), str(tmp_path / "none.npy")): "none.npy' holds no rows",
        (str(tmp_path / "no"), str(folder)): "model must be a folder with a model.json",
        (str(saved), str(tmp_path / "no")): "images must be an existing file or folder",
        (str(saved), str(saved)): "holds no JPEG, PNG",
    }
    for arguments, message in cases.items():
        assert main(["predict", *arguments]) == 1
        printed = capsys.readouterr()
        assert message in printed.err and not printed.out
    for arguments in (["predict", str(saved)], ["predict", "a", "b", "--batch-size", "0"], []):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)


def test_an_output_that_cannot_be_is_refused_before_the_first_image(saved, tmp_path, capsys):
    folder = write_faces(tmp_path / "new", FACES[:3])
    (tmp_path / "results").mkdir()
    for output in (tmp_path / "results", saved, saved / "model.json" / "x.csv"):
        assert main(["predict", str(saved), str(folder), "-o", str(output)]) == 1
        said = capsys.readouterr()
        assert "output must be a file" in said.err and "image" not in said.err
    assert not list(tmp_path.glob("*.json")) and not list((tmp_path / "results").iterdir())


def test_help_explains(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["predict", "--help"])
    said = capsys.readouterr().out
    for words in ("model.json", "CSV", "examples:", "exit status", "--device"):
        assert words in said


def test_crossing_is_where_the_kept_probability_reaches_a_threshold():
    spec = network("mlp", hidden=(4,))
    members = tuple(spec.build(torch.zeros(2, 3)).state_dict() for _ in range(2))
    model = KeptModel(spec, members, channels=3)
    assert model.crossing(0.75) == pytest.approx(np.log(3))
    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    data = ProbabilityData(x, (x[:, 0] > 0).float())
    fitted = model.calibrated(VennAbers(), data)
    at, p = fitted.crossing(0.5), fitted.predict(x, "cpu")
    odds = np.diff(map_input(fitted.logits(x, "cpu")), axis=1)[:, 0]
    np.testing.assert_array_equal(p >= 0.5, odds >= at)


def test_a_rename_that_fails_leaves_the_old_model(model, tmp_path, monkeypatch):
    folder = save_model(tmp_path / "m", model)
    before, replaced = {p.name: p.read_bytes() for p in folder.iterdir()}, os.replace
    names = set()

    def fail(source, target):
        if Path(source).name == "new" and Path(target).name == "m":
            names.add(Path(source).parent.name)
            raise OSError(5, "Input/output error")
        replaced(source, target)

    monkeypatch.setattr(os, "replace", fail)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            save_model(folder, model)
    assert len(names) == 2  # two writers share no folder
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert [*tmp_path.iterdir()] == [folder]  # no lock either


RUN = {
    "source": "images sha256=ab table=cd seed=0",
    "settings": {"size": 24, "width": 8},
    "seed": 0,
}
RUN |= {"methods": ["ce", "platt"], "method": "platt", "digest": "12", "mirror": False}
OTHERS = {
    "other images": {"source": "images sha256=ef table=cd seed=0"},
    "another column of outcomes": {"source": "images sha256=ab table=gh seed=0"},
    "the other label is positive": {"digest": "34"},
    "another seed": {"seed": 1},
    "another setting": {"settings": {"size": 32, "width": 8}},
    "another row": {"method": "ce"},
    "more rows": {"methods": ["ce", "platt", "beta"]},
    "no record": {k: None for k in RUN},
    "a calibrator for new data": {"calibrated": "56"},
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_model_takes_no_other_ones_place(what, model, tmp_path):
    """Named by file names up to a point, two of two years, seeds or columns took one folder."""
    first, other = (replace(model, record=RUN | more) for more in ({}, OTHERS[what]))
    folder = save_model(tmp_path / "m", first)
    assert save_model(folder, first) == folder  # the same again
    for one, two in ((first, other), (other, first)):
        own = save_model(tmp_path / "of its own", one)
        words = "model_dir must be empty or hold the same model.*of its own holds a model with oth"
        with pytest.raises(ValueError, match=words):
            save_model(own, two)
        assert load_model(own).record == one.record
        with pytest.warns(UserWarning, match="of its own holds a model with other .*: it stays"):
            beside = save_model(own, two, beside=True)
            assert save_model(own, two, beside=True) == beside  # and again there
        assert load_model(own).record == one.record and load_model(beside).record == two.record
        shutil.rmtree(own)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_both_identities_are_told_before_anything_is_trained(model, tmp_path):
    folder = save_model(tmp_path / "m", replace(model, record=RUN))
    known = {k: RUN[k] for k in ("source", "settings", "seed")}  # before a training
    assert check_model_folder(folder, known) == check_model_folder(folder) == folder
    asked = known | {"seed": 3, "source": "images sha256=ab table=gh seed=3"}
    asked["settings"] = {"size": 24, "width": 16}
    words = [
        r"source \(table=cd seed=0; here table=gh seed=3\)",
        r"settings \({'width': 8}; here {'width': 16}\)",
        r"seed \(0; here 3\)",
        "Remove it if it is no longer wanted, or name another folder",
    ]
    for word in words:
        with pytest.raises(ValueError, match=word):
            check_model_folder(folder, asked)
    (folder / "model.json").write_text("{}")
    with pytest.raises(ValueError, match="cannot be read"):
        save_model(folder, replace(model, record=RUN))
    assert (folder / "model.json").read_text() == "{}"


def test_a_model_alone_is_its_weights_and_its_calibrator(model, tmp_path):
    folder, faces = save_model(tmp_path / "m", model), ProbabilityData(FACES, Y)
    torch.manual_seed(1)
    others = (
        replace(model, members=(model.network.build(FACES).state_dict(),)),
        replace(model, calibrator=None),
        replace(model, aspect="pad"),
        model.calibrated(PlattScaling(), faces),
        replace(model, members=2 * model.members),
    )
    for other in others[:3] + others[4:]:
        with pytest.raises(ValueError, match="other source"):
            save_model(folder, other)
    assert save_model(folder, others[3]) == folder  # fitted to the same


def write_at_once(folder, record, seed, ready):
    spec = network("mlp", hidden=(4,))
    torch.manual_seed(seed)
    model = KeptModel(spec, (spec.build(torch.zeros(2, 3)).state_dict(),), 3, record=record)
    ready.wait()
    return [str(save_model(folder, model, beside=True)) for _ in range(10)]


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_two_writers_at_once_lose_nothing(same, tmp_path):
    """Between two renames another's folder appeared: an error after all training."""
    ready, folder = threading.Barrier(4), tmp_path / "m"
    records = [RUN | {"seed": 0 if same else seed} for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(write_at_once, folder, r, i, ready) for i, r in enumerate(records)]
        places = [{*call.result()} for call in calls]
    assert all(len(place) == 1 for place in places)
    assert len(set.union(*places)) == (1 if same else 4)
    for place, record in zip(places, records):
        assert load_model(*place).record == record
    assert {str(path) for path in tmp_path.iterdir()} == set.union(*places)


def test_another_base_rate(saved, tmp_path, capsys):
    folder = write_faces(tmp_path / "new")
    asked = ["predict", str(saved), str(folder), "--device", "cpu", "--quiet"]

    def predicted(*more):
        assert main([*asked, *more]) == 0
        printed = capsys.readouterr()
        return pd.read_csv(io.StringIO(printed.out))["probability"].to_numpy(), printed.err

    p, old = predicted()[0], float(Y.mean())
    found, told = predicted("--rate", "0.03")
    one, zero = p * 0.03 / old, (1 - p) * 0.97 / (1 - old)  # p may be 1 on some processor
    np.testing.assert_allclose(found, one / (one + zero), rtol=1e-6)
    assert f"Base rate: 0.03 in place of {old:.4g}." in told
    for rate, words in {
        "0": "must be a finite number in (0, 1); got 0.0",
        "1": "must be a finite number in (0, 1); got 1.0",
        "3%": "rate (or the word estimate) must be a finite number in (0, 1); got '3%'",
        "-1": "got -1.0", "nan": "got nan",
    }.items():  # fmt: skip
        assert main([*asked, "--rate", rate]) == 1
        printed = capsys.readouterr()
        assert words in printed.err and not printed.out


def test_a_rate_is_estimated_from_enough_images_by_a_model_that_says_its_own(model):
    p = np.r_[np.full(70, 0.2), np.full(30, 0.8)]
    rows = [{"path": str(k), "probability": x, "unlike_training": 1} for k, x in enumerate(p)]
    rows += [{"path": "cut.png", "probability": None, "reason": "cut"}]
    there = replace(model, record={"rate": 0.5})
    found, text, moved = at_base_rate(there, rows, "estimate")
    assert moved and text.startswith("Base rate: 0.1667 [0.0") and text.endswith("in place of 0.5.")
    first, *_, last = found
    assert last == rows[-1]
    assert first == rows[0] | {"probability": pytest.approx(0.2 / (0.2 + 0.8 * 5))}
    with pytest.raises(ValueError, match="does not say"):
        at_base_rate(replace(model, record={}), rows, "estimate")


@pytest.mark.parametrize(
    ("p", "why"),
    [
        ([0.2] * 49, "must be estimated from 50 rows at least; got 49"),
        ([None] * 60, "must be estimated from 50 rows at least; got 0"),
        ([0.2] * 70, "must differ between rows"),
        ([0.02] * 70 + [0.08] * 30, "rate must be in (0, 1); that of 100 new rows seems 0"),
        ([0.97] * 70 + [0.9] * 30, "rate must be in (0, 1); that of 100 new rows seems 1"),
    ],
    ids=["few", "unread", "alike", "none", "all"],
)
def test_predictions_of_which_no_rate_can_be_told_are_kept_as_they_are(model, p, why):
    """It was refused when all had been predicted, and nothing was written."""
    rows = [{"path": str(k), "probability": x, "reason": None} for k, x in enumerate(p)]
    found, text, moved = at_base_rate(replace(model, record={"rate": 0.5}), iter(rows), "estimate")
    assert not moved and list(found) == rows
    assert text.startswith("Base rate: 0.5 as it was; ") and why in text


def test_no_rate_is_estimated_from_a_few_images_and_none_is_lost_where_it_fails(
    saved, tmp_path, capsys, monkeypatch
):
    asked = ["predict", str(saved), str(write_faces(tmp_path / "new")), "--rate", "estimate"]
    asked += ["--quiet", "--output", str(tmp_path / "there.csv")]
    assert main(asked) == 1
    assert "50 images at least" in capsys.readouterr().err and not (tmp_path / "there.csv").exists()
    monkeypatch.setattr("probnb.report.keep.FEWEST", 1)
    monkeypatch.setattr("probnb.report.keep.estimate_rate", lambda p, old: 0.0)
    assert main(asked) == 3
    assert "seems 0" in capsys.readouterr().err
    assert pd.read_csv(tmp_path / "there.csv")["probability"].notna().any()
