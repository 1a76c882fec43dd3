"""Parcels of a small depot: what they weigh, what they cost, where they are."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PARCEL_ID = re.compile(r"(?P<depot>[A-Z]{2})-(?P<number>\d{6})-(?P<check>\d)")
WEIGHT_LIMITS_G = (500, 2_000, 5_000, 10_000, 31_500)
BASE_PRICES = (3.95, 5.49, 7.99, 10.49, 19.99)
EXPRESS_FACTOR = 1.65
ISLAND_SURCHARGE = 4.20
ISLANDS = frozenset({"25849", "25863", "26465", "26486", "26548", "26579", "27498"})
LATE_AFTER = timedelta(hours=36)


class DepotError(Exception):
    """Something about a parcel that the depot cannot work with."""


class Status(Enum):
    """Where a parcel is on its way."""

    ANNOUNCED = "announced"
    RECEIVED = "received"
    SORTED = "sorted"
    LOADED = "loaded"
    DELIVERED = "delivered"
    RETURNED = "returned"

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen to the parcel."""
        return self in {Status.DELIVERED, Status.RETURNED}


NEXT_STATUS = {
    Status.ANNOUNCED: {Status.RECEIVED},
    Status.RECEIVED: {Status.SORTED, Status.RETURNED},
    Status.SORTED: {Status.LOADED, Status.RETURNED},
    Status.LOADED: {Status.DELIVERED, Status.SORTED, Status.RETURNED},
    Status.DELIVERED: set(),
    Status.RETURNED: set(),
}


@dataclass(frozen=True)
class Address:
    """A place to which parcels go."""

    name: str
    street: str
    postcode: str
    city: str

    @classmethod
    def from_row(cls, row: dict[str, str]) -> Address:
        """Read an address from the columns of an order file."""
        name = row["name"].strip()
        street = row["street"].strip()
        postcode = row["postcode"].strip().zfill(5)
        city = row["city"].strip()
        if not postcode.isdigit():
            raise DepotError(f"postcode {postcode!r} is not a number")
        return cls(name, street, postcode, city)

    @property
    def is_island(self) -> bool:
        """Whether a ferry is needed."""
        return self.postcode in ISLANDS

    def lines(self) -> list[str]:
        """The address as it stands on a label."""
        return [self.name, self.street, f"{self.postcode} {self.city}"]


@dataclass(frozen=True)
class Event:
    """One change of a parcel's status."""

    status: Status
    at: datetime
    note: str = ""

    def to_dict(self) -> dict[str, str]:
        """The event as JSON knows it."""
        return {
            "status": self.status.value,
            "at": self.at.isoformat(),
            "note": self.note,
        }

    @classmethod
    def from_dict(cls, data: dict[str, str]) -> Event:
        """Read what `to_dict` has written."""
        status = Status(data["status"])
        at = datetime.fromisoformat(data["at"])
        return cls(status, at, data.get("note", ""))


@dataclass(frozen=True)
class Parcel:
    """A parcel with everything that has happened to it."""

    parcel_id: str
    address: Address
    weight_g: int
    is_express: bool = False
    events: tuple[Event, ...] = field(default_factory=tuple)

    @property
    def status(self) -> Status:
        """The latest status; announced if nothing has happened yet."""
        if not self.events:
            return Status.ANNOUNCED
        return self.events[-1].status

    @property
    def updated_at(self) -> datetime | None:
        """When the parcel was last seen."""
        if not self.events:
            return None
        return self.events[-1].at

    def with_event(self, event: Event) -> Parcel:
        """The same parcel after one more event."""
        if event.status not in NEXT_STATUS[self.status]:
            raise DepotError(
                f"{self.parcel_id}: {self.status.value} cannot become "
                f"{event.status.value}"
            )
        if self.updated_at is not None and event.at < self.updated_at:
            raise DepotError(f"{self.parcel_id}: event lies before the last one")
        return replace(self, events=(*self.events, event))

    def price(self) -> float:
        """What sending the parcel costs, in euros."""
        limits = zip(WEIGHT_LIMITS_G, BASE_PRICES, strict=True)
        base = next((price for limit, price in limits if self.weight_g <= limit), None)
        if base is None:
            raise DepotError(f"{self.parcel_id}: {self.weight_g} g is too heavy")
        total = base * EXPRESS_FACTOR if self.is_express else base
        if self.address.is_island:
            total += ISLAND_SURCHARGE
        return round(total, 2)

    def is_late(self, now: datetime) -> bool:
        """Whether the parcel has not been seen for too long."""
        if self.status.is_final or self.updated_at is None:
            return False
        allowed = LATE_AFTER / 2 if self.is_express else LATE_AFTER
        return now - self.updated_at > allowed


def check_digit(depot: str, number: int) -> int:
    """Weighted digit sum modulo ten; the weights are 3 and 1 in turns."""
    digits = f"{ord(depot[0]) - 64:02d}{ord(depot[1]) - 64:02d}{number:06d}"
    total = sum(
        int(digit) * (3 if index % 2 == 0 else 1) for index, digit in enumerate(digits)
    )
    return (10 - total % 10) % 10


def make_id(depot: str, number: int) -> str:
    """The parcel id of a running number."""
    return f"{depot}-{number:06d}-{check_digit(depot, number)}"


