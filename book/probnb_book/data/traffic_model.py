"""Simulated traffic seen from a car, with the probability of a collision known.

Vehicles ahead, beside and oncoming approach, brake, drift and cut in at random; the driver of the
car reacts late or not at all. What a driver has begun to do is visible (brake lights, lateral
motion); what he is about to do is not decided yet, so that the outcome is random given everything
a camera could see. The probability of a collision within the look-ahead is the share of many
continuations of the same past that end in one.

The process is Markov in `World`. Distances are metres, speeds metres per second, times seconds;
positions are relative to the car, x to the right, the gap ahead of its bumper.
"""

from types import SimpleNamespace

import numpy as np

from probnb.validation import check_integer

STEP = 0.1
"""Seconds from one frame to the next."""
SCENE = 20
"""Frames of a scene."""
LOOK_AHEAD = 18
"""Frames within which a collision counts: 1.8 s."""

CRUISE, BRAKE, DRIFT, CUT_IN = range(4)
LENGTH, REACH = 4.5, 1.8  # of a vehicle; lateral distance of centres below which two touch
LANE = 3.2  # between centres of lanes
RUN_IN = 4  # steps before the first frame
HAZARD = {  # per second: from what a driver does to what he does next
    CRUISE: ((BRAKE, 0.5), (DRIFT, 0.8), (CUT_IN, 0.6)),
    BRAKE: ((CRUISE, 0.6),),
    DRIFT: ((CUT_IN, 1.5), (CRUISE, 1.0)),
    CUT_IN: (),
}
REACTION = ((2.0, 2.0), (5.0, 4.0))  # deceleration that is called for -> hazard that braking starts
BRAKES = 7.0  # deceleration of the car, once its driver brakes
BLOCK = 65_536  # vehicles that are continued at once: what fits a processor's cache


class World(SimpleNamespace):
    """Where everything is at one time, in n scenes of k vehicles each.

    Attributes
    ----------
    car, braking, crashed : ndarray of shape (n,)
        Speed of the car, whether its driver brakes, whether it has collided.
    gap, x, speed, drift : ndarray of shape (n, k)
        Distance ahead of the bumper, lateral position, speed along the vehicle's own way, lateral
        speed.
    way, lane, doing : ndarray of shape (n, k)
        1 for the car's own direction and -1 for oncoming; lateral position that the vehicle keeps
        to; what its driver does (0 cruise, 1 brake, 2 drift, 3 cut in).
    present : ndarray of shape (n, k)
        Whether there is such a vehicle.
    """

    def __len__(self):
        return len(self.car)

    def take(self, rows):
        """Return some scenes, as copies; `rows` may repeat."""
        return World(**{name: value[rows] for name, value in vars(self).items()})


def simulate(n, seed=0):
    """Let traffic run for the frames of a scene and the look-ahead after its last one.

    Parameters
    ----------
    n : int
        Number of scenes.
    seed : int or SeedSequence, default=0
        The same seed gives the same traffic.

    Returns
    -------
    worlds : list of World
        One per frame. A scene starts without a collision; nothing else is selected, so that each
        outcome is one draw from its probability.
    outcomes : ndarray of shape (frames, n, k)
        Whether the car collides with that vehicle within the look-ahead after that frame.

    Examples
    --------
    >>> worlds, outcomes = simulate(3, seed=0)
    >>> len(worlds), outcomes.shape
    (20, (20, 3, 4))
    """
    rng = np.random.default_rng(seed)
    world = _start(check_integer(n, "n"), rng)
    worlds, hits = [], []
    for _ in range(SCENE + LOOK_AHEAD):
        worlds.append(world)
        world = world.take(slice(None))
        hits.append(_advance(world, rng))
    hits = np.array(hits)  # hits[t]: between frame t and the next
    ahead = np.lib.stride_tricks.sliding_window_view(hits, LOOK_AHEAD, axis=0)
    return worlds[:SCENE], ahead[:SCENE].any(axis=-1)


