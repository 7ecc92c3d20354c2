"""What the address of a list asks for: a word for each filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Self

from tasker.contracts.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AddressWords:
    """Filters as texts, one for each field; empty: not given."""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """From the query of an address or the fields of a form, without spaces around words."""
        return cls(**{each.name: given.get(each.name, "").strip() for each in fields(cls)})

    @property
    def words(self) -> dict[str, str]:
        """What was given, for an address."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name))}
