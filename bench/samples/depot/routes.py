"""Round trips of the depot's vans: which parcel rides where, and in which order."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

EARTH_RADIUS_KM = 6371.0088
STOP_MINUTES = 3.5
CITY_SPEED_KMH = 24.0
LAND_SPEED_KMH = 52.0
SHIFT_MINUTES = 8 * 60


@dataclass(frozen=True)
class Point:
    """A place on the map, in degrees."""

    latitude: float
    longitude: float

    def distance_km(self, other: Point) -> float:
        """Great-circle distance by the haversine formula."""
        low = math.radians(self.latitude)
        high = math.radians(other.latitude)
        half_latitude = (high - low) / 2
        half_longitude = math.radians(other.longitude - self.longitude) / 2
        root = (
            math.sin(half_latitude) ** 2
            + math.cos(low) * math.cos(high) * math.sin(half_longitude) ** 2
        )
        return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(root))


@dataclass(frozen=True)
class Stop:
    """Where one parcel leaves the van."""

    parcel_id: str
    point: Point
    weight_kg: float
    is_express: bool = False


@dataclass(frozen=True)
class Van:
    """A vehicle and what it carries."""

    plate: str
    max_weight_kg: float
    max_stops: int = 120


@dataclass
class Trip:
    """The stops of one van, in order."""

    van: Van
    depot: Point
    stops: list[Stop]

    @property
    def weight_kg(self) -> float:
        """Weight of everything on board at the start."""
        return sum(stop.weight_kg for stop in self.stops)

    @property
    def length_km(self) -> float:
        """From the depot through all stops and back."""
        points = [self.depot, *(stop.point for stop in self.stops), self.depot]
        return sum(a.distance_km(b) for a, b in zip(points, points[1:], strict=False))

    @property
    def minutes(self) -> float:
        """How long the trip takes, stops included."""
        return drive_minutes(self.length_km, len(self.stops)) + self.pause_minutes

    @property
    def pause_minutes(self) -> float:
        """Breaks that the law asks for after four and a half hours at the wheel."""
        driving = drive_minutes(self.length_km, len(self.stops))
        return 45.0 * int(driving // 270)

    def fits(self, stop: Stop) -> bool:
        """Whether one more stop is possible."""
        if len(self.stops) >= self.van.max_stops:
            return False
        if self.weight_kg + stop.weight_kg > self.van.max_weight_kg:
            return False
        longer = Trip(self.van, self.depot, [*self.stops, stop])
        return longer.minutes <= SHIFT_MINUTES


def drive_minutes(length_km: float, num_stops: int) -> float:
    """Minutes on the road: the denser the stops, the slower the van."""
    if num_stops == 0:
        return 0.0
    per_stop_km = length_km / num_stops
    share = min(per_stop_km / 4.0, 1.0)
    speed = CITY_SPEED_KMH + share * (LAND_SPEED_KMH - CITY_SPEED_KMH)
    return 60 * length_km / speed + STOP_MINUTES * num_stops


def nearest_first(depot: Point, stops: Iterable[Stop]) -> list[Stop]:
    """Order stops by always driving to the nearest one; express parcels come first."""
    waiting = list(stops)
    ordered: list[Stop] = []
    here = depot
    while waiting:
        urgent = [stop for stop in waiting if stop.is_express] or waiting
        best = min(urgent, key=lambda stop: here.distance_km(stop.point))
        waiting.remove(best)
        ordered.append(best)
        here = best.point
    return ordered


def two_opt(trip: Trip, rounds: int = 20) -> Trip:
    """Turn stretches of a trip around as long as that makes it shorter."""
    stops = list(trip.stops)
    for _ in range(rounds):
        changed = False
        for start in range(len(stops) - 1):
            for end in range(start + 1, len(stops)):
                if gain(trip.depot, stops, start, end) > 1e-9:
                    stops[start : end + 1] = reversed(stops[start : end + 1])
                    changed = True
        if not changed:
            break
    return Trip(trip.van, trip.depot, stops)


def gain(depot: Point, stops: Sequence[Stop], start: int, end: int) -> float:
    """Kilometres saved by turning stops [start, end] around."""
    before = stops[start - 1].point if start > 0 else depot
    after = stops[end + 1].point if end + 1 < len(stops) else depot
    first, last = stops[start].point, stops[end].point
    now = before.distance_km(first) + last.distance_km(after)
    then = before.distance_km(last) + first.distance_km(after)
    return now - then


def assign(depot: Point, vans: Sequence[Van], stops: Iterable[Stop]) -> list[Trip]:
    """Give every stop to the trip that it lengthens least.

    Raises:
        ValueError: A stop fits on no van.
    """
    trips = [Trip(van, depot, []) for van in vans]
    for stop in nearest_first(depot, stops):
        candidates = [trip for trip in trips if trip.fits(stop)]
        if not candidates:
            raise ValueError(f"{stop.parcel_id} fits on no van")
        best = min(candidates, key=lambda trip: detour(trip, stop))
        best.stops.append(stop)
    return [two_opt(trip) for trip in trips]


def detour(trip: Trip, stop: Stop) -> float:
    """Kilometres by which a stop at the end lengthens a trip."""
    last = trip.stops[-1].point if trip.stops else trip.depot
    there = last.distance_km(stop.point)
    back = stop.point.distance_km(trip.depot)
    return there + back - last.distance_km(trip.depot)


def shortest(graph: dict[str, dict[str, float]], start: str, goal: str) -> list[str]:
    """The quickest way through a road network, by Dijkstra's algorithm."""
    queue: list[tuple[float, str, list[str]]] = [(0.0, start, [start])]
    seen: set[str] = set()
    while queue:
        cost, here, path = heapq.heappop(queue)
        if here == goal:
            return path
        if here in seen:
            continue
        seen.add(here)
        for neighbour, minutes in graph.get(here, {}).items():
            if neighbour not in seen:
                heapq.heappush(queue, (cost + minutes, neighbour, [*path, neighbour]))
    return []


def summary(trips: Sequence[Trip]) -> str:
    """One line per trip, and their sum."""
    lines = [
        f"{trip.van.plate:<10} {len(trip.stops):>4} stops {trip.length_km:>7.1f} km "
        f"{trip.minutes:>6.0f} min {trip.weight_kg:>7.1f} kg"
        for trip in trips
    ]
    total = sum(trip.length_km for trip in trips)
    lines.append(f"{len(trips)} trips, {total:.1f} km")
    return "\n".join(lines)
