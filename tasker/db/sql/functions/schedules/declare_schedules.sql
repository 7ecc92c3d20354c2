-- Makes the schedules of a template's plan the declared ones of that template, unless a higher version is
-- registered: an older one that comes late changes nothing. Those that an earlier version declared and this
-- one does not are removed: they rest, with their history. One that stays as it is keeps its next fire time;
-- one that changed begins anew now.
-- Locks: schedules.
create or replace function tasker.declare_schedules(p_plan jsonb, p_namespace int) returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_template constant text := p_plan->>'name';
  v_version constant text := p_plan->>'version';
  v_declared constant jsonb := coalesce(p_plan->'schedules', '[]');
  v_begin uuid[];   -- those whose next fire time is to be computed
  v_gone uuid[];
begin
  if v_declared = '[]' and not exists (select from tasker.schedules h
      where h.namespace_id = p_namespace and h.template = v_template and h.declared) then
    return;
  end if;
  if exists (select from tasker.named_tasks n
      where n.namespace_id = p_namespace and n.name = v_template and n.template_id is not null
      and tasker.version_order(n.version) collate "C" > tasker.version_order(v_version) collate "C") then
    return;
  end if;
  perform from tasker.schedules h where h.namespace_id = p_namespace and h.template = v_template
  order by h.name for update;

  with given as (
    select d.schedule->>'name' as name, d.schedule->'spec' as spec
    from jsonb_array_elements(v_declared) as d (schedule)
  ), written as (
    insert into tasker.schedules as h (namespace_id, template, name, version, declared, spec, anchor_at)
    select p_namespace, v_template, g.name, v_version, true, g.spec, v_now from given g order by g.name
    on conflict (namespace_id, template, name) do update set version = excluded.version, declared = true,
      removed = false, spec = excluded.spec, revision = h.revision + 1, updated_at = v_now,
      anchor_at = case when h.spec = excluded.spec and not h.removed then h.anchor_at else v_now end,
      next_at = case when h.spec = excluded.spec and not h.removed then h.next_at end
    returning h.schedule_uuid, h.next_at, h.paused
  )
  select array_agg(w.schedule_uuid) into v_begin from written w
  where w.next_at is null and w.paused is null;
  perform tasker.set_schedule_timer(b.schedule, v_now) from unnest(v_begin) as b (schedule);

  with gone as (
    update tasker.schedules h set removed = true, next_at = null, revision = h.revision + 1,
      updated_at = v_now
    where h.namespace_id = p_namespace and h.template = v_template and h.declared and not h.removed
      and h.name <> all (array(select d.schedule->>'name'
          from jsonb_array_elements(v_declared) as d (schedule)))
    returning h.schedule_uuid
  )
  select array_agg(g.schedule_uuid) into v_gone from gone g;
  perform tasker.set_schedule_timer(g.schedule, tasker.backfill_due(g.schedule))
  from unnest(v_gone) as g (schedule);
end
$$;

-- Sets the timer of a schedule; null: it has none. The timekeeper is notified, if it is due before it looks
-- again.
create or replace function tasker.set_schedule_timer(p_schedule uuid, p_due timestamptz) returns void
language plpgsql as $$
begin
  if p_due is null then
    delete from tasker.timers m where m.subject = p_schedule and m.kind = 's';
    return;
  end if;
  insert into tasker.timers as m (subject, kind, due_at, token) values (p_schedule, 's', p_due, 0)
  on conflict (subject, kind) do update set due_at = excluded.due_at;
  if p_due < tasker.now() + interval '1500 milliseconds' then
    perform pg_notify('tasker_timers',
      greatest(0, ceil(extract(epoch from p_due - tasker.now()) * 1000))::text);
  end if;
end
$$;

-- When a schedule that is paused or removed is due: now, if a backfill waits, which does not regard either;
-- else never.
create or replace function tasker.backfill_due(p_schedule uuid) returns timestamptz
language sql stable as $$
  select case when exists (select from tasker.schedule_fires f
    where f.schedule_uuid = p_schedule and f.outcome = 'queued' and f.kind = 'backfill') then tasker.now() end
$$;
