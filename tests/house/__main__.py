"""`python -m tests.house [TREE]`: the structure of the product in numbers, of this tree or of another checkout.

With --names: what is counted, by name. Tests hold the limits: `tests/test_structure.py`, `tests/test_floors.py`."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path

from tests.house import product
from tests.house.places_of_tests import IMPORTED, REACHED


def counted() -> list[tuple[str, Collection[object], str]]:
    """What is counted, what was found, the goal."""
    graph = product.modules()
    active = product.modules_that_do_something()
    elsewhere = [module for module in active if not product.has_test_of_its_name(module)]
    nowhere = [module for module in elsewhere if str(module) not in IMPORTED and str(module) not in REACHED]
    return [
        ("circles between modules", product.circles(graph), "0"),
        ("circles between scripts of the page", product.circles(product.scripts()), "0"),
        ("circles between folders", product.circles(product.folders_of(graph)), "0"),
        ("folders that import each other", product.mutual(product.folders_of(graph)), "0"),
        (f"classes with more than {product.ATTRIBUTES_MAX} attributes", product.wide_classes().items(), "0"),
        (f"functions with more than {product.PARAMETERS_MAX} parameters", product.long_signatures().items(), "0"),
        (f"functions over {product.LINES_MAX} lines", product.long_functions().items(), "0"),
        ("class names in two files or more", product.shared_class_names().items(), "< 40"),
        (f"folders of more than {product.MODULES_MAX} modules", product.full_folders().items(), "0"),
        ("modules that do something without a test of their name", elsewhere, "-"),
        ("and without a line that says where their test is", nowhere, "0"),
        ("modules that do something", active, "-"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument("tree", nargs="?", type=Path, help="another checkout [this one]")
    parser.add_argument("--names", action="store_true", help="what is counted, by name")
    args = parser.parse_args()
    if args.tree:
        product.ROOT = args.tree.resolve()
    for what, found, goal in counted():
        print(f"{len(found):5}  {goal:>7}  {what}")
        if args.names:
            for each in found:
                print(f"                 {each}")


main()
