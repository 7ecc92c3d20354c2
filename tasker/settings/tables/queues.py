"""`common.queues`: which messaging backend, and how it is used (A-70 .. A-72)."""

from __future__ import annotations

from tasker.settings.tables.base import Table, number, table, text, whole
from tasker.settings.tables.formats import AmqpUrl, NamePrefix, NatsUrls, OrchestrationQueue, RedisUrl


class OrchestrationQueues(Table):
    """The queues that orchestrators read. Their names begin with `orchestration`."""

    task_requests: OrchestrationQueue = text("orchestration_task_requests", "Tasks to create.")
    step_results: OrchestrationQueue = text(
        "orchestration_step_results", "Pointers to results that wait to be processed."
    )
    task_finalizations: OrchestrationQueue = text("orchestration_task_finalizations", "Tasks to look at again.")


class DepthThresholds(Table):
    """When a namespace has too much ready work, with whichever backend: its steps in the queue, held back or paused."""

    critical_threshold: int = whole(
        5000, 1, 1_000_000_000, "Ready steps from which on new tasks without priority are refused (503)."
    )
    overflow_threshold: int = whole(
        10_000,
        1,
        1_000_000_000,
        "Ready steps from which on tasks of positive priority are refused, too, and an error is logged.",
    )


class Pgmq(Table):
    """PGMQ, in the engine's own database."""

    poll_interval_ms: int = whole(
        500, 10, 10_000, "Pause between two looks at a queue when nothing announces messages."
    )
    queue_depth_thresholds: DepthThresholds = table(DepthThresholds)


class RabbitMq(Table):
    """RabbitMQ. The server is needed only when `common.queues.backend` chooses it."""

    url: AmqpUrl = text(
        "amqp://guest:guest@localhost:5672/%2F",
        "The server; %2F at the end is the virtual host `/`.",
        variable="RABBITMQ_URL",
    )
    prefetch_count: int = whole(100, 1, 65_535, "Messages that the server hands out before they are acknowledged.")
    heartbeat_seconds: int = whole(30, 0, 3600, "Period of the connection's heartbeat. 0: none.")
    prefix: str = text("", "Put before every name, so that several databases can share a virtual host.", shortest=0)
    connection_timeout_seconds: float = number(
        30.0, 0.1, 3600.0, "Limit of one attempt to connect. A start makes one, and ends when it fails."
    )
    delivery_limit: int = whole(1000, 1, 1_000_000, "Returns after which a message is moved to the dead letters.")


class Redis(Table):
    """Redis streams. The server is needed only when `common.queues.backend` chooses it."""

    url: RedisUrl = text(
        "redis://localhost:6379/0",
        "The server and its database.",
        variable="TASKER_REDIS_URL",
        advice="Not REDIS_URL, which is the cache's: a cache may throw its keys away, queues must not.",
    )
    prefix: str = text("tasker", "First part of every key, so that several databases can share a server.")
    connection_timeout_seconds: float = number(10.0, 0.1, 3600.0, "How long to wait for a connection.")
    max_connections: int = whole(10, 1, 10_000, "Connections for calls; every subscription has one more.")


class Nats(Table):
    """NATS JetStream. The server is needed only when `common.queues.backend` chooses it."""

    url: NatsUrls = text(
        "nats://localhost:4222", "The server; those of a cluster are separated by commas.", variable="NATS_URL"
    )
    prefix: NamePrefix = text("tasker", "First part of every name, so that several databases can share a server.")
    connection_timeout_seconds: float = number(10.0, 0.1, 3600.0, "How long the start waits for the server.")
    ack_wait_seconds: float = number(
        30.0, 1.0, 3600.0, "After how long the messages of a dead process go to others. The same for all processes."
    )
    delivery_limit: int = whole(1000, 1, 1_000_000, "Receptions after which a message is moved to the dead letters.")
    replicas: int = whole(1, 1, 5, "Servers of a cluster that keep each new queue.")


class Queues(Table):
    """Messaging: hints that there is work. The truth is in the database, whichever backend carries them."""

    backend: str = text(
        "pgmq",
        "The messaging backend, by the name it is installed under.",
        variable="TASKER_MESSAGING_BACKEND",
        advice="pgmq needs nothing but the database. Change only for a broker that you run already, or for throughput.",
    )
    default_visibility_timeout_seconds: int = whole(
        30,
        1,
        3600,
        "How long a received message stays hidden before it is delivered again.",
        advice="Covers taking a message, not running its step: a step is protected by its worker's lease.",
    )
    orchestration_queues: OrchestrationQueues = table(OrchestrationQueues)
    pgmq: Pgmq = table(Pgmq)
    rabbitmq: RabbitMq = table(RabbitMq)
    redis: Redis = table(Redis)
    nats: Nats = table(Nats)
