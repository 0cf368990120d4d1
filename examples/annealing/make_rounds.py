"""Make rounds.json: random rounds with their shortest tours, found by exact dynamic programming.

Run it in this folder: ``python make_rounds.py``. The file is committed; it comes out the same each time.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

PARCELS = 6
ROUNDS = 24


def make_stops(number: int) -> list[tuple[int, int]]:
    """A depot in the middle of a map of 1000 by 1000, and stops, scattered or in clusters."""
    rng = random.Random(1000 + number)
    clusters = [(rng.uniform(150, 850), rng.uniform(150, 850)) for _ in range(3)]
    stops = [(500, 500)]
    for _ in range(2 * PARCELS):
        if number % 2 == 0:
            stops.append((rng.randrange(1000), rng.randrange(1000)))
        else:
            x, y = rng.choice(clusters)
            stops.append((round(rng.gauss(x, 70)), round(rng.gauss(y, 70))))
    return stops


def shortest_tour(stops: list[tuple[int, int]]) -> tuple[float, list[int]]:
    """The shortest closed tour that picks up before it delivers (Held and Karp 1962, with precedence)."""
    count = len(stops) - 1
    between = [[math.dist(a, b) for b in stops] for a in stops]
    # best[visited][last]: the shortest way from the depot through the visited stops that ends at last
    best: list[dict[int, tuple[float, int]]] = [{} for _ in range(1 << count)]
    for stop in range(1, count + 1, 2):
        best[1 << (stop - 1)][stop] = (between[0][stop], 0)
    for visited in range(1, 1 << count):
        for last, (so_far, _) in best[visited].items():
            for stop in range(1, count + 1):
                bit = 1 << (stop - 1)
                is_early_delivery = stop % 2 == 0 and not visited & (bit >> 1)
                if visited & bit or is_early_delivery:
                    continue
                way = so_far + between[last][stop]
                known = best[visited | bit].get(stop)
                if known is None or way < known[0]:
                    best[visited | bit][stop] = (way, last)
    everything = (1 << count) - 1
    total, last = min((way + between[last][0], last) for last, (way, _) in best[everything].items())
    tour: list[int] = []
    visited = everything
    while last:
        tour.append(last)
        previous = best[visited][last][1]
        visited ^= 1 << (last - 1)
        last = previous
    return total, tour[::-1]


def main() -> None:
    """Write the file."""
    rounds = []
    for number in range(1, ROUNDS + 1):
        stops = make_stops(number)
        optimum, tour = shortest_tour(stops)
        kind = "scattered" if number % 2 == 0 else "clustered"
        rounds.append({"name": f"{kind}-{number:02}", "stops": stops, "optimum": optimum, "tour": tour})
    text = ",\n".join("  " + json.dumps(row) for row in rounds)
    Path(__file__).with_name("rounds.json").write_text(f"[\n{text}\n]\n", "utf-8")


if __name__ == "__main__":
    main()
