"""The product's services over a session of a lab: its own statements, whose pages are counted."""

from __future__ import annotations

from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.services.fleet.brokers import Queues
from tasker.services.operators.dead_letters import DeadLetters
from tasker.services.operators.steps import Steps
from tasker.services.tasks.read import Tasks
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
