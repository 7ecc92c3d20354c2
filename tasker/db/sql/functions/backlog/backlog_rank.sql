-- The rank of a backlogged step; the lowest is released first. It combines priority with ageing (a point of priority is
-- worth `p_ageing_s` seconds of waiting) and rotation over tasks: the n-th backlogged step of one write ranks n/20 s
-- later, so one fan-out of 100,000 steps shares the queue with other ready steps. All steps age at the same rate, so a
-- rank never changes.
create or replace function tasker.backlog_rank(p_now timestamptz, p_priority int, p_nth int, p_ageing_s float8)
returns float8 language sql immutable parallel safe as $$
  select extract(epoch from p_now)::float8 - p_priority * p_ageing_s + p_nth * 0.05
$$;
