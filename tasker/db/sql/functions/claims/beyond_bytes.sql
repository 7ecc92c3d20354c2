-- Those of the steps whose handlers' inputs do not fit into an answer of `p_max` bytes any more (rule 20), in the order
-- of the claim; null when all fit. The first step always does. How many fit is found by halving, since what steps share
-- counts once.
create or replace function tasker.beyond_bytes(p_steps uuid[], p_max bigint) returns uuid[]
language plpgsql stable as $$
declare
  v_fit int := 1;
  v_beyond int := cardinality(p_steps) + 1;
  v_half int := cardinality(p_steps);   -- all, most of the time
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
