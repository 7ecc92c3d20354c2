-- The stored result of a pure step for a key, unless it has expired.
-- p_args: {template, ordinal, key}
-- Returns: {result, task: that computed it, stored_at}; {} without one.
create or replace function tasker.recall_memo_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select coalesce((
    select jsonb_build_object('result', m.result, 'task', m.task_uuid, 'stored_at', m.stored_at)
    from tasker.memos m where m.template_id = (p_args->>'template')::int
      and m.ordinal = (p_args->>'ordinal')::int and m.key = p_args->>'key'
      and m.expires_at > tasker.now()), '{}')
$$;

-- Stores the result of a pure step for a key. A step has at most `most` of them: a new one replaces the one
-- that expires first.
-- Locks: memo, and the one that it replaces (skips).
-- p_args: {template, ordinal, key, result, task, ttl_ms, most}
-- Returns: {}
create or replace function tasker.remember_memo_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_template constant int := (p_args->>'template')::int;
  v_ordinal constant int := (p_args->>'ordinal')::int;
  v_most constant int not null := (p_args->>'most')::int;
begin
  perform tasker.require_read_committed();
  if v_most <= (select count(*) from (select from tasker.memos m where m.template_id = v_template
      and m.ordinal = v_ordinal limit v_most) m) then
    delete from tasker.memos m where m.template_id = v_template and m.ordinal = v_ordinal and m.key = (
      select x.key from tasker.memos x where x.template_id = v_template and x.ordinal = v_ordinal
      order by x.expires_at, x.key limit 1 for update skip locked);
  end if;
  insert into tasker.memos (template_id, ordinal, key, result, task_uuid, stored_at, expires_at)
  values (v_template, v_ordinal, p_args->>'key', p_args->'result', (p_args->>'task')::uuid, v_now,
    v_now + tasker.ms((p_args->>'ttl_ms')::numeric))
  on conflict (template_id, ordinal, key) do update set result = excluded.result,
    task_uuid = excluded.task_uuid, stored_at = excluded.stored_at, expires_at = excluded.expires_at;
  return '{}';
end
$$;

-- Deletes a slice of the stored results that have expired.
-- Locks: memos (skips).
-- p_args: {limit}
-- Returns: {deleted: number}
create or replace function tasker.prune_memos_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_deleted int;
begin
  perform tasker.require_read_committed();
  delete from tasker.memos m where (m.template_id, m.ordinal, m.key) in (
    select x.template_id, x.ordinal, x.key from tasker.memos x where x.expires_at <= tasker.now()
    order by x.expires_at limit (p_args->>'limit')::int for update skip locked);
  get diagnostics v_deleted = row_count;
  return jsonb_build_object('deleted', v_deleted);
end
$$;
