-- Decides the place of each step that lost a parent or is to run: `claim` (handed off to the caller, while
-- it has slots and serves the step), `enqueue` (while the namespace has room), `hold` (beyond the enqueue
-- window, or until its time), `suspend` (it waits by itself, without a worker) or `wait` (parents are
-- missing). A suspended step needs no room, and no pause stops it. A step with a time waits for it once,
-- when it becomes ready: not again when it is released, retried or reset. Paused steps are backlogged too,
-- and marked unless their whole namespace is paused. Urgent tasks come first, then the order of the
-- template. A released step (`unhold`) may use the whole window, others only tasker.window_room. In an
-- ordered namespace nothing is enqueued: a step is backlogged unless it is handed off, and it is not while
-- more urgent ones wait.
create or replace function tasker.place_ready(p_ready tasker.ready_step[], p_slots int, p_namespaces int[],
  p_unserved text[], p_window int, p_timeout_ms bigint,
  p_judged tasker.judged_change[]) returns tasker.placed_step[]
language plpgsql as $$
declare
  v_answer tasker.placed_step[];
  v_paused uuid[] := '{}';
  v_pauses boolean;
  v_gated boolean;
  v_begun uuid[];          -- steps whose time has come: they pass none that wait for room
  v_times jsonb := '{}';   -- by step, if it is later than now
  v_limited uuid[] := '{}';   -- steps that wait for a permit
  v_waits jsonb := '{}';      -- by step that is suspended: until when, or null
  v_ordered int[];            -- namespaces
  v_outranked uuid[] := '{}'; -- steps that let a more urgent one pass
begin
select exists (select from tasker.pauses), exists (select from tasker.tasks t
  where t.task_uuid = any (array(select distinct r.task_uuid from unnest(p_ready) r where r.ready))
    and t.gates & ~128 <> 0),
  array(select j.step_uuid from unnest(p_judged) j where j.note ? 'waited_until'),
  array(select n.namespace_id from tasker.task_namespaces n where n.ordered
    and n.namespace_id = any (array(select r.namespace_id from unnest(p_ready) r where r.ready)))
into v_pauses, v_gated, v_begun, v_ordered;
if cardinality(v_ordered) > 0 then   -- a step of the backlog is here because it is the first one
  v_outranked := array(select r.step_uuid from unnest(p_ready) r
    where r.ready and (tasker.yields(r.namespace_id, r.priority)
        or tasker.yields_in_turn(r.namespace_id, r.task_uuid, r.template_id))
      and not exists (select from tasker.ready_backlog b where b.workflow_step_uuid = r.step_uuid));
end if;
if v_pauses then
  v_paused := tasker.paused_of(array(select r.step_uuid from unnest(p_ready) r where r.ready));
end if;
if v_gated then
  select coalesce(jsonb_object_agg(g.step_uuid, greatest(g.begins_at, tasker.now())), '{}')
  into v_times from (
    select r.step_uuid, tasker.begins_in_time(tasker.step_begins_at(r.task_uuid, r.template_id, r.ordinal,
          tasker.now(), p_judged),
      (select m.due_at from tasker.timers m where m.subject = r.task_uuid and m.kind = 'd')) as begins_at
    from unnest(p_ready) r
    join tasker.template_steps ts on ts.template_id = r.template_id and ts.ordinal = r.ordinal
    where r.ready and not r.moved and ts.gates & ~12304 <> 0 offset 0) g
  -- no time or key, or after the deadline: due_v1 fails the step
  where g.begins_at > tasker.now() or g.begins_at = '-infinity';
  v_limited := array(select r.step_uuid from unnest(p_ready) r
    join tasker.template_steps ts on ts.template_id = r.template_id and ts.ordinal = r.ordinal
    where r.ready and ts.gates & 1 <> 0 and tasker.path_end(r.path) <> 'enqueued'
      and (r.step_uuid <> all (v_paused) or ts.gates & 8 <> 0)
      and not v_times ? r.step_uuid::text and tasker.lacks_permit(r.step_uuid, r.template_id, r.ordinal));
  select coalesce(jsonb_object_agg(r.step_uuid, tasker.wait_ends_at(r.task_uuid, ts.wait, tasker.now(),
    p_judged)), '{}')
  into v_waits from unnest(p_ready) r
  join tasker.template_steps ts on ts.template_id = r.template_id and ts.ordinal = r.ordinal
  where r.ready and ts.gates & 8 <> 0 and not v_times ? r.step_uuid::text and r.step_uuid <> all (v_limited);
