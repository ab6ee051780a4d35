import numpy as np

from probnb.metrics.resampling import bootstrap
from probnb_book.evidence import comparison_table

RNG = np.random.default_rng(0)
P = RNG.random(600)
Y = (RNG.random(600) < P).astype(float)


def noisy(scale, seed):
    return np.clip(P + np.random.default_rng(seed).normal(0, scale, 600), 0.001, 0.999)


PREDICTIONS = {
    "resampled": noisy(0.02, 1),
    "ce_overfit": noisy(0.4, 2),
    "ce": noisy(0.15, 3),
    "platt": noisy(0.15, 4),
    "ce_finetuned": noisy(0.1, 5),
    "cape_bin": noisy(0.05, 6),
    "cape_kernel": noisy(0.1, 7),
}
RESULT = bootstrap(Y, PREDICTIONS, P, replicates=200, progress=False)


def test_table_puts_the_papers_numbers_beside_ours():
    table = comparison_table(RESULT, "linear").replace("\N{NO-BREAK SPACE}", " ", regex=True)
    assert table.loc["CE early-stop", ("MSE_p", "paper")] == "4.21 ± 0.15"
    assert table.loc["CE overfit", ("MSE_p", "paper")] == "–"
    ours = 100 * np.mean((PREDICTIONS["ce"] - P) ** 2)
    assert table.loc["CE early-stop", ("MSE_p", "ours")].startswith(f"{ours:.2f} ± ")
    assert ("AUC", "paper") not in table.columns  # the paper has none for this scenario
    skewed = comparison_table(bootstrap(Y, {"focal": P}, P, replicates=5, progress=False), "skewed")
    assert (
        skewed.loc["Focal loss", ("KL_p", "paper")]
        == "1.63\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.66*"
    )
