-- An operator's change of a schedule: `create` (with `replace` also of one that exists), `pause`, `resume`,
-- `delete`, `backfill`. One that a template declares is changed by its template: it can be paused, and
-- deleted once no version declares it any more.
-- Locks: schedule.
-- p_args: {change, namespace, template, name, actor, reason; for create: version, spec, replace; for
--   backfill: fires: [time...], detail}
-- Returns: {schedule, changed: boolean}, with `queued` (number of fire times) for a backfill; or {refused:
--   missing | declared | exists}.
create or replace function tasker.change_schedule_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_change constant text not null := p_args->>'change';
  v_namespace constant int := (select ns.namespace_id from tasker.task_namespaces ns
    where ns.name = p_args->>'namespace');
  v_old tasker.schedules;
  v_id uuid;
  v_queued int;
begin
  perform tasker.require_read_committed();
  if v_change = 'create' then
    insert into tasker.schedules (namespace_id, template, name, version, declared, spec, anchor_at)
    values (v_namespace, p_args->>'template', p_args->>'name', p_args->>'version', false,
      p_args->'spec', v_now)
    on conflict (namespace_id, template, name) do nothing returning schedule_uuid into v_id;
    if v_id is not null then
      perform tasker.set_schedule_timer(v_id, v_now);
      return jsonb_build_object('changed', true);
    end if;
  end if;
  select * into v_old from tasker.schedules h
  where h.namespace_id = v_namespace and h.template = p_args->>'template'
    and h.name = p_args->>'name' for update;
  v_id := v_old.schedule_uuid;
  if v_id is null then
    return '{"refused": "missing"}';
  end if;

  if v_change = 'create' then
    if v_old.declared and not v_old.removed then
      return '{"refused": "declared"}';
    elsif not coalesce((p_args->>'replace')::boolean, false) then
      return '{"refused": "exists"}';
    end if;
    update tasker.schedules h set version = p_args->>'version', declared = false, removed = false,
      spec = p_args->'spec',
      anchor_at = v_now, next_at = null, revision = h.revision + 1, updated_at = v_now
      where h.schedule_uuid = v_id;
    if v_old.paused is null then
      perform tasker.set_schedule_timer(v_id, v_now);
    end if;
  elsif v_change = 'pause' then
    if v_old.paused is not null then
      return jsonb_build_object('changed', false);
    end if;
    update tasker.schedules h set paused = jsonb_build_object('actor', p_args->>'actor', 'at', v_now,
      'reason', p_args->>'reason'),
      next_at = null, revision = h.revision + 1, updated_at = v_now where h.schedule_uuid = v_id;
    perform tasker.set_schedule_timer(v_id, tasker.backfill_due(v_id));
  elsif v_change = 'resume' then
    if v_old.paused is null then
      return jsonb_build_object('changed', false);
    end if;
    update tasker.schedules h set paused = null, anchor_at = v_now, revision = h.revision + 1,
      updated_at = v_now
    where h.schedule_uuid = v_id;
    if not v_old.removed then
      perform tasker.set_schedule_timer(v_id, v_now);
    end if;
  elsif v_change = 'delete' then
    if v_old.declared and not v_old.removed then
      return '{"refused": "declared"}';
    end if;
    perform tasker.set_schedule_timer(v_id, null);
    delete from tasker.schedule_fires f where f.schedule_uuid = v_id;
    delete from tasker.schedules h where h.schedule_uuid = v_id;
  elsif v_change = 'backfill' then
    insert into tasker.schedule_fires as f (schedule_uuid, fire_at, kind, outcome, decided_at, detail)
    select v_id, g.fire::timestamptz, 'backfill', 'queued', v_now, p_args->'detail'
    from jsonb_array_elements_text(p_args->'fires') as g (fire)
    on conflict (schedule_uuid, fire_at) do update set kind = 'backfill', outcome = 'queued',
      decided_at = excluded.decided_at, detail = excluded.detail
      where f.outcome in ('skipped', 'missed', 'refused');
    get diagnostics v_queued = row_count;
    if v_queued > 0 then
      update tasker.schedules h set revision = h.revision + 1, updated_at = v_now
      where h.schedule_uuid = v_id;
      perform tasker.set_schedule_timer(v_id, v_now);
    end if;
    return jsonb_build_object('changed', v_queued > 0, 'queued', v_queued);
  else
    raise exception 'there is no change %', v_change using errcode = 'invalid_parameter_value';
  end if;
  return jsonb_build_object('changed', true);
end
$$;