def parse_id(text: str) -> tuple[str, int]:
    """Depot and number of a parcel id; raises where the check digit is wrong."""
    match = PARCEL_ID.fullmatch(text.strip().upper())
    if match is None:
        raise DepotError(f"{text!r} is not a parcel id")
    depot, number = match["depot"], int(match["number"])
    if check_digit(depot, number) != int(match["check"]):
        raise DepotError(f"{text!r}: the check digit is wrong")
    return depot, number


class Depot:
    """All parcels of one place."""

    def __init__(self, name: str, code: str) -> None:
        self.name = name
        self.code = code
        self._parcels: dict[str, Parcel] = {}
        self._next_number = 1

    def __len__(self) -> int:
        return len(self._parcels)

    def __iter__(self) -> Iterator[Parcel]:
        return iter(self._parcels.values())

    def get(self, parcel_id: str) -> Parcel:
        """The parcel with an id."""
        try:
            return self._parcels[parcel_id]
        except KeyError:
            raise DepotError(f"no parcel {parcel_id}") from None

    def announce(
        self, address: Address, weight_g: int, *, is_express: bool = False
    ) -> Parcel:
        """Take an order for a parcel that is not here yet."""
        if weight_g <= 0:
            raise DepotError(f"weight {weight_g} g is not positive")
        parcel_id = make_id(self.code, self._next_number)
        parcel = Parcel(parcel_id, address, weight_g, is_express)
        self._parcels[parcel_id] = parcel
        self._next_number += 1
        return parcel

    def record(self, parcel_id: str, status: Status, note: str = "") -> Parcel:
        """Note that a parcel has a new status now."""
        event = Event(status, datetime.now(UTC), note)
        parcel = self.get(parcel_id).with_event(event)
        self._parcels[parcel_id] = parcel
        return parcel

    def receive(self, parcel_id: str) -> Parcel:
        """The parcel has come in."""
        return self.record(parcel_id, Status.RECEIVED)

    def sort(self, parcel_id: str, chute: int) -> Parcel:
        """The parcel lies in a chute."""
        return self.record(parcel_id, Status.SORTED, f"chute {chute}")

    def load(self, parcel_id: str, van: str) -> Parcel:
        """The parcel is on a van."""
        return self.record(parcel_id, Status.LOADED, f"van {van}")

    def deliver(self, parcel_id: str, signed_by: str) -> Parcel:
        """The parcel has been handed over."""
        return self.record(parcel_id, Status.DELIVERED, f"signed by {signed_by}")

    def late(self, now: datetime | None = None) -> list[Parcel]:
        """Parcels not seen for too long, the longest unseen first."""
        moment = now or datetime.now(UTC)
        found = [parcel for parcel in self if parcel.is_late(moment)]
        found.sort(key=lambda parcel: parcel.updated_at or moment)
        return found

    def by_status(self) -> dict[Status, list[Parcel]]:
        """Parcels grouped by where they are."""
        groups: dict[Status, list[Parcel]] = defaultdict(list)
        for parcel in self:
            groups[parcel.status].append(parcel)
        return dict(groups)

    def revenue(self) -> float:
        """What all delivered parcels have brought."""
        delivered = (p for p in self if p.status is Status.DELIVERED)
        return round(sum(parcel.price() for parcel in delivered), 2)

    def save(self, path: Path) -> None:
        """Write all parcels as JSON lines."""
        with path.open("w", encoding="utf-8") as file:
            for parcel in self:
                row = {
                    "id": parcel.parcel_id,
                    "address": parcel.address.__dict__,
                    "weight_g": parcel.weight_g,
                    "express": parcel.is_express,
                    "events": [event.to_dict() for event in parcel.events],
                }
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_orders(path: Path) -> Iterator[tuple[Address, int, bool]]:
    """Orders of a CSV file; a row that cannot be read is an error with its line."""
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            try:
                address = Address.from_row(row)
                weight_g = int(float(row["weight_kg"].replace(",", ".")) * 1000)
            except (KeyError, ValueError) as error:
                raise DepotError(f"{path}:{number}: {error}") from error
            yield address, weight_g, row.get("express", "").lower() in {"y", "yes"}


def report(depot: Depot, now: datetime) -> str:
    """The day's report as text."""
    lines = [f"{depot.name}, {now:%Y-%m-%d}", "=" * 40]
    for status, parcels in sorted(depot.by_status().items(), key=lambda p: p[0].name):
        weight = sum(parcel.weight_g for parcel in parcels) / 1000
        lines.append(f"{status.value:<12} {len(parcels):>6} {weight:>9.1f} kg")
    late = depot.late(now)
    if late:
        lines.append("")
        lines.append("late:")
        lines.extend(f"  {p.parcel_id}  {p.address.city}" for p in late)
    lines.append(f"revenue {depot.revenue():.2f} EUR")
    return "\n".join(lines)


def import_orders(depot: Depot, paths: Iterable[Path]) -> list[Parcel]:
    """Announce all orders of some files; none if one of them cannot be read."""
    orders = [order for path in paths for order in read_orders(path)]
    return [
        depot.announce(address, weight_g, is_express=is_express)
        for address, weight_g, is_express in orders
    ]
