"""The product's services over a session of a lab: its own statements, whose pages are counted."""

from __future__ import annotations

from tasker.messaging.registry import load_backend
from tasker.messaging.service import MessagingService
from tasker.services.dead_letters.entries import DeadLetters
from tasker.services.engine.calls import Engine
from tasker.services.engine.plans import PlanStore
from tasker.services.operators.steps import Steps
from tasker.services.server.queues import Queues
from tasker.services.tasks import Tasks
from tests.support.engine_fixture import Direct, Session


def engine_of(session: Session) -> Engine:
    """The services' engine."""
    direct = Direct(session)
    return Engine(direct, MessagingService(load_backend("pgmq", {"channel": direct})))


def letters_of(session: Session) -> DeadLetters:
    """The service of dead letters."""
    engine = engine_of(session)
    return DeadLetters(engine, Steps(engine, PlanStore(Direct(session))))


def tasks_of(session: Session) -> Tasks:
    """The service of tasks."""
    return Tasks(engine_of(session))


def queues_of(session: Session) -> Queues:
    """The service of the provider's queues."""
    return Queues(engine_of(session))
