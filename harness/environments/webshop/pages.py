"""What the shopper reads: a page as a list of nodes, and the two text forms that the original makes of its HTML.

`text` joins the visible strings with " [SEP] "; `text_rich` gives each a line and marks buttons, options and visited
products.  Both keep the original's oddities, which trained agents have seen: an instruction line that ends in a blank
on the first page, white-space-only texts kept or dropped by whether they hold a line break, and "clicked" decided by
looking for the quoted value in the page's address.
"""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

from harness.environments.webshop.engine import Engine, Page

Kind = Literal["text", "button", "option", "link"]
_SPACE = " \n\t\f\r"  # what the original's HTML parser takes for white space
MODES = ("text", "text_rich")


class Node(NamedTuple):
    """One visible string; `number` is the product of a link."""

    text: str
    kind: Kind = "text"
    number: int = -1


def observe(engine: Engine, page: Page, mode: str) -> str:
    """The page in one of `MODES`, character by character as the original writes it."""
    nodes = [node for node in map(_parsed, _nodes(engine, page)) if node is not None]
    return " [SEP] ".join(node.text.strip() for node in nodes) if mode == "text" else _rich(engine, page, nodes)


def _parsed(node: Node) -> Node | None:
    """A string as it survives HTML parsing: empty ones are no node, blank ones shrink, and a line break is dropped."""
    if node.text.strip(_SPACE):
        return node
    return node._replace(text=" ") if node.text and "\n" not in node.text else None


def _nodes(engine: Engine, page: Page) -> list[Node]:
    if page.kind == "done":
        return _receipt(engine, page)
    head = [Node("Instruction:"), Node(engine.goal.instruction)]
    if page.kind == "index":
        return [Node("WebShop"), Node("Instruction: "), head[1], Node("Search", "button")]
    head.append(Node("Back to Search", "button"))
    if page.kind == "results":
        return head + _results(engine, page)
    head.append(Node("< Prev", "button"))
    return head + (_item(engine, page) if page.kind == "item" else _sub(engine, page))


def _results(engine: Engine, page: Page) -> list[Node]:
    nodes = [Node(f"Page {page.number} (Total results: {len(page.hits)})")]
    if page.number > 1:
        nodes.append(Node("< Prev", "button"))
    nodes.append(Node("Next >", "button"))
    for number in engine.shown(page):
        product = engine.store.product(number)
        nodes += [Node(product.asin, "link", number), Node(product.title), Node(product.tag)]
    return nodes


def _item(engine: Engine, page: Page) -> list[Node]:
    product = engine.product(page)
    nodes = []
    for name, values in product.options:
        nodes.append(Node(name))
        nodes += [Node(value, "option") for value in values]
    nodes += [Node(product.title), Node(f"Price: {product.tag}"), Node("Rating: N.A.")]
    names = ["Description", "Features", "Reviews", *(["Attributes"] if engine.show_attributes else []), "Buy Now"]
    return nodes + [Node(name, "button") for name in names]


def _sub(engine: Engine, page: Page) -> list[Node]:
    product = engine.product(page)
    if page.sub == "description":
        return [Node(product.description)]
    if page.sub == "features":
        return [Node(f" {bullet}") for bullet in product.bullets]
    if page.sub == "attributes":
        listed = [Node(f" {attribute}") for attribute in product.attributes]
        return [*listed, Node(product.category), Node(product.query), Node(product.path)]
    return []


def _receipt(engine: Engine, page: Page) -> list[Node]:
    """The page after a purchase; it shows the reward, so actors never see it (see `environment`)."""
    options = json.dumps(dict(page.options), sort_keys=True)
    for char in "<>&'":
        options = options.replace(char, f"\\u{ord(char):04x}")
    texts = ["Thank you for shopping with us!", "Your code: ", "None", " (Paste it in your MTurk interface.)"]
    texts += ["Purchased", "asin", engine.product(page).asin, "options", options]
    for name in ("attrs", "category", "query", "product category"):
        texts += [name, "None"]
    texts += ["Target", "asin", "options", "attrs", "price upper", "instuction text", "category", "product category"]
    texts += ["query", "Goal ", "None", "Reward", "Your score (min 0.0, max 1.0)"]
    texts += [str(page.score.total if page.score else 0.0), "Reward Details ", "None"]
    return [Node(text) for text in texts]


def _rich(engine: Engine, page: Page, nodes: list[Node]) -> str:
    address = ""
    if page.kind == "item":
        chosen = json.dumps(dict(page.options))
        address = f"{engine.product(page).asin}/{'+'.join(page.keywords)}/{page.number}/{chosen}"
    prefix, lines = "", []
    for node in nodes:
        text = node.text
        if node.kind == "button":
            text = f"[button] {text} [button_]"
        elif node.kind == "option" and f'"{text}"' in address:
            prefix = f"You have clicked {text}.\n{prefix}"
            text = f"  [clicked button] {text} [clicked button_]"
        elif node.kind == "option":
            text = f"  [button] {text} [button_]"
        elif node.kind == "link":
            mark = "clicked button" if node.number in page.seen else "button"
            text = f"\n[{mark}] {text} [{mark}_]"
        lines.append(f"{text}\n")
    return prefix + "".join(lines)
