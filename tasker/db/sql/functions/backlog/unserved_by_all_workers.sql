-- The steps ("template:ordinal") of these namespaces that every live worker there has claimed without being able to
-- resolve the handler. Empty for a namespace without live workers: the next worker to start may have every handler.
create or replace function tasker.unserved_by_all_workers(p_namespaces int[]) returns text[]
language sql stable as $$
  with live as materialized (
    select w.namespaces, w.unserved from tasker.workers w
    where w.kind = 'worker' and w.stopped_at is null and w.draining_at is null and w.lease_until > tasker.now()
  ), refused as materialized (   -- starts from the refusals, which are few: the namespaces of all workers are many
    select k.key, ns.name, count(*) as workers from live w cross join unnest(w.unserved) as k (key)
    join tasker.templates t on t.template_id = split_part(k.key, ':', 1)::int and t.namespace_id = any (p_namespaces)
    join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
    where ns.name = any (w.namespaces) group by k.key, ns.name
  )
  select array(select r.key from refused r where r.workers = (select count(*) from live w where r.name = any (w.namespaces)))
$$;
