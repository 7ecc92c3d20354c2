-- Unmatched events and waits, with the pairs of the same name and key. The caller checks each payload
-- against the schema, writes the pair (match_event_v1, refuse_event_v1), and calls looked_v1. This only
-- reads, so after a crash the next caller gets the same answer.
-- A handler that waits again gets no event twice.
-- p_args: {limit: of pairs, events: of events and of waits}
-- Returns: {pairs: [{event, payload, name, key, step, token, nth, task, template, ordinal, wait: of a
--   handler}], events: [uuid], waits: [[step, token, nth]]: completely matched with these pairs, more: true
--   if there may be more}
create or replace function tasker.unmatched_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
  with bounds as materialized (
    select tasker.required(p_args, 'limit')::int as pairs, tasker.required(p_args, 'events')::int as events
  ), sent as materialized (
    select e.* from tasker.incoming_events e where e.routed_at is null
    order by e.event_uuid limit (select b.events from bounds b)
  ), waiting as materialized (
    select w.* from tasker.step_waits w where w.kind <> 'c' and not w.probed and w.ended_at is null
    order by w.since limit (select b.events from bounds b)
  ), met as (
    select s.event_uuid, w.workflow_step_uuid, w.token, w.nth, w.task_uuid,
      case w.kind when 'h' then w.detail end as wait
    from sent s join tasker.step_waits w on w.namespace_id = s.namespace_id and w.event = s.name
      and w.key = s.key and w.ended_at is null
    where s.taken_by is null
    union
    select e.event_uuid, w.workflow_step_uuid, w.token, w.nth, w.task_uuid,
      case w.kind when 'h' then w.detail end
    from waiting w join tasker.incoming_events e on e.namespace_id = w.namespace_id and e.name = w.event
      and e.key = w.key and e.taken_by is null
  ), pair as materialized (
    select m.*, e.payload, e.name, e.key, s.template_id, s.ordinal
    from met m join tasker.incoming_events e on e.event_uuid = m.event_uuid
    join tasker.workflow_steps s on s.workflow_step_uuid = m.workflow_step_uuid
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    join tasker.tasks t on t.task_uuid = m.task_uuid
    where e.expires_at > tasker.now()
      -- an event of a long transaction is older than it was ever to be seen
      and (ts.wait->>'since' = 'any' or e.routed_at is null or e.routed_at >= t.created_at)
      and not exists (select from tasker.wait_events x where x.workflow_step_uuid = m.workflow_step_uuid
        and x.event_uuid = m.event_uuid and (x.token = m.token and (x.nth = m.nth or x.problem is null)
        or m.wait is not null and x.problem is null))
    order by m.event_uuid, m.workflow_step_uuid, m.nth
    limit (select b.pairs + 1 from bounds b)
  ), full_page as materialized (
    select count(*) > (select b.pairs from bounds b) as more from pair
  )
  select jsonb_build_object('more', (select f.more from full_page f)
      or (select count(*) from sent) = (select b.events from bounds b)
      or (select count(*) from waiting) = (select b.events from bounds b),
    'pairs', coalesce((select jsonb_agg(jsonb_build_object('event', p.event_uuid, 'payload', p.payload,
        'name', p.name, 'key', p.key, 'step', p.workflow_step_uuid, 'token', p.token, 'nth', p.nth,
        'task', p.task_uuid, 'template', p.template_id, 'ordinal', p.ordinal, 'wait', p.wait)
        order by p.event_uuid, p.workflow_step_uuid, p.nth)
      from (select * from pair limit (select b.pairs from bounds b)) p), '[]'),
    'events', case when (select f.more from full_page f) then '[]'
      else coalesce((select jsonb_agg(s.event_uuid) from sent s), '[]') end,
    'waits', case when (select f.more from full_page f) then '[]'
      else coalesce((select jsonb_agg(jsonb_build_array(w.workflow_step_uuid, w.token, w.nth))
        from waiting w), '[]') end)
$$;

-- Marks these events and waits as matched: all their pairs are written.
-- Locks: events (skips), waits (skips).
-- p_args: {events, waits} as unmatched_v1 answered them.
-- Returns: {}
create or replace function tasker.looked_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
begin
  perform tasker.require_read_committed();
  update tasker.incoming_events e set routed_at = tasker.now()
  where e.event_uuid = any (array(select x.event_uuid from tasker.incoming_events x
    where x.event_uuid = any (array(select jsonb_array_elements_text(p_args->'events')::uuid))
      and x.routed_at is null order by x.event_uuid for update skip locked));
  update tasker.step_waits w set probed = true
  where (w.workflow_step_uuid, w.token, w.nth) in (
    select x.workflow_step_uuid, x.token, x.nth from tasker.step_waits x
    where (x.workflow_step_uuid, x.token, x.nth) in (select (i->>0)::uuid, (i->>1)::bigint, (i->>2)::int
        from jsonb_array_elements(p_args->'waits') i)
      and not x.probed for update skip locked);
  return '{}';
end
$$;
