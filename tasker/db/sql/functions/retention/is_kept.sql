-- True if a finished task is kept whatever its age: it has a pending dead letter that is not from before
-- `p_pending_before` (null: of any age), or an open replay includes it.
create or replace function tasker.is_kept(p_task uuid, p_pending_before timestamptz) returns boolean language sql stable as $$
  select exists (select from tasker.tasks_dlq e where e.task_uuid = p_task and e.resolution_status = 'pending'
      and (p_pending_before is null or e.dlq_timestamp >= p_pending_before))
    or exists (select from tasker.dlq_replay_items i join tasker.dlq_replays r on r.replay_uuid = i.replay_uuid
      where i.task_uuid = p_task and i.outcome is null and r.finished_at is null)
$$;
