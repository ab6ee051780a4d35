"""The contact sheet, read back from the drawn image."""

import matplotlib

matplotlib.use("Agg")
import numpy as np

from probnb.plots.style import face_grid


def test_contact_sheet():
    images = np.random.default_rng(0).integers(0, 256, (10, 3, 16, 16), dtype=np.uint8)
    ages = np.arange(20, 30)
    ax = face_grid(images, ages, columns=4)
    sheet = ax.images[0].get_array()
    assert sheet.shape == (1 + 3 * 17, 1 + 4 * 17, 3)
    np.testing.assert_array_equal(sheet[1:17, 1:17], images[0].transpose(1, 2, 0))
    np.testing.assert_array_equal(sheet[18:34, 18:34], images[5].transpose(1, 2, 0))
    assert (sheet[35:, 35:] == 255).all()  # two places stay empty
    assert [text.get_text() for text in ax.texts] == [str(age) for age in ages]
