"""What a training costs: the images that it sees, in trainings of plain cross entropy."""

from probnb.experiment.plan import lineage
from probnb.training.targets import left_out


def passes(job, fit, splits, patience, last=False):
    """Return how many images a training has to see, once forward and once back.

    Parameters
    ----------
    job : Job
        The training.
    fit : Fit
        Its result.
    splits : probnb.data.Splits
        Its data.
    patience : int
        After how many epochs without improvement one stops who needs no figure of what comes then:
        a plateau without an end, of which the kept epoch is read, is charged so many more.
    last : bool, default=False
        Whether the last epoch is read.

    Returns
    -------
    int
        Epochs times training rows; twice that with an adversarial step.
    """
    epochs, recipe = len(fit.history) - 1, job.recipe
    endless = recipe.patience is None and recipe.schedule == "plateau"
    if endless and recipe.solver == "sgd" and not last:
        epochs = min(epochs, fit.best_epoch + patience)
    rows = len(splits.train)
    if job.fold is not None:
        rows -= len(left_out(splits, job.fold))
    return epochs * rows * (2 if recipe.adversarial else 1)


def cost_of(candidates, fits, splits, patience, unit, last=False):
    """Return the cost of a row: all its candidates, and everything that they rest on.

    Parameters
    ----------
    candidates : list of Job
        The row's, from `probnb.experiment.plan.plan`.
    fits : dict of Job to Fit
        Of all of `probnb.experiment.plan.lineage`.
    splits : probnb.data.Splits
        The data.
    patience : int
        See `passes`.
    unit : int
        The passes of one cross-entropy training.
    last : bool, default=False
        Whether the row reads the last epoch.

    Returns
    -------
    float
        In units of that training; a training that two candidates share counts once.
    """
    steps = dict.fromkeys(step for job in candidates for step in lineage(job))
    seen = (passes(one, fits[one], splits, patience, last and one in candidates) for one in steps)
    return sum(seen) / unit
