-- Merges tasks that are about to be created into tasks of the same debounce key that have not begun: their
-- input takes the place of the earlier one, or with `collect` is added to it, and their start moves. A task
-- that is due, has begun or ended, has another template (a new version), or is full is left as it is, and its
-- key passes to the new task. A submission whose identity exists is left to submit_v1, which answers it as a
-- duplicate; one that was merged before, repeated after its answer was lost, is not merged again.
-- Locks: debounce keys, by value, until the end of the transaction; then the tasks of these keys.
-- p_tasks: as submit_v1, with debounce: {value, wait_ms, latest_ms, collect, most, bytes}
-- Returns: {merged: {id: task}, tasks: as p_tasks, with the inputs of those that are merged within the call}.
create or replace function tasker.merge_debounced(p_template int, p_tasks jsonb) returns jsonb
language plpgsql as $$
declare
  v_now constant timestamptz := tasker.now();
  v_namespace int;
  v_name text;
  v_item record;
  v_key tasker.debounces;
  v_start timestamptz;
  v_contexts jsonb := '{}';  -- by task that this call creates
  v_context jsonb;
  v_merged jsonb := '{}';
begin
  select n.namespace_id, n.name into v_namespace, v_name
  from tasker.templates t join tasker.named_tasks n using (named_task_uuid) where t.template_id = p_template;
  insert into tasker.debounces as b (namespace_id, template, value, task_uuid, latest_at, moves_deadline)
  select v_namespace, v_name, f.value, f.id, v_now + tasker.ms(f.latest_ms), f.moves_deadline from (
    select distinct on (g.value) g.* from tasker.debounced_tasks(p_tasks) g order by g.value, g.n) f
  order by f.value
  -- locks the row, also if another task has the key
  on conflict (namespace_id, template, value) do update set task_uuid = b.task_uuid;
  -- in their order, as every write of tasks locks them; not those that ended, which prune_v1 locks before
  -- their keys
  perform from tasker.tasks t where not t.complete and t.task_uuid in (
    select b.task_uuid from tasker.debounces b where b.namespace_id = v_namespace and b.template = v_name
      and b.value in (select g.value from tasker.debounced_tasks(p_tasks) g))
  order by t.task_uuid for no key update;

  for v_item in select * from tasker.debounced_tasks(p_tasks) g order by g.n loop
    select * into v_key from tasker.debounces b
    where b.namespace_id = v_namespace and b.template = v_name and b.value = v_item.value;
    if v_key.task_uuid = v_item.id then
      v_contexts := v_contexts || jsonb_build_object(v_item.id, v_item.context);
    elsif v_item.identity = any (v_key.merged) then
      v_merged := v_merged || jsonb_build_object(v_item.id, v_key.task_uuid);
      continue;
    else
      v_context := coalesce(v_contexts->v_key.task_uuid::text, (
        select d.context from tasker.task_details d join tasker.tasks t using (task_uuid)
        where d.task_uuid = v_key.task_uuid and t.template_id = p_template and t.run_at > v_now
          and not t.complete and not exists (select from tasker.workflow_steps s
            where s.task_uuid = t.task_uuid and s.state <> 'pending')));
      if v_item.collect then
        v_context := case when jsonb_array_length(v_context->'collected') < v_item.most
            and length(v_context::text) + length(v_item.context::text) <= v_item.bytes
          then v_item.context || jsonb_build_object('collected',
            (v_context->'collected') || (v_item.context->'collected')) end;
      elsif v_context is not null then
        v_context := v_item.context;
      end if;
      if v_context is null then   -- a task of its own, which has the key from now on
        v_contexts := v_contexts || jsonb_build_object(v_item.id, v_item.context);
        update tasker.debounces b set task_uuid = v_item.id, merged = '{}', submits = 0,
          latest_at = v_now + tasker.ms(v_item.latest_ms), moves_deadline = v_item.moves_deadline
        where b.namespace_id = v_namespace and b.template = v_name and b.value = v_item.value;
      else
        v_merged := v_merged || jsonb_build_object(v_item.id, v_key.task_uuid);
        if v_contexts ? v_key.task_uuid::text then
          v_contexts := v_contexts || jsonb_build_object(v_key.task_uuid, v_context);
        else
          perform tasker.move_start(v_key.task_uuid, v_context, v_key.moves_deadline,
            least(v_now + tasker.ms(v_item.wait_ms), v_key.latest_at));
        end if;
      end if;
    end if;
    update tasker.debounces b set submits = b.submits + 1,
      merged = (v_item.identity || b.merged)[1:100]   -- of the last ones: repetitions follow soon
    where b.namespace_id = v_namespace and b.template = v_name and b.value = v_item.value;
  end loop;
  return jsonb_build_object('merged', v_merged, 'tasks', (
    select jsonb_agg(case when v_contexts ? (t->>'id')
      then t || jsonb_build_object('context', v_contexts->(t->>'id')) else t end)
    from jsonb_array_elements(p_tasks) t where not v_merged ? (t->>'id')));
