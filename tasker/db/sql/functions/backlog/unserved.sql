-- As tasker.unserved_by_all_workers, for a caller that sets these steps aside: no worker starts to serve the
-- namespaces before the caller commits, so no worker misses steps that were set aside while it started.
-- Returns nothing for namespaces that a worker starts to serve right now.
-- Locks: unserved steps of a namespace (advisory, without waiting). Starting workers share it among
--   themselves (tasker.serve_worker).
create or replace function tasker.unserved_keys(p_namespaces int[]) returns text[]
language plpgsql as $$
declare
  v_locked int[] := '{}';
  v_namespace int;
begin
  if cardinality(tasker.unserved_by_all_workers(p_namespaces)) = 0 then
    return '{}';
  end if;
  foreach v_namespace in array p_namespaces loop
    if pg_try_advisory_xact_lock(v_namespace, -1) then
      v_locked := v_locked || v_namespace;
    end if;
  end loop;
  return tasker.unserved_by_all_workers(v_locked);   -- a later statement: a worker may have started meanwhile
end
$$;

-- The steps ("template:ordinal") of these namespaces that every live worker there has claimed without being
-- able to resolve the handler. Empty for a namespace without live workers: the next worker to start may have
-- every handler.
create or replace function tasker.unserved_by_all_workers(p_namespaces int[]) returns text[]
language sql stable as $$
  with live as materialized (
    select w.namespaces, w.unserved from tasker.workers w
    where w.kind = 'worker' and w.stopped_at is null and w.draining_at is null
      and w.lease_until > tasker.now()
  -- starts from the refusals, which are few: the namespaces of all workers are many
  ), refused as materialized (
    select k.key, ns.name, count(*) as workers from live w cross join unnest(w.unserved) as k (key)
    join tasker.templates t on t.template_id = split_part(k.key, ':', 1)::int
      and t.namespace_id = any (p_namespaces)
    join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
    where ns.name = any (w.namespaces) group by k.key, ns.name
  )
  select array(select r.key from refused r
      where r.workers = (select count(*) from live w where r.name = any (w.namespaces)))
$$;

-- Sets aside unserved backlogged steps: they wait for a worker that may have their handler
-- (tasker.probe_unserved), not for room, and keep their rank. Steps that were refused before keep the time of
-- the first refusal. The caller has called tasker.unserved_keys.
-- Locks: backlog (skips).
create or replace function tasker.mark_unserved(p_steps uuid[]) returns void
language plpgsql as $$
begin
  with lost as materialized (
    select b.workflow_step_uuid, s.template_id, s.ordinal, s.claim_token from tasker.ready_backlog b
    join tasker.workflow_steps s on s.workflow_step_uuid = b.workflow_step_uuid
    where b.workflow_step_uuid = any (p_steps)
    order by b.workflow_step_uuid for no key update of b skip locked
  ), marked as (
    update tasker.ready_backlog b set unserved = l.template_id || ':' || l.ordinal
    from lost l where b.workflow_step_uuid = l.workflow_step_uuid
  )
  insert into tasker.unserved_steps as u (workflow_step_uuid, claim_token, callable, since)
  select l.workflow_step_uuid, l.claim_token, tasker.served_by(ts), tasker.now()
  from lost l join tasker.template_steps ts on ts.template_id = l.template_id and ts.ordinal = l.ordinal
  on conflict (workflow_step_uuid) do update set claim_token = excluded.claim_token,
    callable = excluded.callable, since = excluded.since where u.claim_token <> excluded.claim_token;
end
$$;

-- Stores which released steps a worker could not resolve (note `unserved`: no handler), or whose template it
-- cannot read (note `unreadable`). For the step it stores the time of the first refusal, which stays as long
-- as only refusals move the token (each is a claim and a release). For the worker it stores the step, so that
-- it is not offered again.
-- Locks: unserved steps, worker.
create or replace function tasker.record_unreadable_templates(p_judged tasker.judged_change[],
  p_now timestamptz) returns void
