-- Events in their order.
-- p_args: {after: position (0: from the first event), limit, newest: true for the last ones, names: [patterns
--   of LIKE], namespaces: [names], task, correlation, since, event: its id, withheld: true for unpublished
--   events, the newest first, max_bytes: limit for the payloads, exceeded only by a single event (null: no
--   limit)}
-- Returns: {events: [as event_shown], last: position up to which all matching events are known}
-- A caller that continues from a position gets events that have no position yet in a later call; other
-- callers see every committed event.
create or replace function tasker.events_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set jit to off
as $$
declare
  v_after constant bigint := coalesce((p_args->>'after')::bigint, 0);
  v_limit constant int := (p_args->>'limit')::int;
  v_newest constant boolean := coalesce((p_args->>'newest')::boolean, false);
  v_withheld constant boolean := coalesce((p_args->>'withheld')::boolean, false);
  v_names text[] := case
    when p_args->'names' <> 'null' then array(select jsonb_array_elements_text(p_args->'names')) end;
  v_plain constant boolean := not exists (select from unnest(v_names) n
    where regexp_replace(n, '\\.', '', 'g') ~ '[%_]');
  v_one constant boolean := coalesce(p_args->>'task', p_args->>'correlation', p_args->>'event') is not null;
  v_ids int[] := case
    when p_args->'namespaces' <> 'null' then array(select n.namespace_id from tasker.task_namespaces n
    where n.name in (select jsonb_array_elements_text(p_args->'namespaces'))) end;
  v_order constant text := case when v_withheld then 'e.event_id desc' when v_newest then 'p.position desc'
    else 'p.position' end;
  v_last bigint;
  v_answer jsonb;
begin
  if not v_withheld then
    perform tasker.place_events(v_after = 0 or v_newest or v_one or p_args->>'since' is not null);
  end if;
  -- names without wildcards: found by an index that begins with the namespace
  if v_names is not null and v_plain then
    v_names := array(select regexp_replace(n, '\\(.)', '\1', 'g') from unnest(v_names) n);
    v_ids := coalesce(v_ids, array(select n.namespace_id from tasker.task_namespaces n));
  end if;
  v_last := (select max(p.position) from tasker.event_positions p);
  execute format($sql$
    with read as (
      select e, %s as position from %s
      where %s %s
      order by %s limit $2
    ), found as (
      select r.e as event, r.position, coalesce(sum(tasker.sent_bytes((r.e).payload)) over (order by %s)
        <= case when $6 is not null then greatest($6, tasker.sent_bytes((r.e).payload)) end, true) as fits
      from read r
    )
    select jsonb_build_object(
      'events', coalesce((select jsonb_agg(tasker.event_shown(f.event, f.position) order by %s)
        from found f where f.fits), '[]'),
      'last', case when (select count(*) = $2 or not bool_and(f.fits) from found f)
        then (select max(f.position) from found f where f.fits) else greatest($1, $7) end)$sql$,
    case when v_withheld then 'null::bigint' else 'p.position' end,
    case when v_withheld then 'tasker.domain_events e'
      else 'tasker.event_positions p join tasker.domain_events e on e.event_id = p.event_id' end,
    case when v_withheld then 'e.withheld is not null' else 'p.position > $1' end,
    concat(
      case when v_names is not null
        then format(' and %s.name %s any ($4)', case when v_withheld then 'e' else 'p' end,
        case when v_plain then '=' else 'like' end) end,
      case when v_ids is not null
        then format(' and %s.namespace_id = any ($5)', case when v_withheld then 'e' else 'p' end) end,
      case when p_args->>'task' is not null then ' and e.task_uuid = ($3->>''task'')::uuid' end,
      case when p_args->>'correlation' is not null
        then ' and e.correlation_id = ($3->>''correlation'')::uuid' end,
      case when p_args->>'event' is not null then ' and e.event_uuid = ($3->>''event'')::uuid' end,
      case when p_args->>'since' is not null then ' and e.created_at >= ($3->>''since'')::timestamptz' end),
    v_order,
    case when v_withheld then '(r.e).event_id desc' when v_newest then 'r.position desc'
      else 'r.position' end,
    case when v_withheld then '(f.event).event_id desc' else 'f.position' end)
  into v_answer using v_after, v_limit, p_args, v_names, v_ids, (p_args->>'max_bytes')::bigint, v_last;
  return v_answer;
end
$$;

-- An event as published: its position, the fields of domain events, and those required by CloudEvents 1.0,
-- from the same columns.
create or replace function tasker.event_shown(p_event tasker.domain_events, p_position bigint)
returns jsonb language sql stable as $$
  select jsonb_build_object('position', p_position, 'specversion', '1.0', 'id', p_event.event_uuid,
    'source', '/tasker/' || n.name, 'type', p_event.name,
    'subject', concat_ws('/', p_event.task_uuid, nullif(p_event.step_name, '')),
    'time', m.fired_at, 'datacontenttype', 'application/json', 'event_id', p_event.event_uuid,
    'event_name', p_event.name, 'event_version', '1.0', 'payload', p_event.payload,
    'metadata', coalesce(p_event.metadata, '{}') || jsonb_build_object('task_uuid', p_event.task_uuid,
      'step_uuid', nullif(p_event.workflow_step_uuid, p_event.task_uuid),
      'step_name', nullif(p_event.step_name, ''), 'namespace', n.name,
      'correlation_id', p_event.correlation_id, 'fired_at', m.fired_at, 'fired_by', p_event.fired_by,
      'outcome', p_event.outcome, 'attempt', p_event.attempt),
    'delivery_mode', p_event.delivery_mode, 'withheld', p_event.withheld)
  from tasker.task_namespaces n,
    lateral (select coalesce(p_event.metadata->'fired_at', to_jsonb(p_event.created_at)) as fired_at) m
  where n.namespace_id = p_event.namespace_id
$$;

-- The size of a value as it is sent. Compressed storage may take a hundredth of it.
create or replace function tasker.sent_bytes(p_value jsonb) returns bigint
language sql stable as $$
  select case when pg_column_compression(p_value) is null then pg_column_size(p_value)
      else octet_length(p_value::text) end
$$;