def collision_probability(world, continuations=400, seed=0):
    r"""Probability that the car collides with each vehicle within the look-ahead.

    Parameters
    ----------
    world : World
        The past: n scenes of k vehicles at one time.
    continuations : int, default=400
        How many futures are drawn for each scene, all vehicles of a scene together.
    seed : int or SeedSequence, default=0
        The same seed gives the same numbers.

    Returns
    -------
    ndarray of shape (n, k)
        Share of the M continuations that end in a collision with that vehicle. Its Monte Carlo
        standard error is :math:`\sqrt{p(1-p)/M}`, at most 0.025 for 400; its square is what the
        simulation itself adds to a mean squared error.
    """
    m = check_integer(continuations, "continuations")
    n, k = world.gap.shape
    rng, counts = np.random.default_rng(seed), np.zeros((n, k), np.int64)
    per_block = max(BLOCK // (m * k), 1)
    for first in range(0, n, per_block):
        rows = np.arange(first, min(first + per_block, n))
        future = world.take(np.repeat(rows, m))
        hit = np.zeros(future.gap.shape, bool)
        for _ in range(LOOK_AHEAD):
            hit |= _advance(future, rng)
        counts[rows] = hit.reshape(len(rows), m, k).sum(axis=1)
    return counts / m


def _start(n, rng):
    """Traffic on a road of three lanes, the left one oncoming in some scenes, run in for a moment.

    Scenes that collide during the run-in are started anew, which conditions on the past alone.
    """
    u = rng.random((6, n, 4), np.float32)
    z = rng.standard_normal((n, 4), np.float32)
    oncoming = rng.random(n) < 0.35
    side = np.where(u[0] < 0.5, -1.0, 1.0)
    lane = LANE * np.concatenate([[[0.0, -1.0, 1.0]] * np.ones((n, 1)), side[:, 3:]], axis=1)
    way = np.where((lane < 0) & oncoming[:, None], -1.0, 1.0)
    car = (9 + 14 * u[5, :, 0]).astype(np.float32)
    closing = np.where(way > 0, 8 + 3 * z, car[:, None] + 8 + 10 * u[3])
    closing = np.where(way > 0, np.minimum(closing, car[:, None]), closing)  # nobody reverses
    contact = 0.8 + 2.6 * u[1]  # seconds until it would be reached
    near = np.maximum(np.abs(closing) * contact, 4)
    near[:, 3] += 10
    still = {"braking": np.zeros(n, bool), "crashed": np.zeros(n, bool)}
    still |= {"drift": np.zeros((n, 4), np.float32), "doing": np.zeros((n, 4), np.int8)}
    rest = {"gap": near, "x": lane + 0.5 * (u[2] - 0.5), "speed": np.abs(car[:, None] - closing)}
    rest = {k: v.astype(np.float32) for k, v in (rest | {"way": way, "lane": lane}).items()}
    world = World(car=car, present=u[4] < [0.85, 0.7, 0.6, 0.6], **still, **rest)
    for _ in range(RUN_IN):
        _advance(world, rng)
    rows = np.flatnonzero(world.crashed)
    if len(rows):
        fresh = _start(len(rows), rng)
        for name, value in vars(fresh).items():
            getattr(world, name)[rows] = value
    return world


def _advance(w, rng):
    """Move a world on by one step, in place; return which vehicles the car hits in it."""
    u = rng.random((2, *w.gap.shape), np.float32)
    _decide(w, u[0])
    _brake(w, rng.random(len(w), np.float32))
    # up to 8 m/s2 while braking, else an unsteady foot; nobody drives backwards
    change = np.where(w.doing == BRAKE, -3 - 5 * u[1], 2 * u[1] - 1)
    w.speed = np.maximum(w.speed + STEP * change, 0)
    w.car = np.maximum(w.car - STEP * BRAKES * w.braking, 0)
    wanted = np.clip(0.8 * (w.lane - w.x), -1.0, 1.0)  # back to the lane
    inward = -np.sign(w.x)
    wanted = np.where(w.doing == DRIFT, 0.7 * inward, wanted)
    wanted = np.where(w.doing == CUT_IN, 3.5 * inward, wanted)
    w.drift = w.drift + (wanted - w.drift) * (STEP / 0.3)
    w.x = w.x + STEP * w.drift
    w.gap = w.gap - STEP * (w.car[:, None] - w.way * w.speed)
    touching = (w.gap <= 0) & (w.gap > -LENGTH) & (np.abs(w.x) < REACH)
    hit = touching & w.present & ~w.crashed[:, None]
    w.crashed = w.crashed | hit.any(axis=1)
    w.present = w.present & (w.gap > -LENGTH)
    return hit


def _decide(w, u):
    """What each driver does next: at most one change a step, at the rates of `HAZARD`."""
    before, w.doing = w.doing, w.doing.copy()
    own = np.abs(w.lane) < 1  # in the car's own lane there is nowhere to cut in to
    for now, choices in HAZARD.items():
        low = 0.0
        for then, rate in choices:
            change = (before == now) & (u >= low) & (u < low + rate * STEP)
            if then >= DRIFT:
                change &= ~own
            w.doing[change] = then
            low += rate * STEP
    arrived = (w.doing >= DRIFT) & (np.abs(w.x) < 0.5)
    w.lane = np.where(arrived, 0, w.lane)
    w.doing[arrived] = CRUISE


def _brake(w, u):
    """Whether the car's driver starts or stops braking, for the vehicle that calls for it most."""
    closing = w.car[:, None] - w.way * w.speed
    ahead = w.present & (np.abs(w.x) < REACH + 0.2) & (w.gap > 0) & (closing > 0)
    called = np.where(ahead, closing**2 / (2 * np.maximum(w.gap, 0.5)), 0).max(axis=1)
    start = np.zeros(len(w), np.float32)
    for limit, hazard in REACTION:
        start[called > limit] = hazard * STEP
    stop = (called < 0.5) & (u < 2.0 * STEP)
    w.braking = np.where(w.braking, ~stop, u < start)
