-- The requested changes, from the items of the arguments. Of two claims of one step the newer one counts. Planned with
-- the statement around it.
create or replace function tasker.requested_changes(p_args jsonb) returns setof tasker.given_change
language sql stable rows 10 as $$
  select distinct on (i.s) i.s, i.t, i.kind, i.k, tasker.clamped_ms(i.d), tasker.clamped_ms(i.ms), i.r, i.m, i.e, i.n, i.x, i.gv,
    coalesce(i.w, case when i.k is not null and tasker.kind_ends_claim(i.kind) then (p_args->>'worker')::uuid end)
  from jsonb_to_recordset(p_args->'items') as i (s uuid, t uuid, kind text, k bigint, d numeric, ms numeric, r jsonb,
    m jsonb, e jsonb, n jsonb, x jsonb, gv int, w uuid)
  order by i.s, i.k desc nulls last
$$;
