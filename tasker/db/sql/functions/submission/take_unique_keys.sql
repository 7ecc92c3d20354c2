-- Takes the unique keys of tasks that are about to be created: returns, for those that may not be, the task
-- that runs under their key, which may be one of the same call. A key belongs to a template in all its
-- versions. If the task of a key has ended, the key is taken from it here; the end of a task writes nothing.
-- A submission whose identity exists already takes no key: submit_v1 answers it as a duplicate.
-- Locks: unique keys, by value, until the end of the transaction.
-- p_tasks: [{id, identity, unique}]; one without `unique` takes no key
create or replace function tasker.take_unique_keys(p_template int, p_tasks jsonb) returns jsonb
language plpgsql as $$
declare
  v_namespace int;
  v_name text;
  v_running jsonb;
begin
  select n.namespace_id, n.name into v_namespace, v_name
  from tasker.templates t join tasker.named_tasks n using (named_task_uuid) where t.template_id = p_template;

  insert into tasker.unique_keys as k (namespace_id, template, value, task_uuid)
  select v_namespace, v_name, f.value, f.id from (
    select distinct on (g.value) g.value, g.id from tasker.keyed_tasks(p_tasks) g order by g.value, g.n) f
  order by f.value
  -- locks the row, also if another task has the key
  on conflict (namespace_id, template, value) do update set task_uuid = k.task_uuid;

  -- a later statement: it sees the tasks that earlier holders of these locks have committed
  update tasker.unique_keys k set task_uuid = f.id
  from (select distinct on (g.value) g.value, g.id from tasker.keyed_tasks(p_tasks) g order by g.value, g.n) f
  where k.namespace_id = v_namespace and k.template = v_name and k.value = f.value and k.task_uuid <> f.id
    and not exists (select from tasker.tasks t where t.task_uuid = k.task_uuid and not t.complete);

  select jsonb_object_agg(g.id, k.task_uuid) into v_running
  from tasker.keyed_tasks(p_tasks) g
  join tasker.unique_keys k on k.namespace_id = v_namespace and k.template = v_name and k.value = g.value
  where k.task_uuid <> g.id;
  return coalesce(v_running, '{}');
end
$$;

-- The tasks that need a unique key, in their order.
create or replace function tasker.keyed_tasks(p_tasks jsonb) returns table (n bigint, id uuid, value text)
language sql stable as $$
  select g.n, g.id, g."unique" from rows from (
    jsonb_to_recordset(p_tasks) as (id uuid, identity text, "unique" text)) with ordinality
    as g (id, identity, "unique", n)
  where g."unique" is not null
    and not exists (select from tasker.task_details d where d.identity_hash = g.identity)
$$;

-- A field of the answer of submit_v1: tasks that were not created because another one has their key.
create or replace function tasker.running_tasks(p_field text, p_running jsonb) returns jsonb
language plpgsql stable as $$
begin
  if p_running = '{}' then
    return '{}';
  end if;
  return (select case when count(*) = 0 then '{}' else jsonb_build_object(p_field,
      jsonb_object_agg(r.key, jsonb_build_array(t.task_uuid, t.state, t.total))) end
    from jsonb_each_text(p_running) r join tasker.tasks t on t.task_uuid = r.value::uuid);
end
$$;
