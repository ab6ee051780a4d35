import numpy as np
import pandas as pd
import pytest
import torch

from probnb.data.ferplus import EMOTIONS, QUESTIONS, load_ferplus, read_ferplus, shrink

ROWS = 40


@pytest.fixture
def made():
    """Forty images with ten votes each, as the arrays of the file."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (ROWS, 48, 48), np.uint8)
    votes = rng.multinomial(10, [0.3, 0.3, 0.1, 0.1, 0.05, 0.05, 0.02, 0.02, 0.06], ROWS)
    return images, votes.astype(np.uint8), np.repeat([0, 1, 2], [24, 8, 8]).astype(np.uint8)


@pytest.fixture
def file(made, tmp_path):
    path = tmp_path / "ferplus.npz"
    np.savez(path, **dict(zip(("images", "votes", "split"), made)))
    return path


def write_csv(folder, images, votes, split):
    usage = np.array(["Training", "PublicTest", "PrivateTest"])[split]
    pixels = [" ".join(map(str, image.ravel())) for image in images]
    pd.DataFrame({"emotion": 0, "pixels": pixels, "Usage": usage}).to_csv(
        folder / "fer2013.csv", index=False
    )
    table = pd.DataFrame(votes, columns=EMOTIONS)
    table.insert(0, "Usage", usage)
    table.assign(NF=0).to_csv(folder / "fer2013new.csv", index=False)


def test_the_published_csv_files_and_the_arrays_are_the_same_data(made, file, tmp_path):
    folder = tmp_path / "csv"
    folder.mkdir()
    write_csv(folder, *made)
    ours, theirs = read_ferplus(file), read_ferplus(folder)
    assert all(np.array_equal(a, b) for a, b in zip(ours[:3], theirs[:3]))
    assert ours[3] == theirs[3]


def test_copies_and_images_that_are_no_face_are_left_out(made, tmp_path):
    images, votes, split = made
    images[30] = images[3]
    write_csv(tmp_path, images, votes, split)
    table = pd.read_csv(tmp_path / "fer2013new.csv")
    table.loc[5, "NF"] = 2
    table.loc[6, list(EMOTIONS)] = 0
    table.to_csv(tmp_path / "fer2013new.csv", index=False)
    kept = read_ferplus(tmp_path)[0]
    left = [i for i in range(ROWS) if i not in (5, 6, 30)]
    assert np.array_equal(kept, images[left])


@pytest.mark.parametrize("question", ["neutral", "negative"])
def test_outcome_and_other_votes_answer_the_question(made, file, question):
    _, votes, split = made
    data = load_ferplus(question, file, seed=4)
    yes = votes[:, [EMOTIONS.index(name) for name in QUESTIONS[question]]].sum(1)
    for i, part in enumerate(data.splits.parts().values()):
        assert np.array_equal(part.ids, np.flatnonzero(split == i))
        total = part.outcomes.numpy() + data.votes.loc[part.ids, "k"]
        assert np.array_equal(total, yes[part.ids])
    assert (data.votes["n"] == 9).all()
    assert data.splits.train.augment and not data.splits.test.augment


def test_other_seeds_draw_other_votes_and_other_training_images_but_the_same_test(file):
    first, second = (load_ferplus("neutral", file, n=8, seed=seed) for seed in (0, 1))
    assert np.array_equal(first.splits.test.ids, second.splits.test.ids)
    assert not np.array_equal(first.splits.train.ids, second.splits.train.ids)
    assert not first.votes["k"].equals(second.votes["k"])
    assert first.splits.source != second.splits.source


def test_shrinking_takes_the_rounded_mean_of_blocks(made):
    images = made[0]
    small = shrink(images, 24)
    assert small.shape == (ROWS, 1, 24, 24) and small.dtype == torch.uint8
    block = images[7, 10:12, 4:6].astype(float)
    assert abs(int(small[7, 0, 5, 2]) - block.mean()) <= 0.5
    assert torch.equal(shrink(images, 48)[:, 0], torch.from_numpy(images))
    white = np.full((1, 48, 48), 255, np.uint8)
    assert (shrink(white, 12) == 255).all()


def test_what_is_not_ferplus_is_refused(made, file, tmp_path):
    with pytest.raises(ValueError, match=r"question must be one of neutral.*'happy'"):
        load_ferplus("happy", file)
    with pytest.raises(ValueError, match="size must be 48, 24, 16 or 12; got 32"):
        load_ferplus("neutral", file, size=32)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_ferplus(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"fer2013\.csv"):
        read_ferplus(tmp_path / "empty")
    images, votes, split = made
    for name, arrays in {
        "short": {"images": images[:5], "votes": votes, "split": split},
        "missing": {"images": images, "votes": votes},
        "split": {"images": images, "votes": votes, "split": split + 3},
        "pickled": {"images": images, "votes": votes.astype(object), "split": split},
    }.items():
        np.savez(tmp_path / f"{name}.npz", **arrays)
        with pytest.raises(ValueError, match=r"data_dir must be an \.npz of images"):
            read_ferplus(tmp_path / f"{name}.npz")
    (tmp_path / "cut.npz").write_bytes(file.read_bytes()[:2000])
    with pytest.raises(ValueError, match=r"data_dir must be an \.npz"):
        read_ferplus(tmp_path / "cut.npz")


def test_votes_of_other_rows_and_files_of_other_kinds_are_refused_by_name(made, tmp_path):
    write_csv(tmp_path, *made)
    votes = pd.read_csv(tmp_path / "fer2013new.csv")
    votes.sample(frac=1, random_state=0).to_csv(tmp_path / "fer2013new.csv", index=False)
    with pytest.raises(ValueError, match="the same images row by row, as their columns Usage"):
        read_ferplus(tmp_path)
    (tmp_path / "fer2013.csv").write_text("emotion,pixels,Usage\n0,1 2,Training\n0,1,Training,4\n")
    with pytest.raises(ValueError, match=r"data_dir: fer2013\.csv cannot be read: "):
        read_ferplus(tmp_path)


def test_real_ferplus_has_the_published_counts(data_dir):
    path = data_dir / "ferplus.npz"
    if not path.exists():
        pytest.skip(f"no FER+ at {path}")
    _, votes, split, _ = read_ferplus(path)
    assert np.bincount(split).tolist() == [27_224, 3_275, 3_196]
    share = votes[:, 0] / votes.sum(1)
    assert abs(share.mean() - 0.31) < 0.005
    assert abs(((share >= 0.1) & (share <= 0.9)).mean() - 0.59) < 0.01
