-- Plans a replay of the pending entries that match the filter, in the order of their arrival, and starts it
-- unless `dry_run` is set.
-- p_args: {fingerprint, namespace, template, reason, since, before, limit, rate, actor, why, dry_run}
-- Returns: {replay: uuid|null, tasks: count, steps, once: steps that are not reset, templates: {name: tasks}}
create or replace function tasker.replay_plan_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_fingerprint constant text := p_args->>'fingerprint';
  v_rate constant double precision := (p_args->>'rate')::double precision;
  v_entries uuid[];
  v_replay uuid;
  v_answer jsonb;
begin
  v_entries := array(select e.dlq_entry_uuid from tasker.tasks_dlq e
    where e.resolution_status = 'pending'
      and (v_fingerprint is null or e.fingerprints @> array[v_fingerprint])
      and (p_args->>'namespace' is null or e.namespace = p_args->>'namespace')
      and (p_args->>'template' is null or e.template = p_args->>'template')
      and (p_args->>'reason' is null or e.dlq_reason::text = p_args->>'reason')
      and (p_args->>'since' is null or e.dlq_timestamp >= (p_args->>'since')::timestamptz)
      and exists (select from tasker.replayable(e.task_uuid, v_fingerprint) r where not r.once)
    order by e.dlq_timestamp, e.dlq_entry_uuid limit (p_args->>'limit')::int);

  select jsonb_build_object('tasks', cardinality(v_entries), 'steps', coalesce(sum(q.steps), 0),
    'once', coalesce(sum(q.once), 0), 'templates', coalesce((select jsonb_object_agg(t.name, t.tasks) from (
      select concat(e.namespace, '/', e.template) as name, count(*) as tasks
      from tasker.tasks_dlq e where e.dlq_entry_uuid = any (v_entries) group by 1) t), '{}')) into v_answer
  from (select count(*) filter (where not r.once) as steps, count(*) filter (where r.once) as once
    from tasker.tasks_dlq e cross join lateral tasker.replayable(e.task_uuid, v_fingerprint) r
    where e.dlq_entry_uuid = any (v_entries)) q;

  if v_entries <> '{}' and not coalesce((p_args->>'dry_run')::boolean, false) then
    insert into tasker.dlq_replays (state, filter, fingerprint, rate_per_second, actor, reason, total,
      created_at, paced_at)
    values ('running', p_args - '{rate,actor,why,dry_run}'::text[], v_fingerprint, v_rate, p_args->>'actor',
      p_args->>'why',
      cardinality(v_entries), v_now, v_now - interval '1 second' / v_rate) returning replay_uuid
    into v_replay;
    insert into tasker.dlq_replay_items (replay_uuid, position, dlq_entry_uuid, task_uuid)
    select v_replay, u.position, e.dlq_entry_uuid, e.task_uuid
    from unnest(v_entries) with ordinality u (entry, position)
    join tasker.tasks_dlq e on e.dlq_entry_uuid = u.entry;
  end if;
  return v_answer || jsonb_build_object('replay', v_replay);
end
$$;

-- The steps of a task that a replay resets: those in `error`, of one fingerprint or of any, that may run
-- again. A lost step that may run only once (on_worker_lost: fail) is marked `once`: an operator must name
-- it.
create or replace function tasker.replayable(p_task uuid, p_fingerprint text)
returns table (step_uuid uuid, name text, once boolean)
language sql stable
as $$
  select s.workflow_step_uuid, s.name,
    ts.on_worker_lost = 'fail' and coalesce(f.error_type in ('worker_lost', 'outcome_unknown'), false)
  from tasker.workflow_steps s
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  left join lateral (select x.error->>'error_type' as error_type, x.error->>'fingerprint' as fingerprint
    from tasker.step_failures x
    where x.task_uuid = s.task_uuid and x.workflow_step_uuid = s.workflow_step_uuid
    order by x.failure_id desc limit 1) f on true
  where s.task_uuid = p_task and s.state = 'error' and s.settled is null
    and (p_fingerprint is null or f.fingerprint = p_fingerprint)
    and tasker.is_repaired_with_its_task(p_task, ts)
$$;
