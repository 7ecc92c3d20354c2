-- The steps whose handlers' inputs exceed an answer of `p_max` bytes (rule 20), in the order of the claim; null if all
-- fit. The first step always fits. The number that fits is found by bisection, because inputs shared by several steps
-- count once.
create or replace function tasker.cut_by_bytes(p_steps uuid[], p_max bigint) returns uuid[]
language plpgsql stable as $$
declare
  v_fit int := 1;
  v_beyond int := cardinality(p_steps) + 1;
  v_half int := cardinality(p_steps);   -- usually all
begin
  while v_beyond - v_fit > 1 loop
    if tasker.claim_bytes(p_steps[:v_half]) <= p_max then
      v_fit := v_half;
    else
      v_beyond := v_half;
    end if;
    v_half := (v_fit + v_beyond) / 2;
  end loop;
  return nullif(p_steps[v_beyond:], '{}');
end
$$;
