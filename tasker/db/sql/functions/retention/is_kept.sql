-- Whether a finished task stays however old it is: a person is still to look at it, or a replay to deal with it.
create or replace function tasker.is_kept(p_task uuid) returns boolean language sql stable as $$
  select exists (select from tasker.tasks_dlq e where e.task_uuid = p_task and e.resolution_status = 'pending')
    or exists (select from tasker.dlq_replay_items i join tasker.dlq_replays r on r.replay_uuid = i.replay_uuid
      where i.task_uuid = p_task and i.outcome is null and r.finished_at is null)
$$;
