-- Takes a lock for a handler, or names its holder. A lock is free if it was released, or if its time, its
-- holder's claim or the lease of its worker is over. The token grows with each holder, also after its row
-- was deleted (prune_locks_v1), as it is at least the time in milliseconds.
-- Locks: lock.
-- p_args: {worker, step, token: of the claim, name, ttl_ms}
-- Returns: {token, left_ms}; {held: {step, step_name, task, left_ms, own: by this claim}}; {lost: true}: the
--   claim is not current.
create or replace function tasker.take_lock_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_step constant uuid := (p_args->>'step')::uuid;
  v_claim constant bigint := (p_args->>'token')::bigint;
  v_worker constant uuid := (p_args->>'worker')::uuid;
  v_lock tasker.locks;
begin
  perform tasker.require_read_committed();
  if not tasker.is_claimed_by(v_step, v_claim, v_worker) then
    return '{"lost": true}';
  end if;
  insert into tasker.locks as l (name, token, workflow_step_uuid, claim_token, worker_uuid, taken_at,
    expires_at)
  values (p_args->>'name', floor(extract(epoch from v_now) * 1000), v_step, v_claim, v_worker, v_now,
    v_now + tasker.ms((p_args->>'ttl_ms')::numeric))
  on conflict (name) do update set token = greatest(l.token + 1, excluded.token), released_at = null,
    workflow_step_uuid = excluded.workflow_step_uuid, claim_token = excluded.claim_token,
    worker_uuid = excluded.worker_uuid, taken_at = excluded.taken_at, expires_at = excluded.expires_at
  where l.released_at is not null or l.expires_at <= v_now
    or not tasker.is_claimed_by(l.workflow_step_uuid, l.claim_token, l.worker_uuid)
  returning * into v_lock;
  if found then
    return jsonb_build_object('token', v_lock.token, 'left_ms', (p_args->>'ttl_ms')::numeric);
  end if;
  return jsonb_build_object('held', (select jsonb_build_object('step', l.workflow_step_uuid,
    'step_name', s.name, 'task', tasker.step_uuid(l.workflow_step_uuid, 0),
    'left_ms', greatest(0, ceil(extract(epoch from l.expires_at - v_now) * 1000)),
    'own', l.workflow_step_uuid = v_step and l.claim_token = v_claim)
    from tasker.locks l left join tasker.workflow_steps s on s.workflow_step_uuid = l.workflow_step_uuid
    where l.name = p_args->>'name'));
end
$$;

-- Extends a lock from now on, also one whose time is over if nobody has taken it.
-- Locks: lock.
-- p_args: {name, lock: its token, ttl_ms}
-- Returns: {left_ms}; {lost: true}: it was taken over, or the claim of its holder is not current.
create or replace function tasker.renew_lock_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
begin
  perform tasker.require_read_committed();
  update tasker.locks l set expires_at = tasker.now() + tasker.ms((p_args->>'ttl_ms')::numeric)
  where l.name = p_args->>'name' and l.token = (p_args->>'lock')::bigint and l.released_at is null
    and tasker.is_claimed_by(l.workflow_step_uuid, l.claim_token, l.worker_uuid);
  if not found then
    return '{"lost": true}';
  end if;
  return jsonb_build_object('left_ms', (p_args->>'ttl_ms')::numeric);
end
$$;

-- Releases a lock. Its row stays for a while, so that its token grows.
-- Locks: lock.
-- p_args: {name, lock: its token}
-- Returns: {}; {lost: true}: it was taken over.
create or replace function tasker.release_lock_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
begin
  perform tasker.require_read_committed();
  update tasker.locks l set released_at = tasker.now()
  where l.name = p_args->>'name' and l.token = (p_args->>'lock')::bigint;
  return case when found then '{}' else '{"lost": true}' end::jsonb;
end
$$;

-- Deletes a slice of the locks that nobody has held for a week.
-- Locks: locks (skips).
-- p_args: {limit}
-- Returns: {deleted: number}
create or replace function tasker.prune_locks_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_deleted int;
begin
  perform tasker.require_read_committed();
  delete from tasker.locks l where l.name = any (array(
    select x.name from tasker.locks x where x.expires_at < tasker.now() - interval '7 days'
    order by x.expires_at limit (p_args->>'limit')::int for update skip locked));
  get diagnostics v_deleted = row_count;
  return jsonb_build_object('deleted', v_deleted);
end
$$;

-- True if a step runs under this claim, and the lease of its worker has not ended.
create or replace function tasker.is_claimed_by(p_step uuid, p_token bigint, p_worker uuid) returns boolean
language sql stable as $$
  select exists (select from tasker.workflow_steps s
    join tasker.workers w on w.worker_uuid = s.worker_uuid and w.lease_until > tasker.now()
    where s.workflow_step_uuid = p_step and s.state = 'in_progress' and s.claim_token = p_token
      and s.worker_uuid = p_worker)
$$;
