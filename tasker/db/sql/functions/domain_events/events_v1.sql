-- Events in their order. p_args: {after: position (0: from the beginning), limit, newest: true for the last ones,
--   names: [patterns of LIKE], namespaces: [names], task, correlation, since, event: its id, withheld: true for those that
--   were not published, the newest first, max_bytes (16 MiB): payloads are answered up to that, at least one}
-- Answer: {events: [as event_shown], last: up to which position all that fit are known now}
create or replace function tasker.events_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_after constant bigint := coalesce((p_args->>'after')::bigint, 0);
  v_limit constant int := (p_args->>'limit')::int;
  v_newest constant boolean := coalesce((p_args->>'newest')::boolean, false);
  v_withheld constant boolean := coalesce((p_args->>'withheld')::boolean, false);
  v_names constant text[] := case when p_args->'names' <> 'null' then array(select jsonb_array_elements_text(p_args->'names')) end;
  v_ids constant int[] := case when p_args->'namespaces' <> 'null' then array(select n.namespace_id from tasker.task_namespaces n
    where n.name in (select jsonb_array_elements_text(p_args->'namespaces'))) end;
  v_order constant text := case when v_withheld then 'e.event_id desc' when v_newest then 'e.position desc' else 'e.position' end;
  v_answer jsonb;
begin
  perform tasker.place_events();
  execute format($sql$
    with read as (
      select e.* from tasker.domain_events e
      where %s and ($4 is null or e.name like any ($4)) and ($5 is null or e.namespace_id = any ($5)) %s
      order by %s limit $2
    ), found as (
      select e as event, e.position, e.event_id, coalesce(sum(tasker.sent_bytes(e.payload)) over (order by %s)
        <= greatest($6, tasker.sent_bytes(e.payload)), true) as fits
      from read e
    )
    select jsonb_build_object(
      'events', coalesce((select jsonb_agg(tasker.event_shown(row((f.event).*)::tasker.domain_events) order by %s) from found f where f.fits), '[]'),
      'last', case when (select count(*) = $2 or not bool_and(f.fits) from found f) then (select max(f.position) from found f where f.fits)
        else greatest($1, (select max(e.position) from tasker.domain_events e)) end)$sql$,
    case when v_withheld then 'e.withheld is not null' else 'e.position > $1' end,
    concat(
      case when p_args->>'task' is not null then ' and e.task_uuid = ($3->>''task'')::uuid' end,
      case when p_args->>'correlation' is not null then ' and e.correlation_id = ($3->>''correlation'')::uuid' end,
      case when p_args->>'event' is not null then ' and e.event_uuid = ($3->>''event'')::uuid' end,
      case when p_args->>'since' is not null then ' and e.created_at >= ($3->>''since'')::timestamptz' end),
    v_order, v_order,
    case when v_withheld then 'f.event_id desc' else 'f.position' end)
  into v_answer using v_after, v_limit, p_args, v_names, v_ids, coalesce((p_args->>'max_bytes')::bigint, 16777216);
  return v_answer;
end
$$;
