-- The pauses of a step: of its namespace, its template, its step in the template, its task, and of the tasks
-- for which its task runs (tasker.waiting_above). For a step that is not created yet p_task is null.
create or replace function tasker.pauses_of(p_namespace int, p_template int, p_ordinal int, p_task uuid)
returns setof tasker.pauses
language sql stable as $$
  select p.* from tasker.pauses p
  where p.namespace_id = p_namespace and (p.task_uuid is null or p.task_uuid = p_task)
    and (p.template is null or p.template = (select nt.name from tasker.templates t
      join tasker.named_tasks nt using (named_task_uuid) where t.template_id = p_template))
    and (p.step is null or p.step = (select ts.name from tasker.template_steps ts
      where ts.template_id = p_template and ts.ordinal = p_ordinal))
  union all
  select p.* from tasker.pauses p
  where p.task_uuid is not null   -- else nobody has to look above
    and p.task_uuid = any ((select tasker.waiting_above(p_task))::uuid[])   -- once for all pauses
$$;

-- The tasks above a child task of which a step waits for it, or for the task below them; empty for others.
create or replace function tasker.waiting_above(p_task uuid) returns uuid[]
language plpgsql stable as $$
declare
  v_task uuid := p_task;
  v_above uuid[] := '{}';
begin
  loop   -- as many links as the depth allows
    select l.parent_task into v_task from tasker.task_links l
    where l.child_uuid = v_task
      and (select t.gates & 128 <> 0 from tasker.tasks t where t.task_uuid = l.child_uuid);
    if v_task is null then
      return v_above;
    end if;
    v_above := v_above || v_task;
  end loop;
end
$$;

-- Those of the steps that are paused. The pauses are share-locked until the caller commits: resume_v1 waits,
-- and then finds the steps that the caller backlogged because of them.
-- Locks: pauses (shared).
create or replace function tasker.paused_of(p_steps uuid[]) returns uuid[]
language plpgsql as $$
declare
  v_pauses int[];
  v_answer uuid[];
begin
  select array_agg(distinct f.pause_id) into v_pauses
  from tasker.workflow_steps s
  cross join lateral tasker.pauses_of(s.namespace_id, s.template_id, s.ordinal, s.task_uuid) f
  where s.workflow_step_uuid = any (p_steps);
  if v_pauses is null then
    return '{}';
  end if;
  perform from tasker.pauses p where p.pause_id = any (v_pauses) order by p.pause_id for key share;
  -- a later statement: a pause may have ended meanwhile
  select array_agg(s.workflow_step_uuid) into v_answer
  from tasker.workflow_steps s
  where s.workflow_step_uuid = any (p_steps) and exists (
    select from tasker.pauses_of(s.namespace_id, s.template_id, s.ordinal, s.task_uuid) f
    where f.pause_id = any (v_pauses));
  return coalesce(v_answer, '{}');
end
$$;

-- The ordinals of a template's roots that are paused, and among them those that are backlogged with a mark
-- (tasker.narrowly_paused).
-- Locks: pauses (shared).
create or replace function tasker.paused_roots(p_template int, out held int[], out marked int[])
language plpgsql as $$
declare
  v_namespace int;
  v_roots int[];
begin
  select t.namespace_id, t.roots into v_namespace, v_roots from tasker.templates t
  where t.template_id = p_template;
  perform from tasker.pauses p where p.namespace_id = v_namespace and p.task_uuid is null
  order by p.pause_id for key share;
  held := array(select r.ordinal from unnest(v_roots) as r (ordinal)
    where exists (select from tasker.pauses_of(v_namespace, p_template, r.ordinal, null)));
  marked := array(select r.ordinal from unnest(held) as r (ordinal)
    where tasker.narrowly_paused(v_namespace, p_template, r.ordinal, null));
end
$$;

-- True for a step paused by less than its namespace: by its template, its step or its task. Backlogged steps
-- are marked by it (ready_backlog.paused), so that they are not in the way of others.
create or replace function tasker.narrowly_paused(p_namespace int, p_template int, p_ordinal int, p_task uuid)
returns boolean
language sql stable as $$
  select exists (select from tasker.pauses_of(p_namespace, p_template, p_ordinal, p_task) p
    where num_nonnulls(p.template, p.task_uuid) > 0)
$$;

-- True while a whole namespace is paused. That is one row: the backlogged steps carry no mark for it.
create or replace function tasker.namespace_is_paused(p_namespace int) returns boolean
language sql stable as $$
  select exists (select from tasker.pauses p
    where p.namespace_id = p_namespace and p.template is null and p.step is null and p.task_uuid is null)
$$;

-- The namespaces that are paused as a whole.
create or replace function tasker.paused_namespaces() returns int[]
language sql stable as $$
  select array(select p.namespace_id from tasker.pauses p
    where p.namespace_id is not null and p.template is null and p.task_uuid is null)
$$;
