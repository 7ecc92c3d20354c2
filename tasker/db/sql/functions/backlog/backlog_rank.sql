-- The place of a held step: lowest goes first. Priority with ageing (a point of priority is worth `p_ageing_s` seconds
-- of waiting) and rotation over tasks: the n-th held step of one write stands n/20 s further back, so one fan-out of
-- 100,000 steps shares the queue with whatever else becomes ready. All ages grow alike, so the rank never changes.
create or replace function tasker.backlog_rank(p_now timestamptz, p_priority int, p_nth int, p_ageing_s float8)
returns float8 language sql immutable parallel safe as $$
  select extract(epoch from p_now)::float8 - p_priority * p_ageing_s + p_nth * 0.05
$$;
