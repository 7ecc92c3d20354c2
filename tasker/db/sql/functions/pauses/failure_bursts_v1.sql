-- Detects failure bursts: steps of templates of which more attempts failed within a window than allowed,
-- counted since their pause was last resumed. Ends one expired pause of this kind, else pauses the target of
-- one burst, as actor `tasker`; the caller repeats the call while there is `more`. Only one per call, because
-- each pause and each resumption locks its namespace, the pause and backlogged steps until the commit, and
-- other transactions lock those of several namespaces in an order of their own. Reads only the failures of
-- the window (index on their time). Of two concurrent callers one does the work.
-- Locks: failure bursts (advisory, without waiting), then as pause_v1 or resume_v1.
-- p_args: {failures, window_seconds, pauses: namespace|template|step, resume_seconds (0: never)}
-- Returns: {paused: [{target, reason}], resumed: [target], more: true if there may be more}
create or replace function tasker.failure_bursts_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_resume constant interval := tasker.ms((p_args->>'resume_seconds')::numeric * 1000);
  v_by constant text := p_args->>'pauses';
  v_answer constant jsonb := '{"paused": [], "resumed": []}';
  v_storm record;
  v_pause record;
  v_target jsonb;
begin
  if not pg_try_advisory_xact_lock(hashtext('tasker.failure_bursts_v1')) then
    return v_answer;
  end if;
  select ns.name as namespace, p.template, p.step into v_pause
  from tasker.pauses p join tasker.task_namespaces ns using (namespace_id)
  where v_resume > interval '0' and p.actor = 'tasker' and p.reason like 'failure\_storm:%'
    and p.task_uuid is null
    and p.paused_at <= v_now - v_resume
  order by p.pause_id limit 1;
  if found then
    v_target := jsonb_strip_nulls(to_jsonb(v_pause));
    if (tasker.resume_v1(v_target || jsonb_build_object('actor', 'tasker',
        'reason', 'failure_storm: its time is over', 'slice', p_args->'slice'))->>'resumed')::boolean then
      return v_answer || jsonb_build_object('more', true,
        'resumed', jsonb_build_array(concat_ws('/', v_pause.namespace, v_pause.template, v_pause.step)));
    end if;
    return v_answer || '{"more": true}';
  end if;

  select f.namespace, f.template, f.step, count(*) as failures,
    (array_agg(f.error order by f.created_at desc))[1] as error
  into v_storm
  from (select s.namespace_id, ns.name as namespace, nt.name as template, ts.name as step,
    f.error, f.created_at
    from tasker.step_failures f
    join tasker.workflow_steps s on s.workflow_step_uuid = f.workflow_step_uuid
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    join tasker.templates t on t.template_id = s.template_id
    join tasker.named_tasks nt using (named_task_uuid)
    join tasker.task_namespaces ns on ns.namespace_id = s.namespace_id
    where f.created_at > v_now - tasker.ms((p_args->>'window_seconds')::numeric * 1000)) f
  where f.created_at > coalesce((select max(l.created_at) from tasker.pause_log l where l.action = 'resume'
      and l.target in (f.namespace, concat_ws('/', f.namespace, f.template),
        concat_ws('/', f.namespace, f.template, f.step))),
      '-infinity')
    and not exists (select from tasker.pauses p where p.namespace_id = f.namespace_id and p.task_uuid is null
      and p.template is not distinct from case when v_by in ('template', 'step') then f.template end
      and p.step is not distinct from case when v_by = 'step' then f.step end)
  group by f.namespace, f.template, f.step having count(*) > (p_args->>'failures')::numeric
  order by f.namespace, f.template, f.step limit 1;
  if not found then
    return v_answer;
  end if;
  v_target := jsonb_build_object('namespace', v_storm.namespace, 'slice', p_args->'slice', 'actor', 'tasker',
    'reason', format(
    'failure_storm: %s failures of %s/%s/%s within %s s, the last one: %s: %s', v_storm.failures,
    v_storm.namespace, v_storm.template, v_storm.step, p_args->>'window_seconds',
    v_storm.error->>'error_type', left(split_part(v_storm.error->>'message', E'\n', 1), 200)));
  if v_by in ('template', 'step') then
    v_target := v_target || jsonb_build_object('template', v_storm.template);
  end if;
  if v_by = 'step' then
    v_target := v_target || jsonb_build_object('step', v_storm.step);
  end if;
  if (tasker.pause_v1(v_target)->>'paused')::boolean then
    return v_answer || jsonb_build_object('more', true, 'paused', jsonb_build_array(jsonb_build_object(
      'reason', v_target->>'reason',
      'target', concat_ws('/', v_target->>'namespace', v_target->>'template', v_target->>'step'))));
  end if;
  return v_answer || '{"more": true}';
end
$$;
