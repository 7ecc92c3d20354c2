-- The steps ("template:ordinal") of these namespaces that everybody who is at work there has taken and could not resolve.
-- Where nobody is at work there are none: whoever comes may have every handler.
create or replace function tasker.refused_by_all(p_namespaces int[]) returns text[]
language sql stable as $$
  select array(
    select r.key from tasker.task_namespaces ns
    cross join lateral (
      select k.key from (
        select w.unserved, count(*) over () as workers from tasker.workers w
        where w.kind = 'worker' and w.stopped_at is null and w.draining_at is null and w.lease_until > tasker.now()
          and ns.name = any (w.namespaces)) w
      cross join unnest(w.unserved) as k (key)
      group by k.key, w.workers having count(*) = w.workers) r
    join tasker.templates t on t.template_id = split_part(r.key, ':', 1)::int and t.namespace_id = ns.namespace_id
    where ns.namespace_id = any (p_namespaces))
$$;
