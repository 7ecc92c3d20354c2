-- The steps of a template that no worker takes now: no live worker serves the namespace, or every one that does has
-- claimed the step before and could not resolve its handler. A worker counts until it drains or its lease expires.
create or replace function tasker.unserved_ordinals(p_namespace text, p_template int) returns int[]
language sql stable as $$
  select array(select ts.ordinal from tasker.template_steps ts
    where ts.template_id = p_template and not exists (
      select from tasker.workers w
      where w.kind = 'worker' and w.stopped_at is null and w.draining_at is null and w.lease_until > tasker.now()
        and p_namespace = any (w.namespaces) and (p_template || ':' || ts.ordinal) <> all (w.unserved)))
$$;
