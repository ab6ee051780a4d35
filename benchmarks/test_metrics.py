"""The bootstrap against a loop that repeats rows, and calibration errors of a million rows."""

import time

import numpy as np

from probnb.metrics import METRICS, bootstrap, ece, evaluate, ks_error, mce

N, METHODS, REPLICATES, LOOP = 2329, 13, 1000, 10


def rows(n, methods):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, n)
    y = (rng.random(n) < p).astype(int)
    noise = rng.normal(0, 0.1, (methods, n))
    return y, {f"m{k}": np.clip(p + e, 0.001, 0.999) for k, e in enumerate(noise)}, p


def literal_loop(y, predictions, p, replicates):
    """Repeat each row as often as it is drawn, and evaluate."""
    rng = np.random.default_rng(0)
    samples = []
    for _ in range(replicates):
        weights = np.bincount(rng.integers(len(y), size=len(y)), minlength=len(y))
        y_again, p_again = np.repeat(y, weights), np.repeat(p, weights)
        values = [
            evaluate(y_again, np.repeat(p_hat, weights), p_again) for p_hat in predictions.values()
        ]
        samples.append([[v[m] for m in METRICS] for v in values])
    return np.array(samples)


def test_bootstrap_against_a_literal_loop(benchmark):
    y, predictions, p = rows(N, METHODS)
    began = time.perf_counter()
    expected = literal_loop(y, predictions, p, LOOP)
    loop = (time.perf_counter() - began) * REPLICATES / LOOP
    options = dict(replicates=REPLICATES, progress=False)
    result = benchmark.pedantic(bootstrap, (y, predictions, p), options, rounds=3)
    ours = benchmark.stats.stats.min
    began = time.process_time()  # a busy machine makes no difference to this one
    bootstrap(y, predictions, p, **options)
    processor = time.process_time() - began
    error = np.abs(result.samples[:LOOP] - expected).max()
    benchmark.extra_info |= {
        "seconds": round(ours, 2),
        "processor, seconds": round(processor, 2),
        "loop, seconds": round(loop, 1),
        "times faster": round(loop / ours, 1),
        "largest difference": float(error),
    }
    print(f"\n{benchmark.extra_info}")
    assert error < 1e-12


def test_calibration_errors_of_a_million_rows(benchmark):
    y, predictions, _ = rows(1_000_000, 1)
    p_hat = predictions["m0"]
    benchmark(lambda: (ece(y, p_hat), mce(y, p_hat), ks_error(y, p_hat)))
