"""As much of PromQL as the alerts and panels use, over scrapes: what Prometheus would answer, without Prometheus.

Rates are between the first and the last scrape of their span, without extrapolation; a series that is in one of them
alone has none. What is not known, or would be ambiguous, raises `ValueError`.
"""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Value = float | Vector
NAME = "__name__"
TOKEN = re.compile(r'\s*(?:(\d+(?:\.\d+)?)|([a-zA-Z_]\w*)|("[^"]*")|(\[\w+\])|(>=|<=|==|!=|=~|!~|[-+*/(){},<>=]))')
UNITS = {"s": 1, "m": 60, "h": 3600}
ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b if b else float("nan") if not a else float("inf"),
}
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
AGGREGATIONS: Mapping[str, Callable[[Iterable[float]], float]] = {"sum": sum, "max": max, "min": min}
MATCHES: Mapping[str, Callable[[str, str], bool]] = {
    "=": lambda had, wanted: had == wanted,
    "!=": lambda had, wanted: had != wanted,
    "=~": lambda had, wanted: re.fullmatch(wanted, had) is not None,
    "!~": lambda had, wanted: re.fullmatch(wanted, had) is None,
}


@dataclass
class Scrapes:
    """What was scraped, at which second."""

    at: list[tuple[float, Vector]] = field(default_factory=list)

    def add(self, seconds: float, texts: Mapping[str, str], **labels: str) -> None:
        """What the instances told at that second, in the text format; the series have these labels and `instance`."""
        found: Vector = {}
        for instance, text in texts.items():
            more = {"instance": instance, **labels}
            for family in text_string_to_metric_families(text):
                for each in family.samples:
                    found[frozenset({NAME: each.name, **each.labels, **more}.items())] = each.value
            found[frozenset({NAME: "up", **more}.items())] = 1
        self.at.append((seconds, found))

    def ask(self, expression: str) -> Value:
        """What the expression is worth at the last scrape."""
        tokens = list(_tokens(expression))
        parser = _Parser(self.at, tokens)
        value = parser.either()
        if parser.place != len(tokens):
            raise ValueError(f"{tokens[parser.place]!r} is left of {expression}")
        return value


def _tokens(expression: str) -> Iterator[str]:
    place = 0
    text = expression.strip()
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"not known: {text[place:]}")
        place = match.end()
        yield match[match.lastindex or 0]