end if;
-- usually all ready steps are handed off to the caller, and the room of the queue is not needed
if cardinality(v_paused) = 0 and v_times = '{}' and v_waits = '{}' and cardinality(v_limited) = 0
    and cardinality(v_outranked) = 0 then
  select case when bool_and(tasker.path_end(r.path) <> 'enqueued'
      and (not r.ready or r.namespace_id = any (p_namespaces)
        and (r.template_id || ':' || r.ordinal) <> all (p_unserved)))
    and count(*) filter (where r.ready) <= p_slots
      then array_agg(row(r.step_uuid, r.task_uuid, r.namespace_id, r.template_id, r.ordinal, r.name,
        r.priority, r.met, w.place, tasker.placed_path(r.path, w.place), r.from_state, r.token, r.attempt,
        r.sort_key, r.moved,
        case when r.ready then coalesce((select ts.timeout_ms from tasker.template_steps ts
          where ts.template_id = r.template_id and ts.ordinal = r.ordinal), p_timeout_ms) end,
        1, false, null, false)::tasker.placed_step) end
  into v_answer
  from unnest(p_ready) r
  cross join lateral (select case when r.ready then 'claim' else 'wait' end) as w (place);
  if v_answer is not null then
    return v_answer;
  end if;
end if;
with rooms as materialized (   -- materialized: computed once for each namespace
  select n.id, tasker.window_size_left(n.id, p_window) as room,
    tasker.window_room(n.id, p_window) as window_room
  from (select distinct r.namespace_id from unnest(p_ready) r) as n (id)
)
select array_agg(q::tasker.placed_step) into v_answer from (
    select z.step_uuid, z.task_uuid, z.namespace_id, z.template_id, z.ordinal, z.name, z.priority, z.met,
      w.place, tasker.placed_path(z.path, w.place), z.from_state, z.token, z.attempt, z.sort_key, z.moved,
      case when z.claimed then coalesce((select ts.timeout_ms from tasker.template_steps ts
        where ts.template_id = z.template_id and ts.ordinal = z.ordinal), p_timeout_ms) end,
      row_number() over (partition by z.task_uuid order by z.step_uuid)::int,
      z.begins_at is null and z.paused and not z.suspended
        and tasker.narrowly_paused(z.namespace_id, z.template_id, z.ordinal, z.task_uuid),
      case when not z.suspended then z.begins_at
        when v_waits->>z.step_uuid::text is not null
          then greatest((v_waits->>z.step_uuid::text)::timestamptz, tasker.now()) end,
      z.limited
    from (
      select y.*,
        row_number() over (partition by y.namespace_id, y.ready, y.claimed, y.paused, y.limited,
          y.suspended, y.begins_at is null order by y.priority desc, y.step_uuid) as queue_rank,
        case when y.moved and y.from_state = 'pending' and y.step_uuid <> all (v_begun) then v.room
          else v.window_room end as room
      from (
        select r.*, m.paused, m.begins_at, m.limited, m.suspended,
          m.mine and row_number() over (partition by m.mine order by r.priority desc,
            r.step_uuid) <= p_slots as claimed
        from unnest(p_ready) r
        cross join lateral (select (v_times->>r.step_uuid::text)::timestamptz as begins_at,
          r.step_uuid = any (v_paused) as paused, r.step_uuid = any (v_limited) as limited,
          v_waits ? r.step_uuid::text as suspended,
          p_slots > 0 and r.ready and not v_times ? r.step_uuid::text and r.namespace_id = any (p_namespaces)
            and not v_waits ? r.step_uuid::text
            and r.step_uuid <> all (v_paused) and r.step_uuid <> all (v_outranked)
          and r.step_uuid <> all (v_limited) and tasker.path_end(r.path) <> 'enqueued'
          and (r.template_id || ':' || r.ordinal) <> all (p_unserved)) as m (begins_at, paused, limited,
          suspended, mine)
      ) y
      join rooms v on v.id = y.namespace_id
    ) z
    cross join lateral (select case when not z.ready then 'wait' when z.suspended then 'suspend'
      when z.claimed then 'claim' when z.namespace_id = any (v_ordered) then 'hold'
      when tasker.path_end(z.path) = 'enqueued' or z.queue_rank <= z.room and not z.paused and not z.limited
        and z.begins_at is null then 'enqueue' else 'hold' end) as w (place)) q;
  return v_answer;
end
$$;
