-- The live workers that would take a step of a template: {takers, draining: counts; refused_by: [labels of workers that
-- claimed it and lack the handler, at most five], refused: their number, unreadable: the number of these whose release
-- cannot read the template; slots, busy, free: of the takers, as of their last heartbeats; awake: number of takers with
-- free slots that need no notification; workers: [labels, at most five]}. Ordinal null: a step that no worker refused.
create or replace function tasker.live_workers_for(p_namespace text, p_template int, p_ordinal int) returns jsonb
language sql stable as $$
  select jsonb_build_object('takers', count(*) filter (where takes), 'draining', count(*) filter (where w.draining_at is not null),
    'refused', count(*) filter (where refused), 'unreadable', count(*) filter (where refused and p_template = any (w.unreadable)),
    'refused_by', to_jsonb(coalesce((array_agg(w.label order by w.started_at, w.label) filter (where refused))[1:5], '{}')),
    'slots', coalesce(sum(w.concurrency) filter (where takes), 0),
    'busy', coalesce(sum(least(w.in_hand, w.concurrency)) filter (where takes), 0),
    'free', coalesce(sum(greatest(w.concurrency - w.in_hand, 0)) filter (where takes), 0),
    'awake', count(*) filter (where takes and not w.asleep and w.in_hand < w.concurrency),
    'workers', to_jsonb(coalesce((array_agg(w.label order by w.started_at, w.label) filter (where takes))[1:5], '{}')))
  from (
    select w.*, tasker.worker_label(w.worker_uuid, w.name) as label, r.refused,
      w.draining_at is null and not r.refused as takes
    from tasker.workers w
    cross join lateral (select p_ordinal is not null and w.draining_at is null
      and (p_template || ':' || p_ordinal) = any (w.unserved) as refused) r
    where w.kind = 'worker' and w.stopped_at is null and w.lease_until > tasker.now() and p_namespace = any (w.namespaces)) w
$$;
