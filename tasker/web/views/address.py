"""Filters of a list in the query of its address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Self

from tasker.contracts.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AddressWords:
    """Filters as texts, one per field; empty if not given."""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """Return the filters in the query of an address or the fields of a form, without surrounding spaces."""
        return cls(**{each.name: given.get(each.name, "").strip() for each in fields(cls)})

    @property
    def words(self) -> dict[str, str]:
        """Given filters, for an address."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name))}
