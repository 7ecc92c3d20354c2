-- Creates tasks of one template with their steps, and enqueues the roots (or backlogs them, beyond the
-- window; those that wait for a time, of the task or of the step, get timers). The roots are claimed at once
-- for the worker in the submitting process, if there is one that has slots for all of them and serves them,
-- and if nothing of their namespace waits in the queue or the backlog. A priority makes the namespace ordered
-- (tasker.order_namespace): there the roots are claimed or backlogged. Sorted by identity hash, ON CONFLICT
-- DO NOTHING: a duplicate creates nothing and is answered on its own. The commit notifies the workers of the
-- namespace, unless the caller wakes them afterwards (`announce`: false).
-- A template that is not the expected one creates nothing and the answer is `forgotten`: a client may
-- remember the identifier of a template that means another one, after the database was restored to an earlier
-- moment or created anew.
-- Tasks of a template with a unique key are not created while a task of the same key runs, which is answered.
-- Tasks of a template with `debounce` are merged into those of the same key that have not begun
-- (tasker.merge_debounced).
-- A task that names a parent gets a link to it in the same transaction (tasker.task_links), whether or not
-- the parent is still open: nothing of it is locked. One too far below the first task of its line is not
-- created.
-- Locks: unique keys, debounce keys with their tasks, identities, namespace, pauses (shared), counters.
--   Unique keys and identities are inserted in their order, so that two submissions never wait for each other
--   in a circle.
-- p_args: {template, hash (of that template as stored; absent: any), window, announce (true), waiter
--   (notified of the ends of the tasks), gates (of the tasks, beside those of their template), tasks: [{id,
--   identity, context, priority, correlation, parent_correlation, initiator, source_system, reason, tags,
--   trace, unique (value of the unique key), debounce, tenant, callback (URL to which its end is posted),
--   run_at, delay_ms, expires_ms, deadline or deadline_ms, parent: {step, token, index} (of the step that
--   starts it)}], max_depth (required with a parent), and, if there is a worker, the fields by which a caller
--   of advance_v1 describes itself: worker, slots, namespace_ids, unserved, timeout_ms, grace_ms}. Task ids
--   end in 24 zero bits (see tasker.step_uuid).
-- Returns: {created: [id...], at: time, steps: per task, send: [...], forgotten, running: {id: [task, state,
--   steps]} of the tasks that run under the same unique key, debounced: the same of those into which tasks
--   were merged, too_deep: [id...] that would exceed max_depth}; for claimed roots `claims` and `tasks` as in
--   claim_v1.
create or replace function tasker.submit_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_template constant int := (p_args->>'template')::int;
  v_named_task uuid;
  v_namespace int;
  v_namespace_name text;
  v_step_count int;
  v_static_count int;
  v_created uuid[];
  v_priorities int[];
  v_roots int[];          -- those that wait for no time of their own
  v_gates int;
  v_ordered boolean;
  v_gated int[] := '{}';  -- the other ones
  v_starts timestamptz[]; -- by task: until when all of it waits; null: it begins at once
  v_times jsonb := '{}';  -- by step of these
  v_soonest timestamptz;
  v_merged jsonb := '{}';   -- by task that is not created: the one of the same debounce key
  v_running jsonb := '{}';  -- by task that is not created: the one of the same unique key
  v_tenants jsonb;        -- by task
  v_links jsonb := '{}';    -- by task that has a parent: its link, or null if it is too deep
  v_callbacks uuid[];     -- tasks that have one: their ends are events
  v_expiries jsonb;       -- by task
  v_deadlines jsonb;      -- by task
  v_room int;
  v_paused int[] := '{}';
  v_marked int[] := '{}';
  v_claimed boolean := false;
  v_place text;
  v_path text;
  v_window constant int not null := (p_args->>'window')::int;
  v_timeout_ms constant bigint not null := tasker.clamped_ms((p_args->>'timeout_ms')::numeric);
  v_grace_ms constant bigint not null := tasker.clamped_ms((p_args->>'grace_ms')::numeric);
  v_send jsonb;
  v_held int;
  v_started jsonb;
