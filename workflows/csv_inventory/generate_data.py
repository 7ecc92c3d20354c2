"""Writes data.csv: 1,000 products that follow from their row numbers, the same on every machine.

Run it from anywhere: `python workflows/csv_inventory/generate_data.py`.
"""

from __future__ import annotations

import csv
from pathlib import Path

PRODUCT_COLUMNS = ("id", "title", "description", "category", "price", "discountPercentage")
STOCK_COLUMNS = ("rating", "stock", "brand", "sku", "weight")
CATEGORIES = ("audio", "books", "garden", "kitchen", "lighting", "office", "sports", "toys")
THINGS = ("Lamp", "Chair", "Speaker", "Kettle", "Racket", "Notebook", "Puzzle", "Planter", "Scale", "Clock", "Tray")
KINDS = ("Basic", "Compact", "Classic", "Large", "Light", "Solid", "Travel")
BRANDS = ("Alder", "Birch", "Cedar", "Elm", "Hazel", "Maple", "Rowan", "Spruce", "Willow")


def mix(number: int, salt: int) -> int:
    """A number in [0, 2**31) that looks arbitrary and is the same every time."""
    value = (number * 2_654_435_761 + salt * 40_503) % 2**31
    return (value ^ (value >> 13)) * 1_274_126_177 % 2**31


def product(number: int) -> tuple[object, ...]:
    """Row `number`, counted from 1."""
    category = CATEGORIES[mix(number, 1) % len(CATEGORIES)]
    kind, thing = KINDS[mix(number, 2) % len(KINDS)], THINGS[mix(number, 3) % len(THINGS)]
    return (
        number,
        f"{kind} {thing} {number}",
        f"{kind} {thing.lower()}, made for {category}",
        category,
        f"{(199 + mix(number, 4) % 99_800) / 100:.2f}",
        f"{mix(number, 5) % 2_500 / 100:.2f}",
        f"{1 + mix(number, 6) % 401 / 100:.2f}",
        mix(number, 7) % 250,
        BRANDS[mix(number, 8) % len(BRANDS)],
        f"{category[:3].upper()}-{number:05}",
        50 + mix(number, 9) % 9_950,
    )


def main() -> None:
    """Write the file beside this script."""
    with Path(__file__).with_name("data.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(PRODUCT_COLUMNS + STOCK_COLUMNS)
        writer.writerows(product(number) for number in range(1, 1_001))


if __name__ == "__main__":
    main()