class _Parser:
    """Reads an expression and computes it at once."""

    def __init__(self, scrapes: Sequence[tuple[float, Vector]], tokens: Sequence[str]) -> None:
        self._scrapes, self._tokens, self.place = scrapes, tokens, 0

    def either(self) -> Value:
        left = self._without()
        while self._takes("or"):
            right = self._without()
            known = {*map(_bare, _vector(left))}
            left = {**{key: n for key, n in _vector(right).items() if _bare(key) not in known}, **_vector(left)}
        return left

    def _without(self) -> Value:
        left = self._compared()
        while self._takes("unless"):
            gone = {*map(_bare, _vector(self._compared()))}
            left = {key: value for key, value in _vector(left).items() if _bare(key) not in gone}
        return left

    def _compared(self) -> Value:
        left = self._sum()
        while self._next in COMPARISONS:
            compare, right = COMPARISONS[self._take()], self._sum()
            left = {key: a for key, a, b in _pairs(left, right) if compare(a, b)}
        return left

    def _sum(self) -> Value:
        return self._operations(("+", "-"), lambda: self._operations(("*", "/"), self._one))

    def _operations(self, signs: Sequence[str], operand: Callable[[], Value]) -> Value:
        left = operand()
        while self._next in signs:
            compute, right = ARITHMETIC[self._take()], operand()
            if isinstance(left, float) and isinstance(right, float):
                left = compute(left, right)
            else:
                left = {_bare(key): compute(a, b) for key, a, b in _pairs(left, right)}
        return left

    def _one(self) -> Value:
        token = self._take()
        if token == "(":
            value = self.either()
            self._expect(")")
            return value
        if re.fullmatch(r"[\d.]+", token):
            return float(token)
        if token in AGGREGATIONS:
            return self._aggregated(AGGREGATIONS[token])
        if token in ("rate", "increase"):
            return self._inside(lambda: self._grown(per_second=token == "rate"))
        if token == "absent":
            return self._inside(lambda: {frozenset(): 1.0} if not _vector(self.either()) else {})
        if token == "histogram_quantile":
            return self._inside(self._quantile)
        return self._selected(token, self._scrapes[-1][1])

    def _aggregated(self, of: Callable[[Iterable[float]], float]) -> Vector:
        by = self._labels() if self._takes("by") else ()
        groups: dict[Labels, list[float]] = defaultdict(list)
        for key, value in _vector(self._inside(self.either)).items():
            groups[_chosen(key, by)].append(value)
        return {key: of(values) for key, values in groups.items()}

    def _grown(self, *, per_second: bool) -> Vector:
        name, start = self._take(), self.place
        last_at, last = self._scrapes[-1]
        found = self._selected(name, last)
        span = re.fullmatch(r"\[(\d+)([smh])\]", self._take())
        if span is None:
            raise ValueError(f"no span behind {name}")
        end, since = self.place, last_at - int(span[1]) * UNITS[span[2]]
        began, first = next((at, vector) for at, vector in self._scrapes if at >= since)
        self.place = start
        before = self._selected(name, first)
        self.place = end
        seconds = (last_at - began) if per_second else 1.0
        if began == last_at:
            return {}
        return {_bare(key): (value - before[key]) / seconds for key, value in found.items() if key in before}

    def _quantile(self) -> Vector:
        share = float(self._take())
        self._expect(",")
        groups: dict[Labels, list[tuple[float, float]]] = defaultdict(list)
        for key, value in _vector(self.either()).items():
            groups[frozenset(each for each in key if each[0] != "le")].append((float(dict(key)["le"]), value))
        return {key: _bound(sorted(buckets), share) for key, buckets in groups.items() if max(buckets)[1]}

    def _selected(self, name: str, vector: Vector) -> Vector:
        matchers = [(NAME, "=", name)]
        if self._takes("{"):
            while not self._takes("}"):
                matchers.append((self._take(), self._take(), self._take().strip('"')))
                self._takes(",")
        return {key: value for key, value in vector.items() if _fits(dict(key), matchers)}

    def _labels(self) -> tuple[str, ...]:
        self._expect("(")
        found = []
        while not self._takes(")"):
            found.append(self._take())
            self._takes(",")
        return tuple(found)

    def _inside(self, read: Callable[[], Value]) -> Vector:
        self._expect("(")
        value = read()
        self._expect(")")
        return _vector(value)

    @property
    def _next(self) -> str:
        return self._tokens[self.place] if self.place < len(self._tokens) else ""

    def _take(self) -> str:
        self.place += 1
        return self._tokens[self.place - 1]

    def _takes(self, token: str) -> bool:
        found = self._next == token
        self.place += found
        return found

    def _expect(self, token: str) -> None:
        if not self._takes(token):
            raise ValueError(f"{token!r} is expected, not {self._next!r}")


def _vector(value: Value) -> Vector:
    if isinstance(value, float):
        raise ValueError("a number in place of series")
    return value


def _pairs(left: Value, right: Value) -> Iterator[tuple[Labels, float, float]]:
    """(labels, left, right): each series with the number, or with the one of the other side that has its labels."""
    if isinstance(left, float) and isinstance(right, float):
        raise ValueError("two numbers")
    if isinstance(right, float):
        yield from ((key, value, right) for key, value in _vector(left).items())
    elif isinstance(left, float):
        yield from ((key, left, value) for key, value in right.items())
    else:
        others = {_bare(key): value for key, value in right.items()}
        if len(others) != len(right) or len({*map(_bare, left)}) != len(left):
            raise ValueError("several series of one side have the same labels")
        yield from ((key, value, others[_bare(key)]) for key, value in left.items() if _bare(key) in others)


def _bare(key: Labels) -> Labels:
    return frozenset(each for each in key if each[0] != NAME)


def _chosen(key: Labels, names: Sequence[str]) -> Labels:
    return frozenset(each for each in key if each[0] in names)


def _fits(labels: Mapping[str, str], matchers: Iterable[tuple[str, str, str]]) -> bool:
    return all(MATCHES[how](labels.get(name, ""), wanted) for name, how, wanted in matchers)


def _bound(buckets: Sequence[tuple[float, float]], share: float) -> float:
    """The upper end of the bucket that holds it."""
    wanted = share * buckets[-1][1]
    return next(end for end, below in buckets if below >= wanted)
