-- The size in bytes of an answer with the inputs of the handlers of these steps: contexts and results, each
-- once. Counts the size as sent: a stored value may take a hundredth of it. No value is read, because each
-- row stores the size of its value.
create or replace function tasker.claim_bytes(p_steps uuid[]) returns bigint
language plpgsql stable as $$
declare
  v_contexts bigint;
  v_results bigint;
begin
  select sum(d.context_bytes) into v_contexts
  from (select distinct s.task_uuid from tasker.workflow_steps s where s.workflow_step_uuid = any (p_steps)) t
  join tasker.task_details d on d.task_uuid = t.task_uuid;
  select sum(r.bytes) into v_results
  from tasker.results_of_ancestors(p_steps) w
  join tasker.step_results r on r.task_uuid = w.task_uuid and r.ordinal = w.ordinal;
  return coalesce(v_contexts, 0) + coalesce(v_results, 0);
end
$$;

-- The steps whose handlers' inputs exceed an answer of `p_max` bytes (rule 20), in the order of the claim;
-- null if all fit. The first step always fits. The number that fits is found by bisection, because inputs
-- shared by several steps count once.
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

-- Sizes of the inputs of steps that are too large for the database to return, the largest inputs of each, and
-- the fields with which the failure of each is reported.
-- Returns: {step: {bytes, results: count, largest: [[name, bytes]... up to 5], correlation, trace}}.
create or replace function tasker.too_large(p_steps uuid[]) returns jsonb
language sql stable as $$
  select jsonb_object_agg(s.workflow_step_uuid,
    jsonb_build_object('bytes', d.context_bytes + coalesce(r.bytes, 0),
    'results', r.number, 'largest', coalesce(r.largest, '[]'), 'correlation', d.correlation_id,
    'trace', d.trace))
  from tasker.workflow_steps s join tasker.task_details d on d.task_uuid = s.task_uuid
  cross join lateral (
    select sum(q.bytes) as bytes, count(*) as number,
      jsonb_agg(jsonb_build_array(q.name, q.bytes) order by q.bytes desc, q.name)
        filter (where q.nth <= 5) as largest
    from (select x.name, x.bytes, row_number() over (order by x.bytes desc, x.name) as nth
      from tasker.results_of_ancestors(array[s.workflow_step_uuid]) w
      join tasker.step_results x on x.task_uuid = w.task_uuid and x.ordinal = w.ordinal) q) r
  where s.workflow_step_uuid = any (p_steps)
$$;
