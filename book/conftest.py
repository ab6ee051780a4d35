"""Pages are notebooks; their Python twins are no modules, and run nowhere else."""

from pathlib import Path

collect_ignore = [path.name for path in Path(__file__).parent.glob("*.py")]
