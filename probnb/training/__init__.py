"""Training: one loop for every method, its batches, losses, targets and networks.

`probnb.training.loop` has the loop, `probnb.training.cape` what the paper adds to it.
"""