end
$$;

-- The tasks of a submission that have a debounce key, in their order.
create or replace function tasker.debounced_tasks(p_tasks jsonb) returns table (n bigint, id uuid,
  identity text, context jsonb, value text, wait_ms numeric, latest_ms numeric, collect boolean, most int,
  bytes bigint, moves_deadline boolean)
language sql stable as $$
  select g.n, g.id, g.identity, g.context, b.value, b.wait_ms, b.latest_ms, b.collect, b.most, b.bytes,
    g.deadline_ms is not null
  from rows from (jsonb_to_recordset(p_tasks) as (id uuid, identity text, context jsonb, debounce jsonb,
    deadline_ms numeric)) with ordinality as g (id, identity, context, debounce, deadline_ms, n)
  cross join jsonb_to_record(g.debounce) as b (value text, wait_ms numeric, latest_ms numeric,
    collect boolean, most int, bytes bigint)
  where g.debounce is not null
    and not exists (select from tasker.task_details d where d.identity_hash = g.identity)
$$;

-- Gives a task that has not begun another input and another start, with the times that count from it: its
-- expiry and, with `p_moves_deadline`, its deadline.
-- Locks: none; the caller has locked the task.
create or replace function tasker.move_start(p_task uuid, p_context jsonb, p_moves_deadline boolean,
  p_start timestamptz) returns void
language plpgsql as $$
declare
  v_shift interval;
  v_deadline timestamptz;
begin
  select p_start - t.run_at into v_shift from tasker.tasks t where t.task_uuid = p_task;
  update tasker.task_details d set context = p_context, context_bytes = pg_column_size(p_context),
    deadline_at = case when p_moves_deadline then d.deadline_at + v_shift else d.deadline_at end
  where d.task_uuid = p_task returning d.deadline_at into v_deadline;
  update tasker.tasks t set run_at = p_start where t.task_uuid = p_task;
  update tasker.timers m set due_at = m.due_at + v_shift
  where m.subject = p_task and (m.kind = 'x' or m.kind = 'd' and p_moves_deadline);
  with begun as (
    select s.workflow_step_uuid, greatest(p_start, case when ts.gates <> 0 then tasker.begins_in_time(
        tasker.step_begins_at(p_task, s.template_id, s.ordinal, p_start), v_deadline) end) as time
    from tasker.timers m join tasker.workflow_steps s on s.workflow_step_uuid = m.subject
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    where m.task_uuid = p_task and m.kind = 'b'
  ), shown as (
    update tasker.workflow_steps s set due_at = b.time from begun b
    where s.workflow_step_uuid = b.workflow_step_uuid
  )
  update tasker.timers m set due_at = b.time from begun b
  where m.subject = b.workflow_step_uuid and m.kind = 'b';
end
$$;
