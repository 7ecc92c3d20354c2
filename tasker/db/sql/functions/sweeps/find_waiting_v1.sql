-- The next slice of a slow pass over everything open, including tasks that only wait, with the checks of
-- tasker.sweep_v1. It continues where the slice before ended, whichever process read that. After the last
-- slice the pass begins again, so a fault is found after at most one pass, and each slice costs the same
-- however much waits. Of two concurrent callers one reads.
-- Locks: turn (skips).
-- p_args: as sweep_v1, without `after` and `from`; begin (true: a new pass begins).
-- Returns: as sweep_v1, without `last`; more: true if the pass has more slices.
create or replace function tasker.find_waiting_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_kind constant text := 'find';
  v_from uuid;
  v_answer jsonb;
begin
  perform tasker.require_read_committed();
  if not exists (select from tasker.turns t where t.kind = v_kind) then
    insert into tasker.turns (kind, taken_at) values (v_kind, '-infinity') on conflict (kind) do nothing;
  end if;
  select coalesce(t.position, '00000000-0000-0000-0000-000000000000') into v_from from tasker.turns t
  where t.kind = v_kind for update skip locked;
  if not found then
    return '{}';
  end if;
  if p_args ? 'begin' then
    v_from := '00000000-0000-0000-0000-000000000000';
  end if;
  v_answer := tasker.sweep_v1(p_args || jsonb_build_object('from', v_from));
  update tasker.turns t set position = (v_answer->>'last')::uuid, taken_at = tasker.now()
  where t.kind = v_kind and t.position is distinct from (v_answer->>'last')::uuid;
  return v_answer - 'last' || case when v_answer ? 'last' then '{"more": true}'::jsonb else '{}' end;
end
$$;
