-- A process's life in the registry: `start` registers an incarnation, `serve` changes what it serves, `beat`
-- renews its lease and says which of the held tokens are no longer valid, `sleep`/`wake` set the mark that
-- senders read, `drain` says that it takes nothing more, `stop` ends it, `forget` removes those that were
-- last seen long ago, a few at a time, and sessions of the web page that have expired, and answers who has
-- not been heard of for two thirds of its lease.
-- Locks: worker, then as serve_worker; to forget: workers (skips).
-- p_args: {action, worker, kind, name, lease_ms, host, pid, version, namespaces: [name...], callables:
--   [name...], lacking: ["handler resource"...], concurrency, backend, tags, limits,
--   held: [[step, token]...], older_ms}
-- Returns: {namespaces: {name: id}} for start and serve, {lost: [step...], known} for beat, {silent: [...]}
--   for forget.
create or replace function tasker.worker_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_worker constant uuid := (p_args->>'worker')::uuid;
  v_lease constant timestamptz := v_now + tasker.ms((p_args->>'lease_ms')::numeric);
  v_lost jsonb;
begin
  case p_args->>'action'
  when 'start' then
    insert into tasker.workers (worker_uuid, kind, name, host, pid, version, namespaces, concurrency,
      backend, tags, limits, beat_at, lease_until, started_at)
    values (v_worker, coalesce(p_args->>'kind', 'worker'), p_args->>'name', p_args->>'host',
      (p_args->>'pid')::int,
      coalesce(p_args->>'version', ''), '{}', (p_args->>'concurrency')::int, p_args->>'backend',
      array(select jsonb_array_elements_text(coalesce(nullif(p_args->'tags', 'null'), '[]'))),
      nullif(p_args->'limits', 'null'), v_now, v_lease, v_now)
    on conflict (worker_uuid) do update set beat_at = v_now, lease_until = v_lease, draining_at = null,
      stopped_at = null;
    return tasker.serve_worker(v_worker, p_args);
  when 'serve' then
    return tasker.serve_worker(v_worker, p_args);
  when 'beat' then
    update tasker.workers set beat_at = v_now, lease_until = v_lease,
      in_hand = coalesce(jsonb_array_length(p_args->'held'), 0)
    where worker_uuid = v_worker and stopped_at is null;
    if not found then
      return jsonb_build_object('known', false);
    end if;
    select jsonb_agg(h->>0) into v_lost
    from jsonb_array_elements(p_args->'held') h
    left join tasker.workflow_steps s on s.workflow_step_uuid = (h->>0)::uuid
    where s.claim_token is distinct from (h->>1)::bigint or s.worker_uuid is distinct from v_worker
      or s.state <> 'in_progress';
    return jsonb_strip_nulls(jsonb_build_object('known', true, 'lost', v_lost));
  when 'sleep' then
    update tasker.workers set asleep = true where worker_uuid = v_worker;
  when 'wake' then
    update tasker.workers set asleep = false where worker_uuid = v_worker;
  when 'drain' then
    update tasker.workers set draining_at = v_now where worker_uuid = v_worker;
  when 'stop' then
    update tasker.workers set stopped_at = v_now, lease_until = v_now, asleep = false, in_hand = 0
    where worker_uuid = v_worker;
    update tasker.turns set taken_at = '-infinity', holder = null where kind = 'timers' and holder = v_worker;
    if found then
      perform pg_notify('tasker_timers', '');   -- another process keeps the time from now on
    end if;
  when 'forget' then
    delete from tasker.workers where worker_uuid in (
      select w.worker_uuid from tasker.workers w
      where w.lease_until < v_now - tasker.ms((p_args->>'older_ms')::numeric)
      order by w.lease_until limit 10 for update skip locked);
    delete from tasker.page_sessions where expires_at <= v_now;
    return jsonb_strip_nulls(jsonb_build_object('silent', (
      select jsonb_agg(jsonb_build_object('worker', w.worker_uuid, 'worker_name', w.name,
        'worker_host', w.host,
        'worker_pid', w.pid, 'since', w.beat_at,
        'lease_left_ms', round(extract(epoch from w.lease_until - v_now) * 1000)))
      from tasker.workers w
      where w.stopped_at is null and w.lease_until > v_now
        and v_now - w.beat_at >= (w.lease_until - w.beat_at) * 2 / 3)));
  end case;
  return '{}';
end
$$;
