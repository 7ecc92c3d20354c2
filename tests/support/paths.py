"""Every path of states that one write of the engine walks, written down by hand: what its tables are held against.

Each constant begins with the state that the subject is in.
"""

from __future__ import annotations

from typing import Final

from tasker.engine.states.step import OPEN_TO_OPERATORS, StepState
from tasker.engine.states.step_changes import StepPath
from tasker.engine.states.task import TaskPath, TaskState

_S = StepState

# Towards a worker.
STEP_ENQUEUE: Final[StepPath] = (_S.PENDING, _S.ENQUEUED)
STEP_CLAIM: Final[StepPath] = (_S.ENQUEUED, _S.IN_PROGRESS)
STEP_HAND_OVER: Final[StepPath] = (_S.PENDING, _S.ENQUEUED, _S.IN_PROGRESS)
STEP_RELEASE: Final[StepPath] = (_S.IN_PROGRESS, _S.ENQUEUED)
STEP_DEFER: Final[StepPath] = (_S.IN_PROGRESS, _S.WAITING_FOR_RETRY)
STEP_PUT_ASIDE: Final[StepPath] = (_S.ENQUEUED, _S.PENDING)

# What an attempt came to: written at once (inline), or parked by the worker and settled by an orchestrator (queued).
STEP_SUCCEED: Final[StepPath] = (_S.IN_PROGRESS, _S.ENQUEUED_FOR_ORCHESTRATION, _S.COMPLETE)
STEP_RUN_AHEAD: Final[StepPath] = (*STEP_HAND_OVER, *STEP_SUCCEED[1:])
STEP_PARK_SUCCESS: Final[StepPath] = STEP_SUCCEED[:2]
STEP_SETTLE_SUCCESS: Final[StepPath] = STEP_SUCCEED[1:]
STEP_RETRY_LATER: Final[StepPath] = (
    _S.IN_PROGRESS,
    _S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION,
    _S.WAITING_FOR_RETRY,
)
STEP_FAIL: Final[StepPath] = (_S.IN_PROGRESS, _S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION, _S.ERROR)
STEP_PARK_FAILURE: Final[StepPath] = STEP_FAIL[:2]
STEP_SETTLE_RETRY: Final[StepPath] = STEP_RETRY_LATER[1:]
STEP_SETTLE_FAILURE: Final[StepPath] = STEP_FAIL[1:]
STEP_REFUSE_PARKED_SUCCESS: Final[StepPath] = (_S.ENQUEUED_FOR_ORCHESTRATION, _S.ERROR)
STEP_FAIL_UNSTARTED: Final[StepPath] = (_S.PENDING, _S.ERROR)
STEP_FAIL_UNSERVED: Final[StepPath] = (_S.ENQUEUED, _S.ERROR)
STEP_EXPIRE_RETRY: Final[StepPath] = (_S.WAITING_FOR_RETRY, _S.PENDING, _S.ERROR)

# After the backoff: waiting_for_retry -> enqueued is no edge.
STEP_PROMOTE: Final[StepPath] = (_S.WAITING_FOR_RETRY, _S.PENDING, _S.ENQUEUED)
STEP_PROMOTE_HELD: Final[StepPath] = STEP_PROMOTE[:2]
STEP_PROMOTE_HAND_OVER: Final[StepPath] = (*STEP_PROMOTE, _S.IN_PROGRESS)

# Operators.
STEP_RESET: Final[StepPath] = (_S.ERROR, _S.PENDING, _S.ENQUEUED)
STEP_RESET_HELD: Final[StepPath] = STEP_RESET[:2]
STEP_CANCEL: Final[list[StepPath]] = [(s, _S.CANCELLED) for s in OPEN_TO_OPERATORS]
STEP_RESOLVE: Final[list[StepPath]] = [(s, _S.RESOLVED_MANUALLY) for s in OPEN_TO_OPERATORS]
STEP_COMPLETE: Final[list[StepPath]] = [(s, _S.COMPLETE) for s in OPEN_TO_OPERATORS]

_T = TaskState

TASK_SUBMIT: Final[TaskPath] = (_T.PENDING, _T.INITIALIZING, _T.ENQUEUING_STEPS, _T.STEPS_IN_PROCESS)
TASK_SUBMIT_HELD: Final[TaskPath] = (_T.PENDING, _T.INITIALIZING, _T.WAITING_FOR_DEPENDENCIES)
TASK_SUBMIT_EMPTY: Final[TaskPath] = (_T.PENDING, _T.INITIALIZING, _T.COMPLETE)
TASK_MORE_STEPS: Final[TaskPath] = (
    _T.STEPS_IN_PROCESS,
    _T.EVALUATING_RESULTS,
    _T.ENQUEUING_STEPS,
    _T.STEPS_IN_PROCESS,
)
TASK_WAIT_FOR_SIBLINGS: Final[TaskPath] = (
    _T.STEPS_IN_PROCESS,
    _T.EVALUATING_RESULTS,
    _T.WAITING_FOR_DEPENDENCIES,
)
TASK_WAIT_FOR_RETRY: Final[TaskPath] = (_T.STEPS_IN_PROCESS, _T.WAITING_FOR_RETRY)
TASK_RETRY: Final[TaskPath] = (_T.WAITING_FOR_RETRY, _T.ENQUEUING_STEPS, _T.STEPS_IN_PROCESS)
TASK_COMPLETE: Final[TaskPath] = (_T.STEPS_IN_PROCESS, _T.EVALUATING_RESULTS, _T.COMPLETE)
TASK_BLOCK: Final[TaskPath] = (_T.STEPS_IN_PROCESS, _T.EVALUATING_RESULTS, _T.BLOCKED_BY_FAILURES)
TASK_GIVE_UP: Final[TaskPath] = (*TASK_BLOCK, _T.ERROR)
TASK_REOPEN: Final[TaskPath] = (_T.ERROR, _T.ENQUEUING_STEPS, _T.STEPS_IN_PROCESS)
TASK_RESOLVE: Final[TaskPath] = (_T.BLOCKED_BY_FAILURES, _T.RESOLVED_MANUALLY)
