"""Numbers of the command line that nothing could work with are refused before anything starts."""

from __future__ import annotations

import pytest

from tests.support.command_line import invoke

NOWHERE = "postgresql://nobody@nowhere.invalid/none"


@pytest.mark.parametrize(
    ("command", "option", "said"),
    [
        ("worker start", "--lease=-1", "-1.0 is not in the range 1<=x<=600"),
        ("worker start", "--lease=nan", "'nan' is not a number"),
        ("worker start", "--lease=inf", "inf is not in the range 1<=x<=600"),
        ("worker start", "--shutdown-timeout=nan", "'nan' is not a number"),
        ("worker start", "--shutdown-timeout=inf", "inf is not in the range 0<x<=3600"),
        ("worker start", "--concurrency=0", "0 is not in the range 1<=x<=10000"),
        ("worker start", "--threads=0", "0 is not in the range 1<=x<=1000"),
        ("worker start", "--processes=0", "0 is not in the range 1<=x<=1000"),
        ("dev", "--concurrency=0", "0 is not in the range 1<=x<=10000"),
        ("server", "--shutdown-timeout=inf", "inf is not in the range 0<x<=3600"),
        ("task watch", "--timeout=nan", "'nan' is not a number"),
        ("task watch", "--timeout=soon", "'--timeout': expected a number above 0, found 'soon'."),
        ("task list", "--limit=1.5", "'--limit': expected a whole number from 1 up to 10000, found '1.5'."),
    ],
)
def test_a_number_that_nothing_can_work_with_is_refused(command: str, option: str, said: str) -> None:
    result = invoke(*command.split(), option, database=NOWHERE)

    assert (result.exit_code, said in result.output) == (2, True), result.output
