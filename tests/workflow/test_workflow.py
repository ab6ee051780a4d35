"""The workflow's dry runs: what would be run, for every profile; and, on request, a real one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .interrupted import compare, run_and_kill

ROOT = Path(__file__).resolve().parents[2]
PLACES = [str(ROOT / ".venv" / "workflow" / "bin"), os.environ["PATH"]]
SNAKEMAKE = shutil.which("snakemake", path=os.pathsep.join(PLACES))
pytestmark = pytest.mark.skipif(SNAKEMAKE is None, reason="no Snakemake: make workflow")


def dry_run(tmp_path, *arguments, config=(), results_dir=None):
    given = [f"results_dir={results_dir or tmp_path / 'runs'}", *config]
    return subprocess.run(
        [SNAKEMAKE, "-n", "-p", *arguments, "--config", *given],
        cwd=ROOT,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )


def test_default_is_five_scenarios_on_drawn_faces(tmp_path):
    done = dry_run(tmp_path, "-c2")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("linear", "sigmoid", "centered", "skewed", "discrete"):
        assert f"notebooks/synthetic-{name}-drawn-quick-seed0.ipynb" in done.stdout
        assert f"-p scenario {name} -p profile quick" in done.stdout
    assert "LOKY_MAX_CPU_COUNT=1" in done.stdout


def test_what_is_there_is_not_run_again(tmp_path):
    there = tmp_path / "runs" / "notebooks" / "synthetic-linear-utkface-cpu-seed1.ipynb"
    there.parent.mkdir(parents=True)
    there.write_text("{}")
    config = ["scenarios=[linear]", "profile=cpu", "seeds=[1,2]", "data_dir=some folder"]
    done = dry_run(tmp_path, "-c2", "--rerun-triggers", "mtime", config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "linear-utkface-cpu-seed2.ipynb" in done.stdout
    assert "linear-utkface-cpu-seed1.ipynb\n" not in done.stdout.split("rule all")[0]
    assert "-p data_dir 'some folder'" in done.stdout


def test_misspelt_setting_stops(tmp_path):
    done = dry_run(tmp_path, "-c1", config=["scenario=linear"])
    assert done.returncode != 0
    assert "got 'scenario'" in done.stdout + done.stderr


def test_images_of_ones_own(tmp_path):
    """Each entry holds the notebook's parameters; every seed keeps a model of its own."""
    mine = "images=[{images: some/my pets.zip, outcomes: pets.csv, positive: dog}, {}]"
    config = ["scenarios=[]", "seeds=[0,1]", mine]
    done = dry_run(tmp_path, "-c2", config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("my pets-images", "example-drawn"):
        for seed in (0, 1):
            assert f"notebooks/images-{name}-quick-seed{seed}.ipynb" in done.stdout
    assert "-p images 'some/my pets.zip' -p outcomes pets.csv -p positive dog" in done.stdout
    assert "images/my pets-model-seed1'" in done.stdout
    done = dry_run(tmp_path, "-c2", config=["images=[{images: a/pets}, {images: b/pets.zip}]"])
    assert done.returncode != 0
    assert "each run once; images pets images is there twice" in done.stdout + done.stderr


def test_studies_of_the_chapter_on_ablations(tmp_path):
    """One run for each scenario and seed; what is there is left alone."""
    there = tmp_path / "runs" / "notebooks" / "ablations-linear-utkface-cpu-seed0.ipynb"
    there.parent.mkdir(parents=True)
    there.write_text("{}")
    studies = "ablations={linear: [beginning, losses], discrete: [beginning]}"
    config = ["scenarios=[]", "profile=cpu", "seeds=[0,1]", "data_dir=faces", studies]
    done = dry_run(tmp_path, "-c2", "--rerun-triggers", "mtime", config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("linear-utkface-cpu-seed1", "discrete-utkface-cpu-seed0"):
        assert f"ablations-{name}.ipynb" in done.stdout
    assert "linear-utkface-cpu-seed0.ipynb\n" not in done.stdout.split("rule all")[0]
    given = "-p scenario linear -p studies 'beginning, losses' -p data_dir faces -p profile cpu"
    assert given in done.stdout


@pytest.mark.parametrize("name", ["local", "slurm"])
def test_profile(name, tmp_path):
    done = dry_run(tmp_path, "--workflow-profile", f"workflow/profiles/{name}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"LOKY_MAX_CPU_COUNT={1 if name == 'local' else 4}" in done.stdout


def test_kubernetes(tmp_path):
    """A volume instead of a shared file system: this folder, as if it were mounted here."""
    profile = ["--workflow-profile", "workflow/profiles/kubernetes"]
    profile += ["--default-storage-prefix", str(ROOT)]
    done = dry_run(tmp_path, *profile, results_dir="nothing there")
    assert done.returncode == 0, done.stdout + done.stderr
    made = f"{ROOT}/nothing there/notebooks/synthetic-linear-drawn-quick-seed0.ipynb"
    assert "LOKY_MAX_CPU_COUNT=4" in done.stdout
    assert f"-p results_dir '{ROOT}/nothing there'" in done.stdout
    assert f"{made} (send to storage)" in done.stdout
    done = dry_run(tmp_path, *profile)
    assert done.returncode != 0 and "a results_dir below" in done.stdout + done.stderr


NIGHTLY = pytest.mark.skipif("PROBNB_KILLS" not in os.environ, reason="minutes: make nightly")
EVERY_TASK = [
    "scenarios=[linear]",
    "real_world={weather: null, collision: null, cancer: null}",
    "cifar10={digits: [rule, judged]}",
    "images=[{}]",
    "ablations={linear: [beginning]}",
    "parameters={methods: 'ce, cape_bin'}",
]


@NIGHTLY
def test_every_task_from_an_empty_folder_to_the_built_book(tmp_path):
    """Killed twice on the way; each notebook that is awaited leaves its run."""
    runs = tmp_path / "runs"
    command = [SNAKEMAKE, "-c2", "--rerun-incomplete", "--nolock", "--config", "profile=smoke"]
    command += [f"python={sys.executable}", f"results_dir={runs}", *EVERY_TASK]
    run_and_kill(command, tmp_path / "log", kills=2, seed=0, within=60)
    made = sorted(path.name for path in (runs / "notebooks").glob("*seed0.ipynb"))
    assert len(made) == 8
    for chapter, tasks in {"synthetic": 1, "real_world": 3, "cifar10": 2, "images": 1}.items():
        assert len(list((runs / chapter).glob("*-seed0*/run.json"))) == tasks, chapter
    book = [Path(sys.executable).with_name("jupyter-book"), "build", "book/", "-W", "--all"]
    given = os.environ | {"PROBNB_SMOKE": "1"}
    done = subprocess.run([*book, "--path-output", tmp_path], cwd=ROOT, env=given)
    assert done.returncode == 0
    assert (tmp_path / "_build" / "html" / "synthetic.html").exists()


@NIGHTLY
def test_killed_at_random_moments_it_ends_the_same(tmp_path):
    config = ["profile=smoke", "scenarios=[linear,skewed]", f"python={sys.executable}"]
    command = [SNAKEMAKE, "-c2", "--rerun-incomplete", "--nolock", "--config", *config]
    command += ["parameters={methods: 'ce, cape_bin'}"]
    kills = {"whole": 0, "killed": int(os.environ["PROBNB_KILLS"])}
    for name, count in kills.items():
        (tmp_path / name).mkdir()
        given = [*command, f"results_dir={tmp_path / name}"]
        run_and_kill(given, tmp_path / f"{name}.log", count, seed=0, within=30)
    differences = compare(tmp_path / "killed", tmp_path / "whole")
    assert len(differences) == 2 and not any(differences.values()), differences
