"""Fire times of a schedule: cron expressions, intervals, time zones, daylight-saving changes and skipped dates.

Cron expressions are matched against the local clock without an offset, and each match is then placed in real time. So
the two questions of a daylight-saving change have one answer each, whatever the expression: `dst_gap` for a local time
that does not exist, `dst_overlap` for one that occurs twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo

from tasker.template.schedules import ScheduleSpec

SECOND = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class FireTimes:
    """Fire times of a schedule, all in UTC, in whole seconds."""

    def __init__(self, spec: ScheduleSpec) -> None:
        self._spec, self._zone = spec, ZoneInfo(spec.timezone)
        self._start = None if spec.start is None else datetime.fromisoformat(spec.start).astimezone(UTC)
        self._end = None if spec.end is None else datetime.fromisoformat(spec.end).astimezone(UTC)
        self._skipped = frozenset(map(date.fromisoformat, spec.skip_dates))
        self._following: Callable[[datetime], datetime | None] = self._interval_after
        if spec.cron is not None:
            self._twice = spec.dst_overlap == "both" or (spec.dst_overlap is None and _runs_every_hour(spec.cron))
            self._following = self._cron_after

    def after(self, moment: datetime) -> datetime | None:
        """Return the first fire time after the moment, or None if there is none."""
        moment = moment.astimezone(UTC).replace(microsecond=0)
        if self._start is not None:
            moment = max(moment, _before(self._start))
        try:
            while (found := self._following(moment)) is not None:
                if self._end is not None and found >= self._end:
                    return None
                if (day := found.astimezone(self._zone).date()) not in self._skipped:
                    return found
                midnight = datetime.combine(day + timedelta(days=1), time(), self._zone).astimezone(UTC)
                moment = max(found, midnight - SECOND)
        except OverflowError:  # behind the year 9999
            return None
        return None

    def within(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the fire times after `after`, up to and including `until`."""
        found = self.after(after)
        while found is not None and found <= until:
            yield found
            found = self.after(found)

    def upcoming(self, after: datetime, count: int) -> list[datetime]:
        """Return the next fire times after the moment, at most `count`."""
        return list(islice(self.within(after, datetime.max.replace(tzinfo=UTC)), count))

    def latest(self, after: datetime, until: datetime, count: int) -> tuple[list[datetime], bool]:
        """Return the last `count` fire times after `after` up to `until`, and whether there are earlier ones.

        The cost depends on `count`, not on the length of the time between.
        """
        span = timedelta(minutes=1)
        while True:
            begin = max(after, until - span)
            times = list(self.within(begin, until))
            if begin == after or len(times) > count:
                return times[-count:], len(times) > count
            span *= 4

    def local(self, moment: datetime) -> datetime:
        """Return the moment in the zone of the schedule."""
        return moment.astimezone(self._zone)

    def note(self, moment: datetime) -> str | None:
        """Describe a fire time that a daylight-saving change affects; None for any other."""
        if self._spec.cron is None:
            return None
        local = self.local(moment)
        if _is_repeated(local):
            return "this local time occurs twice: " + ("second" if local.fold else "first") + " occurrence"
        before = self.local(moment - SECOND)
        if local.utcoffset() != before.utcoffset() and not self._matches(local.replace(tzinfo=None)):
            return "moved: the local time of the schedule does not exist on this day"
        return None

    def _matches(self, naive: datetime) -> bool:
        return next(_matches(str(self._spec.cron), naive - SECOND)) == naive

    def _interval_after(self, moment: datetime) -> datetime | None:
        every = timedelta(seconds=self._spec.every_seconds or 0)
        origin = self._start or EPOCH
        return origin + max(0, (moment - origin) // every + 1) * every

    def _cron_after(self, moment: datetime) -> datetime | None:
        local = moment.astimezone(self._zone)
        naive = local.replace(tzinfo=None, fold=0)
        if not _is_repeated(local):
            return self._first(naive, moment)
        begin, end, change = self._overlap(naive)
        if local.fold == 0:
            found = self._first(naive, moment)
            if not self._twice or (found is not None and found < change):
                return found
            naive = begin - SECOND  # the repeated hour begins anew
        again = next(_matches(str(self._spec.cron), naive), None) if self._twice else None
        if again is not None and again < end:
            return self._placed(again, fold=1)
        return self._first(end - SECOND, moment)

    def _first(self, naive: datetime, moment: datetime) -> datetime | None:
        """Return the first match after a local time whose first occurrence is after the moment."""
        for match in _matches(str(self._spec.cron), naive):
            placed = self._placed(match, fold=0)
            if not self._exists(match, placed):
                if self._spec.dst_gap == "skip":
                    continue
                placed = self._change(match)
            if placed > moment:
                return placed
        return None

    def _placed(self, naive: datetime, fold: int) -> datetime:
        return naive.replace(tzinfo=self._zone, fold=fold).astimezone(UTC)

    def _exists(self, naive: datetime, placed: datetime) -> bool:
        return placed.astimezone(self._zone).replace(tzinfo=None, fold=0) == naive

    def _overlap(self, naive: datetime) -> tuple[datetime, datetime, datetime]:
        """Return the local begin and end of the repeated time around a local time, and the moment of the change."""
        change = self._change(naive)
        after, before = change.astimezone(self._zone), (change - SECOND).astimezone(self._zone)
        return after.replace(tzinfo=None, fold=0), before.replace(tzinfo=None, fold=0) + SECOND, change

    def _change(self, naive: datetime) -> datetime:
        """Return the moment of the change of offset that makes a local time repeated or missing."""
        low, high = sorted(self._placed(naive, fold) for fold in (0, 1))
        low -= SECOND
        offset = low.astimezone(self._zone).utcoffset()
        while high - low > SECOND:
            middle = low + (high - low) // 2
            middle = middle.replace(microsecond=0)
            if middle.astimezone(self._zone).utcoffset() == offset:
                low = middle
            else:
                high = middle
        return high


def jitter(schedule_uuid: str, spec: ScheduleSpec) -> timedelta:
    """Return the delay behind each fire time: fixed for a schedule, and spread over the jitter between schedules."""
    digest = hashlib.sha256(schedule_uuid.encode()).digest()
    return timedelta(milliseconds=int.from_bytes(digest[:8]) % (round(spec.jitter_seconds * 1000) + 1))


def _before(moment: datetime) -> datetime:
    return -(-(moment - EPOCH) // SECOND) * SECOND + EPOCH - SECOND


def _matches(cron: str, naive: datetime) -> Iterator[datetime]:
    from cronsim import CronSim  # lazy import, needed only where there are schedules

    return CronSim(cron, naive)


@lru_cache(maxsize=64)
def _runs_every_hour(cron: str) -> bool:
    """Return whether the expression means each hour or each nth, not certain hours of the day."""
    from cronsim import CronSim  # as above

    return cron.split()[-4].startswith("*") or len(CronSim(cron, datetime(2000, 1, 1)).hours) == 24


def _is_repeated(local: datetime) -> bool:
    """Return whether a local time occurs twice."""
    first, second = local.replace(fold=0).utcoffset(), local.replace(fold=1).utcoffset()
    return first is not None and second is not None and first > second
