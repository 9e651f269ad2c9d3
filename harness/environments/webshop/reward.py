"""The reward of a purchase, exactly as the original computes it.

    r = r_type * (attributes met + options met + [price within the limit]) / (attributes + options + 1)

Two quirks are kept because scores depend on them.  Option values are reduced to the first colour of a fixed list that
they *contain* ("tan" is in "rectangular"), but the options of a synthetic goal are compared as (name, value) pairs,
which are reduced only when one member *equals* a colour.  And the title score can override a match by query or path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from harness.environments.webshop.catalogue import Product
from harness.environments.webshop.goals import Goal
from harness.errors import UsageError

# The colours are data of the reward's definition (princeton-nlp/WebShop, MIT), in its order: the first hit counts.
_COLOURS = (
    "alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel "
    "camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry "
    "cream crystal dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green "
    "grey heather indigo ivory ivy khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot "
    "midnight mint mocha multicolor mushroom mustard natural navy nude olive orange peach pewter pink plum "
    "purple rainbow red rose royal rust sand sapphire seashell silver skull slate steel stone stonewash "
    "sunflower tan taupe teal tiger turquoise violet walnut wheat white wine yellow"
)
COLOURS = tuple(_COLOURS.split())
ALIKE = 85  # thefuzz's whole-number ratio must be higher


@dataclass(frozen=True, slots=True)
class Score:
    """A reward in [0, 1] and its parts: counts of attributes and options met, whether the price is within limits."""

    total: float
    kind: float
    attributes: int
    options: int
    price: bool
    title: float


@lru_cache(maxsize=200_000)
def alike(one: str, two: str) -> bool:
    """Whether two texts have a token set ratio above 85."""
    return _ratio()(one, two) > ALIKE


@cache
def _ratio() -> Callable[[str, str], int]:
    try:
        from thefuzz import fuzz
    except ImportError as error:
        raise UsageError(
            f"WebShop's reward needs thefuzz ({error}). Install it with: pip install 'cota-bench[webshop]'"
        ) from error
    ratio: Callable[[str, str], int] = fuzz.token_set_ratio
    return ratio


@lru_cache(maxsize=50_000)
def colour(value: str) -> str:
    """The first colour that a value contains, or the value."""
    return next((name for name in COLOURS if name in value), value)


@lru_cache(maxsize=50_000)
def wanted(option: str | tuple[str, str]) -> str:
    """A goal's option as it is compared: a pair is written out, a value reduced to its colour."""
    if isinstance(option, str):
        return colour(option)
    return next((name for name in COLOURS if name in option), str(option))


def option_met(goal_option: str | tuple[str, str], chosen: Iterable[str]) -> bool:
    """Whether one of the chosen values satisfies an option of the goal."""
    target = wanted(goal_option)
    return any(alike(colour(value), target) for value in chosen)


def attribute_met(attribute: str, product: Product) -> bool:
    """Whether a product has an attribute: listed (nearly) so, or found in its texts."""
    return (
        any(alike(own, attribute) for own in product.attributes)
        or attribute in product.title.lower()
        or attribute in " ".join(product.bullets).lower()
        or attribute in product.description.lower()
    )


def kind_score(product: Product, goal: Goal, nouns: Callable[[str], tuple[str, ...]]) -> tuple[float, float]:
    """(r_type, title score): whether a product is the kind of thing that was asked for."""
    target = nouns(goal.title)
    shared = len(set(nouns(product.title)) & set(target))
    title = shared / len(target) if target else 0.2
    if title == 0.0:
        return 0.0, title
    if title < 0.1:
        return 0.1, title
    match = product.query == goal.query or len(product.segments() & goal.segments) >= 2 or title > 0.2
    return (1.0 if match else 0.5), title


def score(
    product: Product, chosen: Iterable[str], price: float, goal: Goal, nouns: Callable[[str], tuple[str, ...]]
) -> Score:
    """What buying `product` with the `chosen` option values at `price` dollars earns for `goal`."""
    values = tuple(chosen)
    kind, title = kind_score(product, goal, nouns)
    attributes = sum(attribute_met(attribute, product) for attribute in goal.attributes)
    options = sum(option_met(option, values) for option in goal.options)
    within = price <= goal.limit
    total = (attributes + options + within) / (len(goal.attributes) + len(goal.options) + 1) * kind
    return Score(total, kind, attributes, options, within, title)
