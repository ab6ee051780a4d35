"""A comparison of methods in one call: train, choose on validation data, judge on test data, keep.

Each step is a function of its own, for those who want to look in between: `plan`, `run_jobs` and
`collect` in `probnb.experiment`, `make_report`, `choose_model` and `save_model`.
"""

from dataclasses import dataclass
from functools import cached_property

from .data import Splits
from .experiment.plan import plan
from .experiment.profiles import Profile, make_profile
from .experiment.results import Results, collect, on_test
from .experiment.run import run_jobs
from .images.choose import choose_model, keep_models
from .images.model import save_model
from .methods import check_methods
from .report import check_table, make_report
from .training.models import network as network_of
from .validation import check_choice


def compare(
    splits,
    methods="ce platt cape_bin",
    profile="quick",
    seed=0,
    directory="runs/fits",
    network=None,
    device="auto",
    **how,
):
    """Train some methods on your data and compare them.

    Parameters
    ----------
    splits : probnb.data.Splits
        Training, validation and test data.
    methods : str or iterable of str, default="ce platt cape_bin"
        Names in `probnb.methods.METHODS`; "ce", with which all are compared, is always among them.
    profile : str or Profile, default="quick"
        Sizes and grids, see `probnb.experiment.profiles.make_profile`.
    seed : int, default=0
        Of weights, order and resampled labels.
    directory : path-like, default="runs/fits"
        Where finished trainings are kept; what is there is not trained again.
    network : Network, optional
        From `probnb.training.models.network`; by default the profile's for images, and layers of
        rectified units for tables.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where to compute.
    **how
        As `probnb.experiment.run.run_jobs` takes it: ``workers``, ``devices``, ``retrain``,
        ``progress``.

    Returns
    -------
    Comparison
        What came of it.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from probnb.data import ProbabilityData, Splits
    >>> x = np.random.default_rng(0).normal(size=(300, 3)).astype("float32")
    >>> rows = ProbabilityData(x, (x[:, 0] > 0).astype(int))
    >>> parts = [rows.take(np.arange(i, 300, 3)) for i in range(3)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = compare(Splits(*parts, "drawn"), "ce", "smoke", directory=folder)
    >>> list(found.predictions)
    ['split', 'id', 'y', 'ce']
    """
    if not isinstance(splits, Splits):
        raise TypeError(f"splits must be probnb.data.Splits; got {type(splits).__name__}.")
    profile = profile if isinstance(profile, Profile) else make_profile(profile)
    if profile.frozen and len(splits.train.inputs.shape) > 2:
        raise ValueError(
            "splits must be features for a profile with a backbone, as "
            "probnb.pretrained.features.features_of(splits, profile, ...) makes them of images."
        )
    for name, part in [*splits.parts().items()][:2]:
        counted = part.outcomes if part.weights is None else part.outcomes[part.weights > 0]
        if (counted == counted[0]).all():  # nothing to learn, or no map to fit after training
            raise ValueError(f"{name} must hold both outcomes; all {len(counted):,} are alike.")
    methods = check_methods(methods, splits.known, profile.frozen)
    if network is None and len(splits.train.inputs.shape) == 2 and profile.backbone == "none":
        network = network_of("mlp")
    jobs = plan(methods, profile, seed, network)
    fits = run_jobs(jobs, splits, directory, device=device, **how)
    return Comparison(splits, jobs, fits, collect(jobs, fits, splits), device)


@dataclass(frozen=True)
class Comparison:
    """Methods trained on one data set; made by `compare`.

    Attributes
    ----------
    splits : probnb.data.Splits
        The data.
    jobs, fits : dict
        The trainings of each method, and what each gave.
    results : probnb.experiment.results.Results
        Predictions of validation and test rows, what was chosen, and every epoch.
    device : str
        Where it was computed.
    """

    splits: Splits
    jobs: dict
    fits: dict
    results: Results
    device: str

    @property
    def predictions(self):
        """The test rows: outcomes, what else is known of them, a column for each method."""
        return on_test(self.results.predictions)

    @cached_property
    def models(self):
        """The `probnb.images.choose.Kept` of each method whose weights are kept."""
        return keep_models(self.jobs, self.fits, self.splits, self.results, device=self.device)

    def choose(self, seed=0):
        """Say which method validation data favour: as `probnb.images.choose.choose_model`."""
        return choose_model(self.models, self.splits.val, seed)

    def report(self, **settings):
        """Judge the predictions of the test rows: as `probnb.report.make_report`."""
        return make_report(check_table(self.predictions, [*self.jobs]), **settings)

    def save(self, folder, method=None):
        """Keep the model of a method, by default of the chosen one; return its name."""
        if method is None:
            choice = self.choose()
            method = choice.index[choice["chosen"]][0]
        model = self.models[check_choice(method, self.models, "method")].model
        save_model(folder, model.summarized(self.splits, self.device))
        return method
