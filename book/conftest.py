"""Pages are notebooks; their Python twins are no modules, and run nowhere else."""

from pathlib import Path

collect_ignore = [path.name for path in Path(__file__).parent.glob("*.py")]


def pytest_configure(config):
    """Give nbval's kernels, as the book's, more than a minute to start on a busy machine."""
    config.option.nbval_kernel_startup_timeout = 600