begin
  perform tasker.require_read_committed();
  select t.named_task_uuid, t.namespace_id, ns.name, t.step_count, t.static_count, t.roots, t.gates,
    ns.ordered
  into v_named_task, v_namespace, v_namespace_name, v_step_count, v_static_count, v_roots, v_gates,
    v_ordered
  from tasker.templates t join tasker.task_namespaces ns using (namespace_id)
  where t.template_id = v_template and t.hash = coalesce(p_args->>'hash', t.hash);
  if not found then
    if p_args ? 'hash' then
      return jsonb_build_object('created', '[]'::jsonb, 'forgotten', true);
    end if;
    raise exception 'there is no template %', v_template using errcode = 'no_data_found';
  end if;

  if p_args @? '$.tasks[*].parent' then
    v_links := tasker.links_to_parents(p_args->'tasks', tasker.required(p_args, 'max_depth')::int);
    if v_links @? '$.* ? (@ == null)' then
      p_args := jsonb_set(p_args, '{tasks}', (select coalesce(jsonb_agg(t), '[]')
        from jsonb_array_elements(p_args->'tasks') t where v_links->(t->>'id') is distinct from 'null'));
    end if;
  end if;
  if v_gates & 32 <> 0 then
    v_running := tasker.take_unique_keys(v_template, p_args->'tasks');
  end if;
  if v_gates & 64 <> 0 then
    v_merged := tasker.merge_debounced(v_template, p_args->'tasks');
    p_args := jsonb_set(p_args, '{tasks}', coalesce(nullif(v_merged->'tasks', 'null'), '[]'));
    v_merged := v_merged->'merged';
  end if;
  with given as (
    select t.*, s.start,
      coalesce(t.deadline, coalesce(s.start, v_now) + tasker.ms(t.deadline_ms)) as deadline_at
    from jsonb_to_recordset(p_args->'tasks') as t (id uuid, identity text, context jsonb, priority int,
      correlation uuid, parent_correlation uuid, initiator text, source_system text, reason text,
      tags jsonb, trace jsonb, tenant text, callback text,
      run_at timestamptz, delay_ms numeric, expires_ms numeric, deadline timestamptz, deadline_ms numeric)
    cross join lateral (select case when t.run_at > v_now then t.run_at
        when t.delay_ms > 0 then v_now + tasker.ms(t.delay_ms) end as start) s
  ), detailed as (
    insert into tasker.task_details (task_uuid, identity_hash, correlation_id, parent_correlation_id, context,
      context_bytes, initiator, source_system, reason, tags, trace, requested_at, deadline_at,
      callback_url)
    select g.id, g.identity, coalesce(g.correlation, g.id), g.parent_correlation, coalesce(g.context, '{}'),
      pg_column_size(coalesce(g.context, '{}')), coalesce(g.initiator, 'unknown'),
      coalesce(g.source_system, 'unknown'), coalesce(g.reason, ''),
      array(select jsonb_array_elements_text(coalesce(g.tags, '[]'))), g.trace, v_now, g.deadline_at,
      g.callback
    from given g where not v_running ? g.id::text order by g.identity
    on conflict (identity_hash) do nothing returning task_uuid
  )
  select array_agg(g.id order by g.start nulls first, g.priority desc nulls last, g.id),
    array_agg(coalesce(g.priority, 0) order by g.start nulls first, g.priority desc nulls last, g.id),
    array_agg(g.start order by g.start nulls first, g.priority desc nulls last, g.id), min(g.start),
    jsonb_object_agg(g.id, coalesce(g.start, v_now) + tasker.ms(g.expires_ms))
      filter (where g.expires_ms is not null),
    jsonb_object_agg(g.id, g.deadline_at) filter (where g.deadline_at is not null),
    jsonb_object_agg(g.id, g.tenant) filter (where g.tenant is not null),
    array_agg(g.id) filter (where g.callback is not null)
  into v_created, v_priorities, v_starts, v_soonest, v_expiries, v_deadlines, v_tenants, v_callbacks
  from given g
  -- a hashed look-up, whatever the settings, not a join
  where (g.id in (select d.task_uuid from detailed d)) is true;
  if v_created is null then
    return jsonb_build_object('created', '[]'::jsonb) || tasker.running_tasks('running', v_running)
      || tasker.running_tasks('debounced', v_merged) || tasker.too_deep(v_links);
  end if;

  if not v_ordered and 0 <> any (v_priorities) then
    v_ordered := tasker.order_namespace(v_namespace);
  end if;
  v_room := tasker.window_room(v_namespace, v_window);
  if exists (select from tasker.pauses) then
    select p.held, p.marked into v_paused, v_marked from tasker.paused_roots(v_template) p;
    if cardinality(v_paused) > 0 then
      v_room := 0;   -- all are backlogged; those that are not paused are released with the next claim
    end if;
  end if;

  if v_gates <> 0 then
    v_gated := array(select ts.ordinal from tasker.template_steps ts
      where ts.template_id = v_template and ts.ordinal = any (v_roots) and ts.gates & ~8208 <> 0
      order by 1);
    v_roots := array(select r from unnest(v_roots) r where r <> all (v_gated) order by 1);
  end if;
  if v_soonest is not null then   -- the tasks that wait come last, and have no room
    v_room := least(v_room,
      cardinality(v_roots) * (select count(*) from unnest(v_starts) s where s is null)::int);
  end if;
  if v_soonest is not null or v_gated <> '{}' then
    select coalesce(jsonb_object_agg(tasker.step_uuid(c.id, r.ordinal + 1), r.time), '{}'), min(r.time)
    into v_times, v_soonest
    from unnest(v_created, v_starts) as c (id, start)
    cross join lateral (
      select o as ordinal, c.start as time from unnest(v_roots) o where c.start is not null
      union all
      select o, greatest(c.start, v_now,
        tasker.begins_in_time(tasker.step_begins_at(c.id, v_template, o, greatest(c.start, v_now)),
        (v_deadlines->>c.id::text)::timestamptz)) from unnest(v_gated) o) r;
  end if;

  if p_args ? 'worker' and cardinality(v_roots) > 0 then
    v_claimed := v_room = v_window   -- nothing is enqueued or backlogged
      and cardinality(v_created) * cardinality(v_roots) <= least(v_room, coalesce((p_args->>'slots')::int, 0))
      and v_namespace = any (array(select jsonb_array_elements_text(p_args->'namespace_ids')::int))
      and not exists (select from jsonb_array_elements_text(p_args->'unserved') u
        where u = any (array(select v_template || ':' || r from unnest(v_roots) r)));
  end if;
  if v_ordered and not v_claimed then
    v_room := 0;
  end if;
  v_place := case when v_claimed then 'claim' else 'enqueue' end;
  v_path := tasker.placed_path(tasker.path_code('pending'), v_place);

  insert into tasker.tasks (task_uuid, named_task_uuid, namespace_id, template_id, state, priority,
    sort_key, next_seq, total, active, held, created_at, updated_at, waiter, gates, run_at, tenant)
  select c.id, v_named_task, v_namespace, v_template, tasker.path_end(p.path), c.priority,
    1 + tasker.path_length(p.path), v_step_count + 1, v_static_count,
    p.enqueued, cardinality(v_roots) + cardinality(v_gated) - p.enqueued, v_now, v_now,
    (p_args->>'waiter')::uuid, v_gates & ~96 | coalesce((p_args->>'gates')::int, 0)
    | case when v_deadlines ? c.id::text then 256 else 0 end
    | case when c.id = any (v_callbacks) then 512 else 0 end, c.start,
    v_tenants->>c.id::text
  from unnest(v_created, v_priorities, v_starts) with ordinality as c (id, priority, start, n)
  cross join lateral (select greatest(0,
      least(cardinality(v_roots), v_room - (c.n::int - 1) * cardinality(v_roots)))) as e (enqueued)
  cross join lateral (select e.enqueued, case
    when e.enqueued > 0 then tasker.path_code('pending') || tasker.task_path('pending', 'steps_in_process')
    else tasker.path_code('pending')
      || tasker.task_path('pending', 'waiting_for_dependencies') end) as p (enqueued, path);

  if v_links <> '{}' then
    insert into tasker.task_links (child_uuid, parent_step, parent_task, token, index, depth)
    select c.id, l.* from unnest(v_created) c (id) cross join lateral jsonb_to_record(v_links->c.id::text)
      as l (step uuid, task uuid, token bigint, index int, depth int) where v_links ? c.id::text;
  end if;

  insert into tasker.task_moves (task_uuid, path, sort_key, created_at)
  select t.task_uuid, case t.state when 'steps_in_process'
    then tasker.path_code('pending') || tasker.task_path('pending', 'steps_in_process')
    else tasker.path_code('pending') || tasker.task_path('pending', 'waiting_for_dependencies') end,
      t.sort_key, v_now
  -- offset: a look-up for each, even if it was planned while there were few tasks
  from unnest(v_created) c
  cross join lateral (select x.task_uuid, x.state, x.sort_key from tasker.tasks x
    where x.task_uuid = c offset 0) t;

  insert into tasker.workflow_steps (workflow_step_uuid, task_uuid, namespace_id, template_id, ordinal,
    name, state, unmet, max_attempts, retryable, sort_key, claim_token, attempts, worker_uuid, started_at,
    deadline_at, hinted_at, hint_count, due_at, created_at, updated_at)
  select tasker.step_uuid(c.id, ts.ordinal + 1), c.id, v_namespace, v_template, ts.ordinal, ts.name,
    case when e.now then tasker.place_state(v_place) else 'pending' end, ts.unmet,
      ts.max_attempts, ts.retryable,
    case when e.now then 1 + tasker.path_length(v_path) else 1 end,
    case when e.now then tasker.place_token(v_place, 0) else 0 end,
    case when e.now then tasker.place_attempts(v_place, 0) else 0 end,
    case when e.now and v_claimed then (p_args->>'worker')::uuid end,
      case when e.now and v_claimed then v_now end,
    case when e.now and v_claimed
      then tasker.deadline(v_now, coalesce(ts.timeout_ms, v_timeout_ms), v_grace_ms) end,
    case when e.now and not v_claimed then v_now end, case when e.now and not v_claimed then 1 else 0 end,
    case when ts.unmet = 0 then (v_times->>tasker.step_uuid(c.id, ts.ordinal + 1)::text)::timestamptz end,
      v_now, v_now
  from unnest(v_created) with ordinality as c (id, n)
  join tasker.template_steps ts on ts.template_id = v_template and ts.is_static
  -- up to the last root with room, in the order of ordinals
  cross join lateral (select ts.unmet = 0 and ts.ordinal <> all (v_gated)
    and ts.ordinal <= coalesce(
      v_roots[least(cardinality(v_roots), v_room - (c.n::int - 1) * cardinality(v_roots))], -1)) as e (now)
  order by 1;   -- the steps of a task are stored side by side, so that a write finds room on their page

  -- The roots: claimed, or enqueued while there is room, in the order of the tasks; the rest is backlogged.
  with roots as (
    select c.id, r.ordinal, tasker.step_uuid(c.id, r.ordinal + 1) as step, c.priority,
      (c.n - 1) * cardinality(v_roots) + r.k as nth, r.k
    from unnest(v_created, v_priorities) with ordinality as c (id, priority, n)
    cross join unnest(v_roots) with ordinality as r (ordinal, k)
  ), held as (
    insert into tasker.ready_backlog (workflow_step_uuid, task_uuid, namespace_id, rank, paused, priority,
      flow)
    select r.step, r.id, v_namespace,
      tasker.backlog_rank(v_now, r.priority, r.k::int), r.ordinal = any (v_marked),
      case when v_ordered then r.priority end,
      case when v_ordered then tasker.flow_of(v_namespace, r.id, v_template) end
    from roots r where r.nth > v_room and not v_times ? r.step::text
    returning workflow_step_uuid
  ), timed as (
    insert into tasker.timers (subject, kind, due_at, task_uuid, token)
    select t.step::uuid, 'b', t.time::timestamptz, (left(t.step, 30) || '000000')::uuid, 0
    from jsonb_each_text(v_times) as t (step, time)
    union all
    select t.task::uuid, 'x', t.time::timestamptz, t.task::uuid, 0
    from jsonb_each_text(v_expiries) as t (task, time)
    union all
    select t.task::uuid, 'd', t.time::timestamptz, t.task::uuid, 0
    from jsonb_each_text(v_deadlines) as t (task, time)
  ), logged as (
    insert into tasker.step_moves (workflow_step_uuid, path, sort_key, attempt, claim_token,
      worker_uuid, created_at)
    select r.step, v_path, 1 + tasker.path_length(v_path), tasker.place_attempts(v_place, 0),
      tasker.place_token(v_place, 0), case when v_claimed then (p_args->>'worker')::uuid end, v_now
    from roots r where r.nth <= v_room
  )
  select case when not v_claimed then
      jsonb_agg(jsonb_build_object('namespace', v_namespace_name, 'step', r.step, 'task', r.id)
        order by r.nth) end,
    case when v_claimed then jsonb_build_object('claims', jsonb_agg(tasker.claim_json(r.step, r.id,
        (select ts.name from tasker.template_steps ts
          where ts.template_id = v_template and ts.ordinal = r.ordinal),
        v_template, r.ordinal, tasker.place_token(v_place, 0), tasker.place_attempts(v_place, 0),
        null, null, null)
        order by r.nth),
      'tasks', (select jsonb_object_agg(d.task_uuid, jsonb_build_object('context', d.context,
          -- its timer is written by this statement
          'correlation', d.correlation_id, 'trace', d.trace) || case when d.deadline_at is null then '{}'
          else jsonb_build_object('left_ms', ceil(extract(epoch from d.deadline_at - v_now) * 1000)) end)
        from unnest(v_created) as c (id) join tasker.task_details d on d.task_uuid = c.id)) end,
    (select count(*) from held)
  into v_send, v_started, v_held from roots r where r.nth <= v_room;

  perform tasker.count_enqueued(array[v_namespace], array[jsonb_array_length(v_send)])
  where v_send is not null;
  if v_ordered and v_held > 0 then
    v_send := jsonb_build_array(jsonb_build_object('namespace', v_namespace_name));
  end if;
  if v_send is not null and (p_args->'announce' = 'false') is not true then
    perform pg_notify('tasker_work', '@' || v_namespace_name);   -- delivered by the commit
  end if;
  if v_deadlines is not null then
    v_soonest := least(v_soonest,
      (select min(t.time::timestamptz) from jsonb_each_text(v_deadlines) as t (task, time)));
  end if;
  if v_soonest < v_now + interval '1500 milliseconds' then   -- before the timekeeper looks again
    perform pg_notify('tasker_timers', greatest(0, ceil(extract(epoch from v_soonest - v_now) * 1000))::text);
  end if;
  return jsonb_strip_nulls(jsonb_build_object('created', to_jsonb(v_created), 'at', v_now,
    'steps', v_static_count, 'send', v_send, 'held', not v_claimed and (v_send is null or v_ordered
      or jsonb_array_length(v_send) < cardinality(v_created) * cardinality(v_roots))))
  || coalesce(v_started, '{}') || tasker.running_tasks('running', v_running)
  || tasker.running_tasks('debounced', v_merged) || tasker.too_deep(v_links);
end
$$;