language plpgsql as $$
begin
  insert into tasker.unserved_steps as u (workflow_step_uuid, claim_token, callable, since)
  select j.step_uuid, j.token, coalesce(j.note->>'unserved', (select tasker.served_by(ts)
    from tasker.template_steps ts
    where ts.template_id = j.template_id and ts.ordinal = j.ordinal)), p_now
  from unnest(p_judged) j where tasker.kind_notes_unserved(j.kind) and j.note ?| '{unserved,unreadable}'
  on conflict (workflow_step_uuid) do update set claim_token = excluded.claim_token,
    callable = excluded.callable,
    since = case when u.claim_token = excluded.claim_token - 2 then u.since else excluded.since end;
  update tasker.workers w set unserved = array(select distinct k from unnest(w.unserved || r.keys) k),
    unreadable = array(select distinct t from unnest(w.unreadable || r.templates) t)
  from (select j.worker_uuid, array_agg(j.template_id || ':' || j.ordinal) as keys,
      array_agg(j.template_id) filter (where j.note ? 'unreadable') as templates from unnest(p_judged) j
    where tasker.kind_notes_unserved(j.kind) and j.note ?| '{unserved,unreadable}' group by j.worker_uuid) r
  where w.worker_uuid = r.worker_uuid;
end
$$;

-- What a worker needs to run a step, in words: the handler, the tags that it requires, several slots.
create or replace function tasker.served_by(p_step tasker.template_steps) returns text
language sql immutable parallel safe as $$
  select p_step.handler || case cardinality(p_step.requires) when 0 then ''
    when 1 then ' with the tag ' || p_step.requires[1]
    else ' with the tags ' || array_to_string(p_step.requires, ', ') end
    || case when p_step.slots > 1 then ' with ' || p_step.slots || ' slots' else '' end
$$;

-- The largest number of slots of a live worker of the namespace, if the step uses more; else null.
create or replace function tasker.too_few_slots(p_namespace text, p_template int, p_ordinal int) returns int
language sql stable as $$
  select m.slots from tasker.template_steps ts
  cross join lateral (select max(w.concurrency) as slots from tasker.workers w
    where w.kind = 'worker' and w.stopped_at is null and w.draining_at is null
      and w.lease_until > tasker.now() and p_namespace = any (w.namespaces)) m
  where ts.template_id = p_template and ts.ordinal = p_ordinal and ts.slots > m.slots
$$;

-- The tags that a step requires and no live worker of the namespace has. If each tag is on some worker, but
-- none has all of them: all tags. Null if a worker has all, or the step requires none.
create or replace function tasker.missing_tags(p_namespace text, p_template int, p_ordinal int)
returns text[]
language sql stable as $$
  with live as materialized (
    select w.tags from tasker.workers w
    where w.kind = 'worker' and w.stopped_at is null and w.draining_at is null
      and w.lease_until > tasker.now() and p_namespace = any (w.namespaces)
  )
  select case when exists (select from live l where l.tags @> ts.requires) then null
    else coalesce((select array_agg(r.tag order by r.tag) from unnest(ts.requires) as r (tag)
      where not exists (select from live l where r.tag = any (l.tags))), ts.requires) end
  from tasker.template_steps ts where ts.template_id = p_template and ts.ordinal = p_ordinal
    and cardinality(ts.requires) > 0
$$;

-- The steps of a template that no worker takes now: no live worker serves the namespace, or every one that
-- does has claimed the step before and could not resolve its handler. A worker counts until it drains or its
-- lease expires.
create or replace function tasker.unserved_ordinals(p_namespace text, p_template int) returns int[]
language sql stable as $$
  select array(select ts.ordinal from tasker.template_steps ts
    where ts.template_id = p_template and not exists (
      select from tasker.workers w
      where w.kind = 'worker' and w.stopped_at is null and w.draining_at is null
        and w.lease_until > tasker.now()
        and p_namespace = any (w.namespaces) and (p_template || ':' || ts.ordinal) <> all (w.unserved)))
$$;

-- True for a step that waits for a worker: it is in the queue, or set aside because no worker has its
-- handler.
create or replace function tasker.has_no_live_worker(p_step tasker.workflow_steps) returns boolean
language sql stable as $$
  select p_step.state = 'enqueued' or tasker.step_is_to_run(p_step.state) and p_step.unmet = 0 and exists (
    select from tasker.ready_backlog b
    where b.workflow_step_uuid = p_step.workflow_step_uuid and b.unserved is not null)
$$;
