"""Bookings that are cancelled again when the trip as a whole cannot be had."""

from __future__ import annotations

from typing import Any

from tasker.errors import PermanentError
from tasker.step_handler import step_handler
from tasker.types import StepContext


class Bookings:
    """The companies: each knows a booking by the key of its request, so a repeated request is the same booking."""

    def __init__(self) -> None:
        self.open: dict[str, str] = {}

    def book(self, what: str, trip: str) -> str:
        """Book, or return the booking that exists."""
        booking = f"{what}/{trip}"
        self.open[booking] = trip
        return booking

    def cancel(self, booking: str) -> bool:
        """Cancel a booking; return False if there is none, because it is cancelled already."""
        return self.open.pop(booking, None) is not None


bookings = Bookings()


@step_handler("trips.book")
def book(context: StepContext) -> dict[str, Any]:
    """Book what the step is named after."""
    what = context.step_name
    if what in context.get_input_or("full", []):
        raise PermanentError(f"no {what} is left", error_code="sold_out")
    return {"booking": bookings.book(what, context.get_input("trip"))}


@step_handler("trips.cancel")
def cancel(context: StepContext) -> dict[str, Any]:
    """Cancel the booking of the step that this one undoes. A second call finds nothing to cancel, and succeeds."""
    booked = context.step_name.removesuffix(".undo")
    booking = context.get_dependency_field(booked, "booking")
    bookings.cancel(booking)
    return {"cancelled": booking}


@step_handler("trips.confirm")
def confirm(context: StepContext) -> dict[str, Any]:
    """Send the tickets."""
    return {"sent_to": context.get_input("customer")}


@step_handler("trips.report")
def report(context: StepContext) -> dict[str, Any]:
    """Tell the customer how it ended."""
    outcome = context.outcome
    if outcome is None or outcome.state == "complete":
        return {"text": f"{context.get_input('customer')}, your trip is booked."}
    why = "; ".join(failure.message for failure in outcome.failures) or outcome.reason or "it was cancelled"
    if outcome.outcome == "compensation_failed":
        return {"text": f"Your trip is not booked: {why}. We are still cancelling it."}
    return {"text": f"Your trip is not booked: {why}. Nothing is charged."}
