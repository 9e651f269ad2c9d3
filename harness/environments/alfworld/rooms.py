"""Rooms of the generated games: which receptacles and objects there are, and how they are spread.

The ranges follow what the games built from the ALFRED scenes look like (four kinds of rooms, 10 to 30 receptacles,
some of them reached from one spot), drawn a little smaller, since the time of the first load grows with the room.
Which object type goes into which receptacle type is the packaged table's business.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from harness.environments.alfworld import package


@dataclass(frozen=True, slots=True)
class Room:
    """A kind of room: receptacle types as (fewest, most, chance), object types with the most there are of each."""

    places: Mapping[str, tuple[int, int, float]]
    things: Mapping[str, int]
    kinds: tuple[int, int]  # how many of the object types are present


ROOMS: Mapping[str, Room] = {
    "kitchen": Room(
        {
            "Cabinet": (3, 9, 1.0),
            "CoffeeMachine": (1, 1, 1.0),
            "CounterTop": (1, 3, 1.0),
            "DiningTable": (1, 1, 0.4),
            "Drawer": (1, 6, 1.0),
            "Fridge": (1, 1, 1.0),
            "GarbageCan": (1, 1, 1.0),
            "Microwave": (1, 1, 1.0),
            "Shelf": (1, 3, 0.5),
            "SideTable": (1, 1, 0.1),
            "SinkBasin": (1, 1, 1.0),
            "StoveBurner": (2, 4, 1.0),
            "Toaster": (1, 1, 1.0),
        },
        {
            **dict.fromkeys(("Apple", "Bowl", "Cup", "Egg", "Fork", "Knife", "Mug", "Plate", "Potato", "Tomato"), 3),
            **dict.fromkeys(("Bread", "ButterKnife", "DishSponge", "Lettuce", "PepperShaker", "SaltShaker"), 2),
            **dict.fromkeys(("CellPhone", "CreditCard", "Glassbottle", "Kettle", "Ladle", "Pan", "Pot"), 2),
            **dict.fromkeys(("SoapBottle", "Spatula", "Spoon", "Statue", "Vase", "WineBottle"), 2),
        },
        (13, 18),
    ),
    "livingroom": Room(
        {
            "ArmChair": (1, 2, 0.9),
            "Cabinet": (1, 4, 0.3),
            "CoffeeTable": (1, 2, 0.7),
            "DiningTable": (1, 1, 0.3),
            "Drawer": (1, 7, 0.8),
            "Dresser": (1, 1, 0.5),
            "GarbageCan": (1, 1, 1.0),
            "Ottoman": (1, 1, 0.2),
            "Safe": (1, 1, 0.3),
            "Shelf": (1, 8, 0.5),
            "SideTable": (1, 3, 0.9),
            "Sofa": (1, 2, 1.0),
            "TVStand": (1, 1, 0.3),
        },
        {
            **dict.fromkeys(("Book", "Box", "CreditCard", "KeyChain", "Laptop", "Newspaper", "Pillow"), 3),
            **dict.fromkeys(("RemoteControl", "Statue", "TissueBox", "Vase", "Watch"), 3),
            **dict.fromkeys(("Bowl", "CellPhone", "Pen", "Pencil", "Plate", "WateringCan"), 2),
        },
        (9, 14),
    ),
    "bedroom": Room(
        {
            "ArmChair": (1, 2, 0.2),
            "Bed": (1, 1, 1.0),
            "Cabinet": (1, 4, 0.1),
            "Desk": (1, 2, 0.8),
            "Drawer": (2, 8, 1.0),
            "Dresser": (1, 1, 0.4),
            "GarbageCan": (1, 1, 1.0),
            "LaundryHamper": (1, 1, 0.5),
            "Safe": (1, 1, 0.5),
            "Shelf": (1, 7, 0.8),
            "SideTable": (1, 2, 0.6),
        },
        {
            **dict.fromkeys(("AlarmClock", "Book", "CD", "CellPhone", "CreditCard", "KeyChain", "Pen"), 3),
            **dict.fromkeys(("Laptop", "Mug", "Pencil", "Pillow"), 3),
            **dict.fromkeys(("BaseballBat", "BasketBall", "Bowl", "Box", "Cloth", "TennisRacket", "TissueBox"), 2),
        },
        (10, 15),
    ),
    "bathroom": Room(
        {
            "BathtubBasin": (1, 1, 0.5),
            "Cabinet": (2, 6, 0.7),
            "Cart": (1, 1, 0.1),
            "CounterTop": (1, 2, 0.9),
            "Drawer": (1, 6, 0.5),
            "GarbageCan": (1, 1, 1.0),
            "HandTowelHolder": (1, 2, 1.0),
            "Shelf": (1, 4, 0.3),
            "SinkBasin": (1, 2, 1.0),
            "Toilet": (1, 1, 1.0),
            "ToiletPaperHanger": (1, 1, 1.0),
            "TowelHolder": (1, 2, 1.0),
        },
        {
            **dict.fromkeys(("Candle", "Cloth", "SoapBar", "SoapBottle", "SprayBottle", "ToiletPaper"), 3),
            **dict.fromkeys(("DishSponge", "HandTowel", "TissueBox", "Towel"), 2),
        },
        (7, 10),
    ),
}

BASINS = {"SinkBasin": "Sink", "BathtubBasin": "Bathtub"}
CLUSTERED = frozenset({"Cabinet", "Drawer", "Shelf", "StoveBurner"})  # may be reached from a neighbour's spot
RECEPTACLE_OBJECTS = frozenset({"Bowl", "Box", "Cup", "Mug", "Pan", "Plate", "Pot"})
LAMP = "DeskLamp"
LAMP_PLACES = ("Desk", "Dresser", "SideTable", "DiningTable", "CoffeeTable", "Shelf")


@dataclass(frozen=True, slots=True)
class Place:
    """A receptacle: its type, its id, and the number of the spot it is reached from."""

    kind: str
    ident: str
    spot: int


def coordinates(rng: random.Random) -> str:
    """A position the way ids of ALFRED scenes write it."""

    def number() -> str:
        value = rng.randint(-299, 299)
        return f"_{'minus' if value < 0 else 'plus'}_{abs(value) // 100:02d}_dot_{abs(value) % 100:02d}"

    return "_bar_".join(number() for _ in range(3))


def counts(room: Room, rng: random.Random) -> dict[str, int]:
    """How many receptacles of each type; those with none are left out."""
    drawn = {kind: rng.randint(low, high) for kind, (low, high, chance) in room.places.items() if rng.random() < chance}
    return {kind: n for kind, n in drawn.items() if n}


def furnish(numbers: Mapping[str, int], rng: random.Random) -> list[Place]:
    """Receptacles with ids and spots."""
    places: list[Place] = []
    spot = 0
    for kind, number in numbers.items():
        for i in range(number):
            if not (i and kind in CLUSTERED and rng.random() < 0.2):
                spot += 1
            body = f"{BASINS.get(kind, kind)}_bar_{coordinates(rng)}"
            places.append(Place(kind, f"{body}_bar_{kind}" if kind in BASINS else body, spot))
    return places


def things(room: Room, places: list[Place], rng: random.Random) -> dict[str, int]:
    """How many objects of each type; only types that some receptacle here holds."""
    present = {place.kind for place in places}
    fitting = sorted(t for t in room.things if any(t in package.holds()[kind] for kind in present))
    chosen = rng.sample(fitting, min(len(fitting), rng.randint(*room.kinds)))
    return {thing: rng.randint(1, room.things[thing]) for thing in sorted(chosen)}
